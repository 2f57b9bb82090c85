"""What the compiled tables must mean, written as obviously as possible; small spaces only.

A cell is a number of `depth` bits. `port_sets` says from first principles which ports want and which
advertise a cell at a switch; `overlay` and `smallest` say which table follows from the labels of all cells.
The compiler is tested against these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, endpoints_behind

Label = frozenset[int]
NOTHING: Label = frozenset()


def port_sets(
    topology: Topology, tree: SpanningTree, switch: str, interests: Iterable[tuple[str, DzSet]], cell: Dz
) -> Label:
    """The ports of a switch behind which somebody has an interest in a cell."""
    asking = {host for host, dz in interests if dz.covers(cell)}
    ports = range(1, len(topology.neighbours(switch)) + 1)
    return frozenset(port for port in ports if asking & endpoints_behind(topology, tree, switch, port))


def label(wanted: Label, advertised: Label) -> Label:
    """Where a switch sends a cell: out of each port that wants it, if somebody besides that port may publish it."""
    return frozenset(port for port in wanted if advertised - {port})


def arrivals(wanted: Label, advertised: Label, host_ports: Label) -> Label:
    """The ports that a cell can come in on: a host's as advertised, a neighbour's if more than it wants it here."""
    return frozenset(port for port in advertised if port in host_ports or wanted - {port})


def acceptable(candidate: Label, wanted: Label, arriving: Label) -> bool:
    """Whether a label does what is wanted for whatever arrives, given that nothing is sent back."""
    return all(candidate - {port} == wanted - {port} for port in arriving)


def overlay(labels: Sequence[Label]) -> dict[Dz, Label]:
    """The entries of the ports' own sets laid over each other, without those that change nothing."""
    depth = (len(labels) - 1).bit_length()
    table: dict[Dz, Label] = {}

    def shared(dz: Dz) -> Label:
        low = dz.bits << (depth - dz.length)
        return frozenset.intersection(*labels[low : low + (1 << (depth - dz.length))])

    def visit(dz: Dz, above: Label) -> None:
        here = shared(dz)
        if here != above:
            table[dz] = here
        if dz.length < depth:
            for child in dz.children:
                visit(child, here)

    visit(WHOLE_SPACE, NOTHING)
    return table


def smallest(options: Sequence[frozenset[Label]]) -> int:
    """How few entries can give every cell one of its labels; a packet that no entry matches is dropped."""
    depth = (len(options) - 1).bit_length()
    every = frozenset.union(*options)

    @cache
    def cost(dz: Dz, above: Label) -> int:
        """The fewest entries below dz where `above` is in force; one more entry may stand at dz itself."""
        return min(below(dz, above), 1 + min(below(dz, here) for here in every))

    @cache
    def below(dz: Dz, force: Label) -> int:
        if dz.length == depth:
            return 0 if force in options[dz.bits] else len(options) + 1
        return sum(cost(child, force) for child in dz.children)

    return cost(WHOLE_SPACE, NOTHING)


def look_up(table: Mapping[Dz, Label], cell: Dz) -> Label:
    """The label that a table gives a cell: that of its longest entry."""
    holding = [dz for dz in table if dz.covers(cell)]
    return table[max(holding, key=lambda dz: dz.length)] if holding else NOTHING
