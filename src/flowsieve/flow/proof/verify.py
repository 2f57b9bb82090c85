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
strays: entries that output to a port that their switch does not have, or twice to one; detours around a link that end
    elsewhere than at its far end.
undecided: entries of others on which it depends whether there are more of these than are counted, or of which nobody
    can tell what they do to events.

What others have made of switches counts: entries that events meet before or beside ours (`overlay`), ports that do not
carry all (`passage`). At the last hop an event has to have the addresses that its host listens to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.entry import Flow
from flowsieve.flow.flat import FlatTable, FlowColumns, Words, address_of, columns_of, flatten
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof import verify_kernel as kernel
from flowsieve.flow.proof.atoms import Atoms, Ranges
from flowsieve.flow.proof.bridges import misleading, with_bridges
from flowsieve.flow.proof.overlay import Overlay, overlay, puzzling
from flowsieve.flow.proof.passage import Passage
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
    undecided: tuple[str, ...] = ()
    witness: Witness | None = None

    @property
    def holds(self) -> bool:
        faults = self.false_negatives or self.duplicates or self.loops or self.strays
        return not (faults or self.undecided)


def verify(view: NetworkView) -> Verdict:
    """Prove that tables deliver every advertised event to all who want it, once, and that nothing loops.

    Endpoints that links which are down cut off from each other are owed nothing.
    """
    misled = list(misleading(view))
    view = with_bridges(view)
    topology, plan, passage = view.topology, view.plan, Passage.of(view)
    verdict = _Case(
        topology=topology,
        wiring=Wiring.of(topology),
        plan=plan,
        encoding=view.encoding,
        passage=passage,
        held=view.tables,
        tables=passage.arriving(view.tables),
        offers=_by_endpoint(view, view.advertisements),
        wants=_by_endpoint(view, view.subscriptions),
        piece=_pieces(topology, view.down),
    ).verdict()
    if not misled:
        return verdict
    witness = verdict.witness or Witness(None, None, "stray", "switch {}: {}".format(*misled[0]))
    return replace(verdict, strays=verdict.strays + len(misled), witness=witness)


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
class _Found:
    """What goes wrong in the network, if each switch sends what it is taken to send."""

    losses: list[_Fault]
    doubles: list[_Fault]
    looping: NDArray[np.bool_]
    loop: Witness | None


