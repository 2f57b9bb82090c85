"""The tables of all switches of a network that lives, where labels are Bloom filters: they follow what is wanted.

What `flow.capacity.fitted` is for dz. Each request is a *step*. With the step tables come to know what is new; when
switches have acknowledged that, publishers are told (`tell`); when all of them hold it and what they sent before has
arrived, tables lose what nobody can send any more (`settle`). Which filters have to be known where at every moment of
that, `flow.filter_book` knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from flowsieve.content.canonical import canonical
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import TableFull
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.capacity.fitted import Fit
from flowsieve.flow.capacity.packet_guess import packets_expected
from flowsieve.flow.capacity.pattern_merging import PacketSample
from flowsieve.flow.capacity.weights import BY_VOLUME
from flowsieve.flow.diff import Change, Ports
from flowsieve.flow.entry import Flow
from flowsieve.flow.filter_book import FilterBook
from flowsieve.flow.interest import Interest
from flowsieve.flow.publisher_filters import FilterChange, PublisherFilters
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling, PortTable
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.tables.port_entries import PortEntries
from flowsieve.header.bloom import BloomLabels
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

GUESSED_ANEW = 16  # the packets to be expected are, when one in so many filters has changed
START = 0  # the step of all that was known before we began


@dataclass(frozen=True, slots=True)
class BloomSettings:
    """How filters stand in packets, in how many of these an event is sent, and events by which entries are merged."""

    labels: BloomLabels
    copies: Shares
    sample: EventBatch | None = None


class BloomLabelledTables:
    """The aims of all switches on one tree, and what publishers are told.

    While it is `starting`, publishers may still send what a controller before us has told them: what switches hold
    then stays, until `started`.
    """

    weights, fit = BY_VOLUME, Fit()

    def __init__(
        self,
        topology: Topology,
        trees: TreeMap,
        settings: BloomSettings,
        schema: Schema,
        capacity: int | None,
    ) -> None:
        self.settings, self._schema = settings, schema
        self.filters = PublisherFilters(name=canonical)
        self.starting = False
        self.capacity: dict[str, int] = {}
        self.labelling = BloomLabelling(topology, trees.trees[0], settings.labels)
        self.book = FilterBook(self.labelling)
        self.ports = self._fresh(capacity)
        self._offers: dict[int, Interest] = {}  # advertisements in force, by identity
        self._told: set[tuple[str, str]] = set()  # filters and hosts that publishers are to know of
        self._step, self._asked = START + 1, False  # the next step, and whether something was asked for in it
        self._begun: list[int] = []
        self._supposing = False
        self._learned: dict[str, list[FilterChange]] = {}  # what publishers would be told
        self._kept: frozenset[int] = (
            frozenset()
        )  # patterns of nobody knows whom, at all ports until we have started
        self._moved: tuple[BloomLabelling, PortEntries] | None = None  # before the tree changed
        self._doubted = False  # whether that has made all of it unsure
        self._refit: set[str] = set()
        self._flows: dict[str, tuple[Flow, ...]] = {}
        self._made: dict[PortTable, dict[int, Flow]] = {}  # the entries of those, by their patterns
        self._guess: PacketSample | None = None
        self._changed = 0  # patterns, since the packets to be expected were guessed

    @property
    def bounded(self) -> bool:
        """Whether some switch has a capacity, so that interests may be refused."""
        return bool(self.capacity)

    # Interests.

    def add(self, interests: Sequence[tuple[Interest, Side]]) -> None:
        """Take up many interests at once, which publishers know of, or will ask for."""
        for interest, side in interests:
            if side is Side.SUBSCRIBER:
                for filter in interest.filters:
                    self.book.subscribe(interest.endpoint, filter)
                    self._tell(canonical(filter), interest.endpoint, wanted=True)
            else:
                self.change(interest, side, adding=True)

    def change(self, interest: Interest, side: Side, *, adding: bool) -> None:
        """An interest comes or goes. Of a subscription publishers hear when tables know it."""
        for filter in interest.filters:
            if side is Side.SUBSCRIBER:
                change = self.book.subscribe if adding else self.book.unsubscribe
                change(interest.endpoint, filter, self._step)
            else:
                offer = self.book.advertise if adding else self.book.unadvertise
                offer(interest.endpoint, filter)
        if side is Side.SUBSCRIBER:
            self._asked = True
            return
        self.filters.change(interest, side, adding=adding)
        if adding:
            self._offers[id(interest)] = interest
        else:
            self._offers.pop(id(interest), None)

    def told(self) -> dict[str, list[FilterChange]]:
        """What each publisher has to learn at once: what follows from advertisements."""
        learned, self._learned = self._learned, {}
        return self.filters.update() | learned

    # Steps.

    def begun(self) -> tuple[int, ...]:
        """The steps that tables have followed since the last time, of which publishers are to be told."""
        steps, self._begun = tuple(self._begun), []
        return steps

    def switches_of(self, step: int) -> set[str]:
        """The switches that have to know what a step has changed before publishers do."""
        return {where.switch for where in self.labelling.ports_in(self.book.ways_of(step))}

    def waits_of(self, step: int) -> set[int]:
        """The other steps of which publishers have to be told before they know what a step has asked for."""
        return self.book.waits_of(step)

    def tell(self, step: int) -> dict[str, list[FilterChange]]:
        """What each publisher has to learn of a step; what came and went before they were told, they never hear of."""
        for (text, host), wanted in self.book.wishes_of(step).items():
            self._tell(text, host, wanted=wanted)
        return self.filters.update()

    def _tell(self, text: str, host: str, *, wanted: bool) -> None:
        wish = text, host
        if wanted is (wish in self._told):
            return
        (self._told.add if wanted else self._told.discard)(wish)
        self.filters.want(self.book.filter_of(text), host, adding=wanted)

    def settle(self, steps: Iterable[int]) -> dict[str, list[Change]]:
        """All publishers hold some steps; the switches whose tables change for that."""
        for step in steps:
            self.book.resolve(step)
        return self.update()

    # Beginnings.

    def start(self) -> None:
        """Go on where a controller before us has ended: what publishers hold, they will say.

        What was ending then ends anew, as a step.
        """
        ending = self.leaving
        for step in self.book.steps:
            self.tell(step)
            self.book.resolve(step)
        self._asked = False
        self._begun, self.starting = [], True
        self.leave(ending)
        self.filters.update()  # publishers will ask
        self._update_anyway()

    @property
    def leaving(self) -> list[tuple[str, Filter]]:
        """The hosts and filters that are wanted no more, and that publishers or tables may still go by."""
        return [
            (host, self.book.filter_of(text))
            for step in self.book.steps
            for (text, host), wanted in self.book.wishes_of(step).items()
            if not wanted
        ]

    def leave(self, wishes: Iterable[tuple[str, Filter]]) -> None:
        """Wishes were ending when a controller before us ended.

        Publishers hold them until tables do without: a switch that is away may know what they cover by them alone.
        """
        for host, filter in wishes:
            text = canonical(filter)
            if host not in self.book.asked.hosts.get(text, ()):  # else it is wanted again
                self.book.subscribe(host, filter)
                self._tell(text, host, wanted=True)
                self.book.unsubscribe(host, filter, self._step)
                self._asked = True

    def started(self) -> dict[str, list[Change]]:
        """No publisher sends what one before us has told it; the switches whose tables change for that."""
        self.starting = False
        changed = self.settle([START])
        kept, self._kept = self._kept, frozenset()
        needed = self.book.asked_at
        less = self.labelling.at_ports({each: self.labelling.everywhere & ~needed(each) for each in kept})
        exchanges = self.ports.letting_go(less)
        self.ports.let_go(less, exchanges)
        more = self.ports.tidied()
        for switch in filter(self.ports.fits_unmerged, self.labelling.ports_of):
            more |= self.ports.refitted(switch)
        self.ports.let_go({}, more)
        return changed | self._touched({where.switch for where in (*exchanges, *more)})

    def adopt(self, switch: str, flows: Iterable[Flow]) -> None:
        """A switch holds some entries; while we are starting they stay, whoever they are for."""
        if not self.starting:
            return
        kept = self.ports.copied()
        self.ports.adopt({switch: flows})
        try:
            self._take_in(self.ports.missing(switch))
        except TableFull:
            self.ports = kept
        self._touched([switch])

    # Tables.

    def update(self) -> dict[str, list[Change]]:
        """The switches whose tables changed since the last update; TableFull, and nothing, where one has no room."""
        touched = self._follow()
        if self._supposing:
            self._learned = self.tell(self._step)
            self.book.resolve(self._step)
            touched |= self._follow()
        elif self._asked:
            self._begun.append(self._step)
            self._step, self._asked = self._step + 1, False
        return self._touched(touched) | self._touched(self._refitted())

    def _update_anyway(self) -> None:
        """Have tables follow though some may have no room; those switches are asked all the same, and will say so."""
        for _ in self.labelling.topology.switches:
            try:
                self.update()
                return
            except TableFull as error:
                self.capacity.pop(error.switch, None)

    def _follow(self) -> set[str]:
        """Have tables follow the book; the switches that this is about."""
        changes = self.book.changes()
        more = self.labelling.at_ports({each: now & ~before for each, (before, now) in changes.items()})
        less = self.labelling.at_ports({each: before & ~now for each, (before, now) in changes.items()})
        try:
            self._take_in(more)
        except TableFull:
            self._move_back()
            raise
        exchanges = self.ports.letting_go(less)
        self.ports.let_go(less, exchanges)
        self.book.follow(changes)
        self._changed += len(changes)
        touched = {where.switch for where in (*more, *less)}
        if self._moved is not None:
            touched.update(self._moved[0].topology.switches, self.labelling.topology.switches)
            self._moved, self._doubted = None, False
            with suppress(TableFull):
                self._take_in(self.labelling.at_ports(dict.fromkeys(self._kept, self.labelling.everywhere)))
        return touched

    def rewire(self, trees: TreeMap) -> None:
        """Go over to other trees; the next update tells what follows."""
        self._move(BloomLabelling(self.labelling.topology, trees.trees[0], self.settings.labels))

    def grow(self, topology: Topology, trees: TreeMap, capacity: int | None) -> None:
        """Go over to a network that has more."""
        self._move(BloomLabelling(topology, trees.trees[0], self.settings.labels))
        self.ports = self._fresh(capacity)
        self._update_anyway()

    def bound(self, switch: str, capacity: int | None) -> None:
        """From the next update on, a switch has room for so many entries, or for any number of them."""
        self.capacity.pop(switch, None)
        if capacity is not None:
            self.capacity[switch] = capacity
        self._refit.add(switch)

    def recall(self, fit: Fit) -> None:
        """Nothing of the tables is kept; they follow from what is wanted."""
        with suppress(TableFull):  # nor had what there was before room
            self.update()

    def waste(self) -> dict[str, float]:
        """What merged entries let through is not expected by dz."""
        return {}

    def entries(self, switch: str) -> tuple[Flow, ...]:
        """What a switch should hold; entries that stay are the same objects as before."""
        if switch not in self._flows:
            for where in self.labelling.ports_of.get(switch, ()):
                known = self._made.get(where, {})
                self._made[where] = {
                    bits: known.get(bits) or self.labelling.entry(where, bits)
                    for bits in sorted(self.ports.entries[where])
                }
            made = {where: self._made[where].values() for where in self.labelling.ports_of.get(switch, ())}
            self._flows[switch] = self.labelling.joined(switch, made)
        return self._flows[switch]

    def size(self, switch: str) -> int:
        return len(self.entries(switch))

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold, in dz: events of any kind may leave by some ports."""
        ports = {action.port for entry in self.entries(switch) for action in entry.actions}
        return {WHOLE_SPACE: tuple(sorted(ports))} if ports else {}

    def meaning(self, switch: str) -> object:
        """What tells the table of a switch from another."""
        return self.entries(switch)

    def changes(self, before: object, after: object) -> list[Change]:
        """In dz nothing changes."""
        return []

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """What is asked for and ended again in a `with` block leaves no trace; tables are at once what it comes to."""
        step, asked, kept, flows = self._step, self._asked, self.ports.copied(), dict(self._flows)
        self._step, self._supposing = step + 1, True
        try:
            yield
        finally:
            self._step, self._asked, self._supposing = step, asked, False
            self.ports, self._flows = kept, flows

    def view(
        self,
        tables: Mapping[str, tuple[Flow, ...]],
        advertisements: Collection[Interest],
        subscriptions: Collection[Interest],
    ) -> BloomView:
        """The network with what its switches hold; publishers may hold all that comes or goes just now."""
        held, copies = self.book.held_in_between(), self.settings.copies
        return BloomView(
            self.labelling,
            copies,
            self._schema,
            held,
            tables,
            tuple(advertisements),
            tuple(subscriptions),
            passing=self.passing,
        )

    @property
    def passing(self) -> frozenset[int]:
        """What entries may ask for though it is not sure that somebody wants it: what comes or goes just now."""
        loose = self.ports.loose if self.starting else frozenset[int]()
        return self.book.in_between() | loose

    def _fresh(self, capacity: int | None) -> PortEntries:
        """Entries for nothing that is wanted yet, in switches of that capacity."""
        switches = self.labelling.topology.switches
        self.capacity = {} if capacity is None else dict.fromkeys(switches, capacity)
        return PortEntries(self.labelling, self.capacity, self._traffic)

    def _take_in(self, more: Mapping[PortTable, Iterable[int]]) -> None:
        exchanges = self.ports.taking_in(more)
        self.ports.took_in(more, exchanges)

    def _move(self, labelling: BloomLabelling) -> None:
        """Have other ports, with no entries yet."""
        if self._moved is None:
            self._moved = self.labelling, self.ports
        if self.starting:  # some publisher may go by filters that we have never heard of
            self._kept |= self.ports.loose
        self.labelling, self._made = labelling, {}
        self.ports = PortEntries(labelling, self.capacity, self._traffic)
        self.book.relabel(labelling)
        if self.starting and START not in self.book.steps:
            self.book.doubt(START)  # what those need who go by what they were told before, nobody knows
            self._doubted = True

    def _move_back(self) -> None:
        """The tables for another tree have no room: those stay that there were."""
        if self._moved is not None and self._moved[0].topology is self.labelling.topology:
            self.labelling, self.ports = self._moved
            self._moved, self._made = None, {}
            if self._doubted:
                self.book.resolve(START)
                self._doubted = False
            self.book.relabel(self.labelling)
            self.book.follow(self.book.changes())

    def _refitted(self) -> set[str]:
        """Tables of switches that have other room than before are made anew; TableFull where one has not enough."""
        some, self._refit = self._refit, set()
        for switch in some:
            self.ports.let_go({}, self.ports.refitted(switch))
        return some

    def _touched(self, switches: Iterable[str]) -> dict[str, list[Change]]:
        for switch in switches:
            self._flows.pop(switch, None)
        return {switch: [] for switch in switches}

    def _traffic(self) -> PacketSample:
        """The packets to be expected, guessed anew now and then."""
        held = self.book.held()
        if self._guess is None or self._changed * GUESSED_ANEW > len(held):
            settings = self.settings
            self._guess = packets_expected(
                self._schema,
                held,
                list(self._offers.values()),
                settings.labels,
                settings.copies,
                settings.sample,
            )
            self._changed = 0
        return self._guess
