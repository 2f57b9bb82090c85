"""A proof, over the whole content space, that flow tables deliver what is subscribed.

The address space is cut into atoms at every place where a table, a subscription or an advertisement changes,
so that all addresses of an atom fare alike; then every atom is sent through the network, from every publisher
that may publish in it, and put on every link. Nothing is sampled.

What is counted:
false_negatives: pairs of a publishing host and another host for which there is an event that an advertisement
    of the one and a subscription of the other match, and that does not arrive. Tables are judged by the
    filters, not by the dz that stand for them: an interest whose dz do not cover its filter is taken to reach
    everywhere. Where nobody can tell whether there is such an event (a string is in the index by its hash),
    there is.
duplicates: pairs of a publishing host and a host that some address of the publisher's dz reaches twice.
loops: switches that some packet, wherever it comes from, would come to without end; on a loop or behind one.
strays: entries that output to a port that their switch does not have, or twice to one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import FlowColumns, Words, address_of, columns_of, flatten
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof import verify_kernel as kernel
from flowsieve.flow.proof.atoms import Atoms, Ranges
from flowsieve.flow.proof.trace import trace
from flowsieve.flow.view import NetworkView
from flowsieve.flow.wiring import HOP_LIMIT, Wiring
from flowsieve.header.address import address_text
from flowsieve.header.encoding import Encoding
from flowsieve.index.axes.inverse import Unfound
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet
from flowsieve.index.plan import IndexPlan
from flowsieve.index.witness import EventValues, meet, uncovered
from flowsieve.network.mend import Edge
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True)
class Witness:
    """One thing that goes wrong: an event, who publishes it, and what happens to it where.

    The event is None if the address is none of an event's, the publisher if it does not matter who sends it.
    """

    event: Mapping[str, object] | None
    publisher: str | None
    kind: str
    where: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the proof found."""

    false_negatives: int = 0
    duplicates: int = 0
    loops: int = 0
    strays: int = 0
    witness: Witness | None = None

    @property
    def holds(self) -> bool:
        return not (self.false_negatives or self.duplicates or self.loops or self.strays)


def verify(view: NetworkView) -> Verdict:
    """Prove that tables deliver every advertised event to all who want it, once, and that nothing loops.

    Endpoints that links which are down cut off from each other are owed nothing.
    """
    topology, plan = view.topology, view.plan
    return _Case(
        topology=topology,
        wiring=Wiring.of(topology),
        plan=plan,
        encoding=view.encoding,
        tables=_without(topology, view.tables, view.down) if view.down else view.tables,
        offers=_by_endpoint(view, view.advertisements),
        wants=_by_endpoint(view, view.subscriptions),
        piece=_pieces(topology, view.down),
    ).verdict()


def _without(
    topology: Topology, tables: Mapping[str, tuple[Flow, ...]], down: Collection[Edge]
) -> dict[str, tuple[Flow, ...]]:
    """The tables without the outputs to links that are down."""
    dead: dict[str, set[int]] = defaultdict(set)
    for edge in down:
        for switch in edge:
            (other,) = edge - {switch}
            dead[switch].add(topology.port(switch, other))
    return {
        switch: tuple(
            replace(flow, actions=tuple(a for a in flow.actions if a.port not in dead[switch]))
            for flow in flows
        )
        for switch, flows in tables.items()
    }


def _pieces(topology: Topology, down: Collection[Edge]) -> NDArray[np.int64]:
    """For each host the number of the part that it is in, where links that are down cut the network into parts."""
    up = [link for link in topology.links if frozenset((link.a, link.b)) not in down]
    parts = Topology(topology.switches, tuple(up), {}).components()
    at = {switch: number for number, part in enumerate(parts) for switch in part}
    return np.array([at[switch] for switch in topology.attached.values()], np.int64)


def _by_endpoint(view: NetworkView, interests: Iterable[Interest]) -> dict[int, list[Interest]]:
    """The interests of each endpoint by its number; one whose dz leave out some of its filter is put everywhere."""
    numbers = {host: number for number, host in enumerate(view.topology.attached)}
    own, others = view.owner.part, WHOLE - view.owner.part
    found: dict[int, list[Interest]] = defaultdict(list)
    for each in interests:
        owed = each.dz | others if len(others) else each.dz
        sound = all(uncovered(view.plan, filter, owed) is None for filter in each.filters)
        found[numbers[each.endpoint]].append(each if sound else replace(each, dz=own))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Space:
    """The addresses of one family, cut into atoms, and which of them leave each slot."""

    family: int
    atoms: Atoms
    sends: Words


