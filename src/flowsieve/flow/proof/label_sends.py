"""What one switch does to all labels of a set at once: for each port, which of them it is sent out of.

Labels are followed from table to table as regions of addresses. Where all labels that come to a table go on to the same
next one, as they do in tables that are right, the region stays whole, so that it never falls apart into many cubes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from flowsieve.errors import BadInput
from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.flow.proof.cubes import Cube, Region, shared, without
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import PREFIX_MASKS
from flowsieve.header.receivers import ReceiverLabels


@dataclass(slots=True)
class PortSends:
    """The labels that are sent out of a port, entry by entry, and those that are not."""

    unsent: Region
    sent: list[Region] = field(default_factory=list)

    def doubled(self, whole: Cube) -> Region:
        """The labels of the `whole` that are sent more than once."""
        copies = sum(map(Cube.size, (cube for region in self.sent for cube in region)))
        if copies == whole.size() - sum(map(Cube.size, self.unsent)):
            return []
        found: Region = []
        seen: Region = []
        for region in self.sent:
            found += [both for cube in region for both in shared(seen, cube)]
            seen += region
        return found


def cube_of(prefix: Prefix) -> Cube:
    """All addresses with a prefix."""
    return Cube(prefix.first, PREFIX_MASKS[prefix.family][prefix.length])


def by_set(labels: ReceiverLabels, flows: Iterable[Flow]) -> list[list[Flow]]:
    """For each number of a set, those of the entries that some of its labels may meet."""
    found: list[list[Flow]] = [[] for _ in range(1 << labels.set_bits)]
    groups = [cube_of(labels.group(number)) for number in range(len(found))]
    shift = WIDTH[labels.family] - labels.group(0).length
    for flow in flows:
        asked = flow.match.parts[1]
        cube = Cube(asked.value, asked.mask)
        if cube.mask & groups[0].mask == groups[0].mask:  # those of one set alone, as nearly all are
            number = cube.value >> shift & len(found) - 1
            some = [number] if groups[number].meet(cube) is not None else []
        else:
            some = [number for number, group in enumerate(groups) if group.meet(cube) is not None]
        for number in some if asked.family == labels.family else ():
            found[number].append(flow)
    return found


def sends_of(flows: Iterable[Flow], group: Prefix) -> dict[int, PortSends]:
    """What a switch does to the labels in a group that may meet these entries, for each port that one of them names.

    Raises BadInput for an entry that looks at more than the destination, since nobody knows sources here, and
    TooManyCubes where labels fare in too many ways.
    """
    whole = cube_of(group)
    tables: dict[int, list[Flow]] = {}
    for flow in flows:
        if flow.match.parts[0] is not None:
            raise BadInput(f"the entry for {flow.match} looks at sources, and labels have none of their own")
        tables.setdefault(flow.table, []).append(flow)
    found: dict[int, PortSends] = {}
    arriving: dict[int, Region] = {CONTENT_TABLE: [whole]}
    while arriving:
        table = min(arriving)
        region = arriving.pop(table)
        met = _met(tables.get(table, ()), region)
        for flow, hit in met:
            for port in flow.ports:
                sends = found.setdefault(port, PortSends([whole]))
                sends.sent.append(hit)
                for cube in hit:
                    sends.unsent = without(sends.unsent, cube)
        onward = {flow.onward for flow, _ in met}
        came, went = (sum(map(Cube.size, part)) for part in (region, _all(met)))
        if len(onward) == 1 and came == went:
            (after,) = onward
            if after is not None:
                arriving.setdefault(after, []).extend(region)
            continue
        for flow, hit in met:
            if flow.onward is not None:
                arriving.setdefault(flow.onward, []).extend(hit)
    return found


def _met(flows: Iterable[Flow], region: Region) -> list[tuple[Flow, Region]]:
    """Which of the labels in a region meet each entry of a table."""
    found, left = [], list(region)
    for flow in sorted(flows, key=lambda flow: (flow.priority, flow.match.rank), reverse=True):
        asked = flow.match.parts[1]
        cube = Cube(asked.value, asked.mask)
        hit = shared(left, cube)
        if hit:
            found.append((flow, hit))
            left = without(left, cube)
    return found


def _all(met: list[tuple[Flow, Region]]) -> Region:
    return [cube for _, hit in met for cube in hit]
