"""The plain twin of `set_kernel`: the same steps, each judged by what all audiences cost before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowsieve.pipeline.receiver_sets.audiences import Audiences, Numbers

NOWHERE = -1


def members(audiences: Audiences) -> list[set[int]]:
    return [
        set(audiences.host[first:last].tolist())
        for first, last in zip(audiences.start[:-1], audiences.start[1:], strict=True)
    ]


def cost(audiences: Audiences, part: Sequence[int] | Numbers) -> int:
    """A packet for each set that an audience has a host in."""
    groups = zip(members(audiences), audiences.weight.tolist(), strict=True)
    return sum(weight * len({int(part[host]) for host in group}) for group, weight in groups)


def grow(audiences: Audiences, most: int, sets: int, least: float) -> list[int]:
    groups, weights = members(audiences), audiences.weight.tolist()
    part = [NOWHERE] * audiences.hosts
    total = [
        sum(w for group, w in zip(groups, weights, strict=True) if host in group)
        for host in range(audiences.hosts)
    ]
    for k in range(sets):
        inside: set[int] = set()
        while NOWHERE in part and len(inside) < most:
            left = [host for host, its in enumerate(part) if its == NOWHERE]

            def value(host: int, inside: set[int] = inside) -> float:
                if not inside:
                    return float(total[host])
                shared = sum(
                    w for group, w in zip(groups, weights, strict=True) if host in group and group & inside
                )
                return shared / max(1, total[host])

            best = max(left, key=lambda host: (value(host), -host))
            if inside and value(best) < least and len(left) <= (sets - k - 1) * most:
                break
            part[best] = k
            inside.add(best)
    return part


def improve(audiences: Audiences, order: Sequence[int], most: int, sets: int, part: list[int]) -> int:
    """One round, in place; what it saved."""
    saved = 0
    for host in order:
        now, here = cost(audiences, part), part[host]
        best, chosen = 0, list(part)
        ways = []
        for k in range(sets):
            if k != here and part.count(k) < most:
                moved = list(part)
                moved[host] = k
                ways.append(moved)
        for other, there in enumerate(part):
            if there != here:
                moved = list(part)
                moved[host], moved[other] = there, here
                ways.append(moved)
        for moved in ways:
            if now - cost(audiences, moved) > best:
                best, chosen = now - cost(audiences, moved), moved
        part[:] = chosen
        saved += best
    return saved


def audiences_of(matches: np.ndarray, home: Sequence[int], source: Sequence[int]) -> list[list[int]]:
    """The hosts that want each event, where `matches` has a row per subscription."""
    return [
        sorted({home[row] for row in np.flatnonzero(matches[:, event])} - {source[event]})
        for event in range(matches.shape[1])
    ]