@dataclass(frozen=True, slots=True)
class _Fault:
    """What happens to an event, between a publishing host and another."""

    publisher: int
    host: int
    dz: Dz
    event: EventValues | None


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """What is to be proved; interests are kept by the numbers of their hosts."""

    topology: Topology
    wiring: Wiring
    plan: IndexPlan
    encoding: Encoding
    tables: Mapping[str, tuple[Flow, ...]]
    offers: Mapping[int, Sequence[Interest]]
    wants: Mapping[int, Sequence[Interest]]
    piece: NDArray[np.int64]

    def verdict(self) -> Verdict:
        columns = columns_of(self.wiring, self.tables)
        offered, wanted = self._ranges(self.offers), self._ranges(self.wants)
        own = self._space(columns, self.encoding.family, offered, wanted)
        losses, doubles = self._follow(own, offered, wanted)
        families = set().union(*(part.family.tolist() for part in columns)) - {own.family}
        looping = np.zeros(len(self.wiring.switches), np.bool_)
        spaces = [own, *(self._space(columns, family) for family in sorted(families))]
        loops = [found for found in (self._loop(space, looping) for space in spaces) if found is not None]
        astray = [
            _stray(switch, flows[row])
            for (switch, flows), part in zip(self.tables.items(), columns, strict=True)
            for row in part.astray.tolist()
        ]
        worst = (self._loss(each) for each in losses), (self._double(each) for each in doubles), loops, astray
        return Verdict(
            false_negatives=len(losses),
            duplicates=len(doubles),
            loops=int(looping.sum()),
            strays=len(astray),
            witness=next(chain.from_iterable(worst), None),
        )

    def _ranges(self, interests: Mapping[int, Sequence[Interest]]) -> Ranges:
        return Ranges.of(self.encoding, [(host, each.dz) for host, row in interests.items() for each in row])

    def _space(self, columns: Sequence[FlowColumns], family: int, *ranges: Ranges) -> _Space:
        flats = [flatten(part, family) for part in columns]
        cuts = [cut for each in ranges for cut in (each.begin, each.end)]
        atoms = Atoms.between([(flat.hi, flat.lo) for flat in flats] + cuts)
        return _Space(family, atoms, atoms.sent(flats, self.wiring))

    def _follow(self, space: _Space, offered: Ranges, wanted: Ranges) -> tuple[list[_Fault], list[_Fault]]:
        """Send every publisher's atoms on their way: who misses them, and who gets them twice."""
        wiring, atoms, hosts = self.wiring, space.atoms, len(self.wiring.hosts)
        advertised = atoms.marked(offered, hosts) & atoms.addressed(self.encoding, self.plan.bits)[:, None]
        wants = atoms.marked(wanted, hosts)
        once, twice = np.empty_like(wants), np.empty_like(wants)
        losses: list[_Fault] = []
        doubles: list[_Fault] = []
        for publisher in self.offers:
            kernel.push(
                space.sends, advertised, publisher, wiring.home[publisher],
                wiring.first, wiring.at, wiring.far, HOP_LIMIT,
                once, twice,
            )  # fmt: skip
            lost, doubled = np.zeros(hosts, np.bool_), np.zeros(hosts, np.bool_)
            kernel.judge(wants, advertised, publisher, once, twice, lost, doubled)
            lost &= self.piece == self.piece[publisher]
            for host in np.flatnonzero(lost).tolist():
                missing = wants[:, host] & advertised[:, publisher] & ~once[:, host]
                losses.extend(self._missed(publisher, host, atoms.runs(missing)))
            for host in np.flatnonzero(doubled).tolist():
                run = next(atoms.runs(twice[:, host]))
                dz = next(self.encoding.cells_between(self.plan.bits, *run))
                doubles.append(_Fault(publisher, host, dz, None))
        return losses, doubles

    def _missed(self, publisher: int, host: int, runs: Iterator[tuple[int, int]]) -> Iterator[_Fault]:
        """An event that the host wants, the publisher may publish, and nobody carries, if there is one."""
        some = 16
        while batch := list(islice(runs, some)):
            region = DzSet(dz for run in batch for dz in self.encoding.cells_between(self.plan.bits, *run))
            for offer in self.offers[publisher]:
                for want in self.wants[host]:
                    for dz in region & offer.dz & want.dz:
                        event = meet(self.plan, dz, [*offer.filters, *want.filters])
                        if event is not None:
                            yield _Fault(publisher, host, dz, event)
                            return
            some *= 4  # few at first, since mostly the first will do; then many at once, which is faster

    def _loss(self, fault: _Fault) -> Witness:
        publisher, host = self.wiring.hosts[fault.publisher], self.wiring.hosts[fault.host]
        family, address = self.encoding.family, self._sent_to(fault.dz, fault.event)
        steps = trace(self.topology, self.tables, publisher, family, address)
        way = ", ".join(dict.fromkeys(step.switch for step in steps))
        where = (
            f"{host} wants it and does not get it; sent to {address_text(family, address)} it gets to {way}"
        )
        return Witness(_named(fault.event), publisher, "false negative", where)

    def _double(self, fault: _Fault) -> Witness:
        publisher, host = self.wiring.hosts[fault.publisher], self.wiring.hosts[fault.host]
        # Rather an event that the publisher may publish; but its dz reach further than its filters.
        choices = [each.filters for each in self.offers[fault.publisher] if each.dz.covers(fault.dz)]
        events = (meet(self.plan, fault.dz, filters) for filters in [*choices, []])
        event = next((event for event in events if event is not None), None)
        address = address_text(self.encoding.family, self._sent_to(fault.dz, event))
        where = f"sent to {address} it gets to {host} more than once"
        return Witness(_named(event), publisher, "duplicate", where)

    def _sent_to(self, dz: Dz, event: EventValues | None) -> int:
        """What an event in a cell is sent to; if it cannot be named, something else in that cell."""
        named = event is not None and not any(isinstance(value, Unfound) for value in event.values())
        cells = self.plan.encode(event) if event is not None and named else ()
        return self.encoding.address_of(next(filter(dz.covers, cells), dz))

    def _loop(self, space: _Space, looping: NDArray[np.bool_]) -> Witness | None:
        """A packet on a loop, if there is one; flags all switches that packets come to without end."""
        wiring = self.wiring
        word = int(kernel.find_endless(space.sends, wiring.first, wiring.at, wiring.far, looping))
        if word < 0:
            return None
        alive = np.empty(wiring.slots, np.uint64)
        kernel.endless(space.sends[word], wiring.first, wiring.far, alive)
        slot = int(np.flatnonzero(alive)[0])
        bit = int(alive[slot]) & -int(alive[slot])
        way: list[int] = []
        while slot not in way:  # back along links that are never empty, so it must come to itself
            way.append(slot)
            around = range(wiring.first[wiring.at[slot]], wiring.first[wiring.at[slot] + 1])
            slot = next(
                int(wiring.far[came])
                for came in around
                if came != slot and wiring.far[came] >= 0 and int(alive[wiring.far[came]]) & bit
            )
        ring = [wiring.near(link) for link in reversed(way[way.index(slot) :])]
        begin, end = space.atoms.span(64 * word + bit.bit_length() - 1)
        event = None
        if space.family == self.encoding.family:
            dz = next(self.encoding.cells_between(self.plan.bits, begin, end), None)
            event = meet(self.plan, dz, []) if dz else None
        address = address_text(space.family, address_of(space.family, begin >> 64, begin & (2**64 - 1)))
        where = f"a packet to {address} goes round {' > '.join([*ring, ring[0]])}"
        return Witness(_named(event), None, "loop", where)


def _stray(switch: str, flow: Flow) -> Witness:
    where = f"the entry of {switch} for {flow.match} outputs to ports {flow.ports}"
    return Witness(None, None, "stray", where)


def _named(event: EventValues | None) -> dict[str, object] | None:
    """An event in plain values; a string that only its hash is known of is described."""
    if event is None:
        return None
    return {name: str(value) if isinstance(value, Unfound) else value for name, value in event.items()}
