"""What the operations on sets of dz mean, in the plainest words; `dzset` computes the same from arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from flowsieve.index.dz import Dz


def canonical(cells: Iterable[Dz]) -> set[Dz]:
    """The same part of the space in canonical form: none covers another, no two are siblings.

    >>> sorted(canonical([Dz.parse("010"), Dz.parse("00"), Dz.parse("0111"), Dz.parse("011")]))
    [Dz('0')]
    """
    distinct = set(cells)
    left = {dz for dz in distinct if not any(o.covers(dz) for o in distinct if o != dz)}
    while pair := next((dz for dz in left if dz.sibling in left), None):
        assert pair.parent is not None and pair.sibling is not None
        left = left - {pair, pair.sibling} | {pair.parent}
    return left


def union(left: Collection[Dz], right: Collection[Dz]) -> set[Dz]:
    return canonical([*left, *right])


def intersection(left: Collection[Dz], right: Collection[Dz]) -> set[Dz]:
    """Of every two cells that overlap, the smaller one."""
    return canonical(max(a, b, key=lambda dz: dz.length) for a in left for b in right if a.overlaps(b))


def difference(left: Collection[Dz], right: Collection[Dz]) -> set[Dz]:
    """Halve what overlaps until it is either covered or clear."""
    clear, unsure = [], list(left)
    while unsure:
        dz = unsure.pop()
        if any(other.covers(dz) for other in right):
            continue
        if any(other.overlaps(dz) for other in right):
            unsure.extend(dz.children)
        else:
            clear.append(dz)
    return canonical(clear)