@dataclass(frozen=True, slots=True)
class _Fault:
    """What happens to an event, between a publishing host and another."""

    publisher: int
    host: int
    dz: Dz
    event: EventValues | None


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """What is to be proved; interests are kept by the numbers of their hosts.

    `tables` are those that are `held`, without what nobody takes for an event when it comes.
    """

    topology: Topology
    wiring: Wiring
    plan: IndexPlan
    encoding: Encoding
    passage: Passage
    held: Mapping[str, tuple[Flow, ...]]
    tables: Mapping[str, tuple[Flow, ...]]
    offers: Mapping[int, Sequence[Interest]]
    wants: Mapping[int, Sequence[Interest]]
    piece: NDArray[np.int64]

    def verdict(self) -> Verdict:
        columns = columns_of(self.wiring, self.tables)
        offered, wanted = self._ranges(self.offers), self._ranges(self.wants)
        layers = self._layers(columns)
        surely = self._space([each.surely for each in layers], self.encoding.family, offered, wanted)
        at_most = surely
        if any(each.open for each in layers):
            at_most = self._space([each.at_most for each in layers], self.encoding.family, offered, wanted)
        least = self._found(surely, offered, wanted)
        most = self._found(at_most, offered, wanted) if at_most is not surely else least
        # What is lost although switches send all that they may is lost; what is doubled or loops with the least that
        # they send always does. Whatever lies between depends on what others have put there.
        looping = least.looping.copy()
        loops = [least.loop] if least.loop is not None else []
        for family in sorted(set().union(*(part.family.tolist() for part in columns)) - {surely.family}):
            other = self._space([flatten(part, family) for part in columns], family)
            found = self._loop(other, looping)
            loops += [found] if found is not None else []
        astray = [
            _stray(switch, flows[row])
            for (switch, flows), part in zip(self.tables.items(), columns, strict=True)
            for row in part.astray.tolist()
        ]
        possible = list(self._possible(least, most))
        undecided = list(self._undecided(layers, bool(possible)))
        worst: Iterable[Iterable[Witness]] = (
            (self._loss(each) for each in most.losses),
            (self._double(each) for each in least.doubles),
            loops,
            astray,
            (self._open(each, undecided) for each in (*possible, None) if undecided),
        )
        return Verdict(
            false_negatives=len(most.losses),
            duplicates=len(least.doubles),
            loops=int(looping.sum()),
            strays=len(astray),
            undecided=tuple(f"{switch}: {why}" for switch, why in undecided),
            witness=next(chain.from_iterable(worst), None),
        )

    def _layers(self, columns: Sequence[FlowColumns]) -> list[Overlay]:
        """The tables of all switches, with what others have put there."""
        return [
            overlay(self.passage, switch, part, flatten(part, self.encoding.family))
            for switch, part in zip(self.wiring.switches, columns, strict=True)
        ]

    def _found(self, space: _Space, offered: Ranges, wanted: Ranges) -> _Found:
        losses, doubles = self._follow(space, offered, wanted)
        looping = np.zeros(len(self.wiring.switches), np.bool_)
        return _Found(losses, doubles, looping, self._loop(space, looping))

    def _possible(self, least: _Found, most: _Found) -> Iterator[Witness]:
        """What goes wrong perhaps: with the least that switches send, or with the most, and not with the other."""
        for faults, others, told in (
            (least.losses, most.losses, self._loss),
            (most.doubles, least.doubles, self._double),
        ):
            known = {(each.publisher, each.host) for each in others}
            yield from (told(each) for each in faults if (each.publisher, each.host) not in known)
        if most.loop is not None and (most.looping & ~least.looping).any():
            yield most.loop

    def _undecided(self, layers: Sequence[Overlay], matters: bool) -> Iterator[tuple[str, str]]:
        """The entries of others that leave the proof open, each with its switch."""
        for switch, layer in zip(self.wiring.switches, layers, strict=True):
            for each in dict.fromkeys((*(layer.open if matters else ()), *layer.riddles)):
                riddle = puzzling(self.passage, switch, each)
                yield switch, each.text if riddle is None else f"{each.text} ({riddle})"

    def _open(self, possible: Witness | None, undecided: Sequence[tuple[str, str]]) -> Witness:
        switch, text = undecided[0]
        if possible is None:
            where = f"nobody can tell what an entry of others at {switch} does to events: {text}"
            return Witness(None, None, "undecided", where)
        where = f"whether it is so depends on entries of others, as at {switch} on {text}: {possible.where}"
        return replace(possible, kind="undecided", where=where)

    def _ranges(self, interests: Mapping[int, Sequence[Interest]]) -> Ranges:
        return Ranges.of(self.encoding, [(host, each.dz) for host, row in interests.items() for each in row])

    def _space(self, flats: Sequence[FlatTable], family: int, *ranges: Ranges) -> _Space:
        cuts = [cut for each in ranges for cut in (each.begin, each.end)]
        atoms = Atoms.between([(flat.hi, flat.lo) for flat in flats] + cuts)
        sends = atoms.sent(flats, self.wiring)
        number = {switch: n for n, switch in enumerate(self.wiring.switches)}
        for switch, port in self.passage.shut_ports():
            sends[:, self.wiring.first[number[switch]] + port - 1] = 0
        return _Space(family, atoms, sends)

    def _follow(self, space: _Space, offered: Ranges, wanted: Ranges) -> tuple[list[_Fault], list[_Fault]]:
        """Send every publisher's atoms on their way: who misses them, and who gets them twice."""
        wiring, atoms, hosts = self.wiring, space.atoms, len(self.wiring.hosts)
        advertised = atoms.marked(offered, hosts) & atoms.addressed(self.encoding, self.plan.bits)[:, None]
        wants = atoms.marked(wanted, hosts)
        once, twice = np.empty_like(wants), np.empty_like(wants)
        losses: list[_Fault] = []
        doubles: list[_Fault] = []
        for publisher in self.offers:
            heard = self.passage.unheard(wiring.hosts[publisher]) is None
            kernel.push(
                space.sends if heard else np.zeros_like(space.sends), advertised, publisher, wiring.home[publisher],
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
        steps = trace(self.topology, self.held, publisher, family, address, passage=self.passage)
        way = ", ".join(dict.fromkeys(step.switch for step in steps))
        where = (
            f"{host} wants it and does not get it; sent to {address_text(family, address)} it gets to {way}"
        )
        where = "; ".join([where, *dict.fromkeys(note for step in steps for note in step.notes)])
        return Witness(named(fault.event), publisher, "false negative", where)

    def _double(self, fault: _Fault) -> Witness:
        publisher, host = self.wiring.hosts[fault.publisher], self.wiring.hosts[fault.host]
        # Rather an event that the publisher may publish; but its dz reach further than its filters.
        choices = [each.filters for each in self.offers[fault.publisher] if each.dz.covers(fault.dz)]
        events = (meet(self.plan, fault.dz, filters) for filters in [*choices, []])
        event = next((event for event in events if event is not None), None)
        address = address_text(self.encoding.family, self._sent_to(fault.dz, event))
        where = f"sent to {address} it gets to {host} more than once"
        return Witness(named(event), publisher, "duplicate", where)

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
        return Witness(named(event), None, "loop", where)


def _stray(switch: str, flow: Flow) -> Witness:
    where = f"the entry of {switch} for {flow.match} outputs to ports {flow.ports}"
    return Witness(None, None, "stray", where)


def named(event: EventValues | None) -> dict[str, object] | None:
    """An event in plain values; a string that only its hash is known of is described."""
    if event is None:
        return None
    return {name: str(value) if isinstance(value, Unfound) else value for name, value in event.items()}
