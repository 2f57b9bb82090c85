"""The control plane's state: who wants and publishes what, and the tables that follow. It only decides."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.filter import Filter
from flowsieve.control.cover_rule import DEFAULT_BUDGET as DEFAULT_BUDGET
from flowsieve.control.outcome import Outcome as Outcome
from flowsieve.control.partitions.decided_elsewhere import DecidedElsewhere
from flowsieve.control.partitions.division import Division
from flowsieve.control.request import Request, broad_first
from flowsieve.control.request_check import check_requests
from flowsieve.control.settings import Settings as Settings
from flowsieve.control.transition.crossing import Crossing
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.errors import BadInput, BadPlan, Refused, TableFull
from flowsieve.flow.capacity.fitted import Fit, FittedTables
from flowsieve.flow.capacity.weights import Weights, events_of
from flowsieve.flow.diff import Change, Ports, joined
from flowsieve.flow.entry import Flow
from flowsieve.flow.guard import LabelGroup
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.owner import SOLE, Owner
from flowsieve.flow.publisher_filters import FilterChange, PublisherFilters
from flowsieve.flow.tables.bloom_labelled import BloomLabelledTables
from flowsieve.flow.tables.compiler import Compiler, Side
from flowsieve.flow.tables.labelled import LabelledTables
from flowsieve.flow.tables.mixed import MixedTables
from flowsieve.flow.view import NetworkView
from flowsieve.header.encoding import Encoding
from flowsieve.header.receivers import HEADER as RECEIVERS
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS, Tag
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE, DzSet, union
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sides import NEW, cells_of
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.mend import Edge, edges_of, extended, mended, tree_edges
from flowsieve.network.set_trees import SetTrees
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap, center_tree


class ControlState:
    """All interests and the tables they make; a slice of requests is one net difference.

    Only what lies in the part of its `owner` is looked at.
    """

    def __init__(
        self,
        topology: Topology,
        plan: IndexPlan,
        trees: TreeMap | None = None,
        settings: Settings | None = None,
        owner: Owner = SOLE,
        *,
        index: ServedIndex | None = None,
        crossing: Crossing | None = None,
    ) -> None:
        self.topology = topology
        self.plan = plan  # what publishers should go by
        self.index = index  # the same with its tag; None while it is the one that it began with
        self.crossing = crossing  # the way to another index, if the network is on it
        self.retired: tuple[ServedIndex, ...] = ()  # that publishers may not all have left yet
        self.before: ServedIndex | None = None  # the index that this one took the place of
        self.owner = owner
        self.settings = settings or Settings()
        self.sets = HostPlaces()
        if self.labelled:
            self.sets = self.sets.extended(topology)
        self.trees = trees or self._own_trees(topology)
        for dz, _ in self.trees:
            if not owner.part.covers(dz) and owner.shares(dz):
                raise BadInput(f"the tree of dz {str(dz)!r} reaches beyond what owner {owner.number} has")
        self.found = False  # whether the topology is one that was found, not the one it began with
        self._touched = False  # whether something was ever asked for, so that tables may follow the trees
        self.down: frozenset[Edge] = frozenset()  # links to do without
        self.fenced: frozenset[Edge] = frozenset()  # links that carry nothing, up or down
        self.bounds: dict[str, int] = {}  # what room switches turned out to have
        self.subscriptions: dict[str, Interest] = {}
        self.advertisements: dict[str, Interest] = {}
        self._tables = self._made_tables()

    def step(self, requests: Sequence[Request]) -> Outcome:
        """Take a slice of requests; what does not fit is refused one by one.

        A bad request raises before anything is changed.
        """
        self._check(requests)
        self._touched = True
        new = [self._interest(request) for request in requests]
        taken = [self._take(request, interest) for request, interest in zip(requests, new, strict=True)]
        self._weigh()
        try:
            return self._followed()
        except Refused as reason:
            if not any(request.op.adding for request in requests):
                return Outcome({}, told=self._tables.told())  # removals succeed even over capacity
            for request, interest in zip(reversed(requests), reversed(taken), strict=True):
                self._undo(request, interest)
            back: Mapping[str, list[Change]] = {}
            with suppress(Refused):  # nor did what was there before: a switch turned out to be too small
                back = self._tables.update()
            if len(requests) == 1:
                return Outcome(back, ((requests[0], reason),), steps=self._tables.begun())
        return self._one_by_one(requests, back)

    def restore(
        self, requests: Sequence[Request], covers: Sequence[DzSet] | None = None, fit: Fit | None = None
    ) -> None:
        """Take up what was in force before, though a table may have become too small for it since.

        `covers` are those of the requests' filters, where they are known, and `fit` is how tables were made to fit
        them; without it they are made to fit anew.
        """
        self._check(requests)
        self._touched = True
        if covers is None:
            covers = [self._cover(request) for request in requests]
        added = []
        for request, dz in zip(requests, covers, strict=True):
            assert request.op.adding, "what ends something is not in force"
            side = request.op.side
            taken = Interest(request.id, request.endpoint, request.filter, dz)
            self.interests(side)[request.id] = taken
            added.append((taken, side))
        self._tables.add(added)
        self._tables.told()  # publishers will ask
        if fit is not None or not self.bounded:
            self._tables.recall(fit or Fit())
            return
        self._weigh()
        self._update_anyway()

    @contextmanager
    def supposed(self, request: Request) -> Iterator[Outcome]:
        """The state as if a host had asked for something, for the time of a `with` block; nothing of it stays."""
        assert request.op.adding, "only what is added can be taken away without a trace"
        fit = self._tables.fit
        with self.bloom.supposing() if self.bloom is not None else nullcontext():
            outcome = self.step([request])
            try:
                yield outcome
            finally:
                if not outcome.refused:
                    self._undo(request, self.interests(request.op.side)[request.id])
                self._tables.recall(fit)
                self._tables.told()  # nobody hears of it

    def rewire(self, down: Collection[Edge], fenced: Collection[Edge] | None = None) -> Outcome:
        """Mend the trees, given all links that are down, and all that are fenced (None: those that are down).

        Dead edges that are fenced go out, live ones come in where something is cut off. Where the tables would not fit
        then, the trees stay as they are.
        """
        self.down, self.fenced = frozenset(down), frozenset(down if fenced is None else fenced)
        before, trees = self.trees, mended(self.trees, self.topology, self.down, self.fenced)
        if trees == before:
            return Outcome({})
        try:
            return Outcome(self._on(trees))
        except Refused as reason:
            back: Mapping[str, list[Change]] = {}
            with suppress(Refused):  # nor did what was there before
                back = self._on(before)
            return Outcome(back, unmended=reason)

    def _on(self, trees: TreeMap) -> Mapping[str, list[Change]]:
        """Go over to trees of the same partitions; what changes with them."""
        self.trees = trees
        self._tables.rewire(trees)
        return self._tables.update()

    def grow(self, topology: Topology, trees: TreeMap | None = None) -> None:
        """Go over to a network that has what this one has, and more; ports may count otherwise there.

        Links that it does not have any more carry nothing from now on. The trees are kept and mended, unless others are
        given; the first time, when nothing is built on them yet, they are made anew. Switches that no link leads to are
        served for themselves.
        """
        if self.labelled:
            self.sets = self.sets.extended(topology)
        if trees is None and not self.found and not self._touched:
            self.trees = self._own_trees(topology, self.partitions)
        there = edges_of(topology)
        self.down, self.fenced = self.down & there, self.fenced & there
        if trees is None:
            gone = tree_edges(self.trees) - there
            trees = mended(extended(self.trees, topology), topology, self.down | gone, self.fenced | gone)
        self.found, self.topology, self.trees = True, topology, trees
        self.bounds = {switch: room for switch, room in self.bounds.items() if switch in topology.switches}
        room = self.settings.room(topology)
        if self.bloom is not None:
            self.bloom.grow(topology, trees, room)
        elif self.elsewhere is not None:
            self.elsewhere.grow(topology, trees, room, self.all_interests())
        else:
            self._tables = self._made_tables()
            self._tables.add([(each, side) for side in Side for each in self.interests(side).values()])
            self._tables.told()  # it is the same as before
        self._bound_again()
        self._weigh()
        self._update_anyway()

    def divide(self, partitions: Sequence[Dz]) -> Outcome:
        """Divide the space into these partitions. Trees stay: what is joined has to be on one tree already.

        Where it is not, since trees were mended meanwhile, nothing changes.
        """
        try:
            trees = self.trees.divided(partitions)
        except BadPlan:
            return Outcome({})
        if trees == self.trees:
            return Outcome({})
        before = {} if self.elsewhere is not None else self.tables
        self.trees = trees
        if self.elsewhere is not None:
            room = self.settings.room(self.topology)
            self.elsewhere.grow(self.topology, trees, room, self.all_interests())
        else:
            self._tables = self._made_tables()
            self._tables.add([(each, side) for side, each in self.all_interests()])
        self._bound_again()
        self._weigh()
        self._update_anyway()
        return Outcome(self.changes_since(before))

    def take_bounds(self, bounds: Mapping[str, int]) -> None:
        """Switches were found to have so much room, before anything was asked of this state."""
        self.bounds = dict(bounds)
        self._bound_again()

    def _bound_again(self) -> None:
        for switch, room in self.bounds.items():
            self._tables.bound(switch, room)

    def bound(self, switch: str, capacity: int | None) -> Outcome:
        """A switch was found to have room for so many entries; raises Refused where the coarsest table needs more.

        With None nothing is known of its room any more, except for what the settings say.
        """
        if capacity is None:
            self.bounds.pop(switch, None)
            self._tables.bound(switch, self.settings.room(self.topology))
        else:
            self.bounds[switch] = capacity
            self._tables.bound(switch, capacity)
        return Outcome(self._tables.update())

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold, in dz; all of the space as one where packets are labelled."""
        return self._tables.table(switch)

    def label_table(self, switch: str) -> dict[Dz, Ports]:
        """The ports that labels may leave a switch by."""
        return self._label_tables.table(switch)

    def label_entries(self, switch: str) -> tuple[Flow, ...]:
        """What a switch should hold for labels, before anything is readdressed."""
        return self._label_tables.entries(switch)

    @property
    def labelled(self) -> bool:
        """Whether publishers match events, and packets say for whom they are: those of all hosts or of some."""
        return self.settings.labelled

    @property
    def bloom(self) -> BloomLabelledTables | None:
        """The tables, where labels are Bloom filters: they and publishers follow each other."""
        return self._tables if isinstance(self._tables, BloomLabelledTables) else None

    @property
    def elsewhere(self) -> DecidedElsewhere | None:
        """What stands in the place of tables, where configurators decide on them."""
        return self._tables if isinstance(self._tables, DecidedElsewhere) else None

    @property
    def mixed(self) -> bool:
        """Whether packets of some hosts name their receivers, and those of others go by dz."""
        return self.settings.label_hosts is not None

    def labels_events_of(self, host: str) -> bool:
        """Whether the packets of a host name their receivers."""
        some = self.settings.label_hosts
        return self.labelled if some is None else some.hold(host)

    @property
    def label_group(self) -> LabelGroup | None:
        """What those hosts send, where there are such."""
        some = self.settings.label_hosts
        return None if some is None else LabelGroup(self.label_tag.group, some)

    @property
    def label_tag(self) -> Tag:
        """What packets that name their receivers begin with."""
        return POOLS[RECEIVERS][0]

    @property
    def labels(self) -> ReceiverLabels:
        """The bits of all hosts, where packets name their receivers."""
        return ReceiverLabels(self.label_tag, self.sets.sets, self.sets.number_bits)

    @property
    def filters(self) -> PublisherFilters:
        """What publishers have to know, where they match events."""
        return self._label_tables.filters

    @property
    def _label_tables(self) -> LabelledTables | BloomLabelledTables:
        tables = self._tables.labels if isinstance(self._tables, MixedTables) else self._tables
        assert not isinstance(tables, FittedTables | DecidedElsewhere), "packets are labelled"
        return tables

    @property
    def set_trees(self) -> SetTrees:
        """The trees of sets of hosts, where packets name their receivers."""
        return SetTrees.first_of(self.trees, self.sets.spread)

    def begin_with_sets(self, sets: HostPlaces) -> None:
        """Have hosts in sets as somebody has chosen, before anything is built on them: trees follow as well."""
        assert not self.found, "trees follow the sets"
        self.sets = sets.extended(self.topology)
        if sets.spread > 1 and not self.mixed:
            self.trees = self._own_trees(self.topology)
        self.recall_sets(sets)

    def recall_sets(self, sets: HostPlaces) -> None:
        """Have hosts in the sets that they were in before, while nothing was asked for yet."""
        assert not self._touched, "tables follow the sets"
        self.sets = sets.extended(self.topology)
        self._tables = self._made_tables()

    @property
    def tables(self) -> dict[str, object]:
        """What all switches should hold, to be compared with later."""
        return {switch: self._tables.meaning(switch) for switch in self.topology.switches}

    def changes_since(self, before: Mapping[str, object]) -> dict[str, list[Change]]:
        """How the tables of some switches differ from what they should have held before."""
        found = {}
        for switch, meaning in before.items():
            if meaning != (now := self._tables.meaning(switch)):
                found[switch] = self._tables.changes(meaning, now)
        return found

    def size(self, switch: str) -> int:
        """How many entries a switch should hold."""
        return self._tables.size(switch)

    def capacity(self, switch: str) -> int | None:
        """How many entries a switch has room for, if that is bounded."""
        return self._tables.capacity.get(switch)

    def dz_capacity(self, switch: str) -> int | None:
        """How many of them may be for dz."""
        tables = self._tables.dz if isinstance(self._tables, MixedTables) else self._tables
        return tables.capacity.get(switch)

    @property
    def bounded(self) -> bool:
        """Whether some table has a capacity: only then does it matter in which order requests came."""
        return self._tables.bounded

    @property
    def fit(self) -> Fit:
        """How the tables were made to fit: what of them does not follow from the interests alone."""
        return self._tables.fit

    def check(self, *requests: Request) -> None:
        """Raise if no state like this one could take the requests, one after the other."""
        self._check(requests)

    def waste(self) -> dict[str, float]:
        """The unwanted copies per event that each coarsened table is expected to send."""
        return self._tables.waste()

    def interests(self, side: Side) -> dict[str, Interest]:
        """All of one side, by id."""
        return self.subscriptions if side is Side.SUBSCRIBER else self.advertisements

    def all_interests(self) -> list[tuple[Side, Interest]]:
        """All of both sides, publishers first."""
        return [(side, each) for side in reversed(Side) for each in self.interests(side).values()]

    @property
    def partitions(self) -> list[Dz]:
        """The parts of the space that have a tree each; no entry reaches beyond its part."""
        return [dz for dz, _ in self.trees]

    def view(self, encoding: Encoding, tables: Mapping[str, tuple[Flow, ...]]) -> NetworkView:
        """The network as it is meant to be, with what its switches hold."""
        offers, wants = tuple(self.advertisements.values()), tuple(self.subscriptions.values())
        return NetworkView(
            self.topology, self.plan, encoding, tables, offers, wants, self.down, self.trees, self.owner
        )

    def label_view(self, tables: Mapping[str, tuple[Flow, ...]]) -> LabelView:
        """The same where packets name their receivers."""
        return LabelView(
            self.topology,
            self.set_trees,
            self.labels,
            self.plan.schema,
            tables,
            tuple(self.advertisements.values()),
            tuple(self.subscriptions.values()),
            policy=self.settings.policy,
        )

    def publishes(self, host: str) -> list[Interest]:
        return [interest for interest in self.advertisements.values() if interest.endpoint == host]

    def advertised_at(self, switch: str) -> dict[str, DzSet]:
        """All that the endpoints at a switch have advertised, by their names."""
        there: dict[str, list[DzSet]] = {name: [] for name in self.topology.attached_at(switch)}
        for interest in self.advertisements.values():
            if interest.endpoint in there:
                there[interest.endpoint].append(interest.dz)
        return {name: union(sets) for name, sets in there.items() if sets}

    def _followed(self) -> Outcome:
        """What changes with all that was asked for."""
        changes = self._tables.update()
        return Outcome(changes, told=self._tables.told(), steps=self._tables.begun())

    def _made_tables(
        self,
    ) -> FittedTables | LabelledTables | MixedTables | BloomLabelledTables | DecidedElsewhere:
        """Tables for the network and the trees as they are, without any interest."""
        room, policy = self.settings.room(self.topology), self.settings.policy
        if self.settings.elsewhere:
            return DecidedElsewhere(self.topology, self.trees, room)
        if self.settings.bloom is not None:
            return BloomLabelledTables(self.topology, self.trees, self.settings.bloom, self.plan.schema, room)
        if self.labelled and not self.mixed:
            return LabelledTables(self.topology, self.trees, self.labels, room, policy, self.sets.spread)
        compiler = Compiler(self.topology, self.trees, self.settings.tables)
        if not self.labelled:
            return FittedTables(compiler, room)
        labels = LabelledTables(self.topology, self.trees, self.labels, room, policy, self.sets.spread)
        return MixedTables(compiler, labels, self.labels_events_of)

    def _own_trees(self, topology: Topology, partitions: Sequence[Dz] = ()) -> TreeMap:
        """Trees for a network on which nothing is built yet: of sets of hosts that have some, of partitions, or one."""
        if self.sets.spread > 1 and not self.mixed:
            sets = SetTrees.over(topology, self.sets.sets, self.sets.spread)
            return TreeMap(tuple(zip(Division.even(len(sets)).partitions, sets.trees, strict=True)))
        return TreeMap.over(topology, partitions) if len(partitions) > 1 else self._one_tree(topology)

    def _one_tree(self, topology: Topology) -> TreeMap:
        """One tree for all; what is the owner's and what is not are parts of their own, so that no entry is in both."""
        tree, part = center_tree(topology), self.owner.part
        return TreeMap(tuple((dz, tree) for dz in (*part, *(WHOLE - part))))

    def _one_by_one(self, requests: Sequence[Request], back: Mapping[str, list[Change]]) -> Outcome:
        before, refused = self.tables, list[tuple[Request, Refused]]()
        told, steps = dict[str, list[FilterChange]](), list[int]()
        gone: set[tuple[Side, str]] = set()

        def breadth(at: int) -> float:
            return self._cover(requests[at]).share if requests[at].op.adding else 0.0

        for at in broad_first([request.op for request in requests], breadth):
            request = requests[at]
            key = (request.op.side, request.id)
            if not request.op.adding and key in gone:
                gone.remove(key)
                continue
            outcome = self.step([request])
            refused += outcome.refused
            steps += outcome.steps
            for publisher, some in outcome.told.items():
                told.setdefault(publisher, []).extend(some)
            if outcome.refused:
                gone.add(key)
        changes = self.changes_since(before)
        changes = {**back, **changes} if self.labelled and not self.mixed else joined(back, changes)
        return Outcome(changes, tuple(refused), told=told, steps=tuple(steps))

    def _update_anyway(self) -> None:
        """Have tables for all that is in force; where a switch has no room for it, that is its own trouble alone."""
        if isinstance(self._tables, FittedTables):
            self._tables.update(anyway=True)
            return
        for _ in range(len(self.topology.switches) + 1):
            try:
                self._tables.update()
                return
            except TableFull as full:
                self._tables.bound(full.switch, None)

    def _weigh(self) -> None:
        """Now and then, if tables are bounded, see where to expect events: subscriptions hint at it."""
        there, weighed = len(self.subscriptions), self._tables.weights.interests
        if self.bounded and not self.labelled and abs(there - weighed) * 10 > weighed:
            interests = [interest.dz for interest in self.subscriptions.values()]
            self._tables.weights = Weights.of_events(interests, self.sampled)

    def _check(self, requests: Sequence[Request]) -> None:
        """Raise at the first request that no state could take."""
        check_requests(requests, self.topology, self.trees.parts[0][1], self.interests)

    def _interest(self, request: Request) -> Interest | None:
        """What a request that adds something adds."""
        if not request.op.adding:
            return None
        return Interest(request.id, request.endpoint, request.filter, self._cover(request))

    def _cover(self, request: Request) -> DzSet:
        if self.crossing is not None:
            cover = self.crossing.cover(request.filter, self._cover_under)
        elif request.filter is None:
            assert request.dz is not None
            cover = request.dz
        else:
            return self.cover(request.filter)
        return cover if self.owner.part is WHOLE else cover & self.owner.part

    def cover(self, wanted: Filter) -> DzSet:
        """The dz that stand for a filter at rest, whatever else is asked for."""
        cover = self._cover_under(self.plan, wanted)
        return cover if self.owner.part is WHOLE else cover & self.owner.part

    def _cover_under(self, plan: IndexPlan, wanted: Filter) -> DzSet:
        """The dz that stand for a filter under a plan."""
        return self.settings.cover_rule.cover(plan, wanted, self.settings.sample_under(plan))

    def encoding_now(self, first: Encoding) -> Encoding:
        """How dz stand in packets: as at first, unless the network has gone over to another, or is at it."""
        if self.crossing is not None:
            return self.crossing.encoding
        return first if self.index is None else self.index.encoding

    @property
    def sampled(self) -> NDArray[np.uint64] | None:
        """Where the events of the sample fell (rows of hi, lo, sorted), in the space that tables are about."""
        if self.crossing is not None:
            return self.crossing.events(self.settings.sample_under)
        return None if self.settings.sample is None else events_of(self.settings.sample)

    def told_cover(self, interest: Interest) -> DzSet:
        """The dz of an interest as its client knows them: under the index that publishers should use."""
        crossing = self.crossing
        if crossing is None or interest.filter is None:
            return interest.dz
        if crossing.phase.revocable:  # all is carried, which nobody may count on
            return self._cover_under(crossing.old.plan, interest.filter)
        return cells_of(NEW, interest.dz)

    def _take(self, request: Request, new: Interest | None) -> Interest:
        book = self.interests(request.op.side)
        if new is None:
            interest = book.pop(request.id)
        else:
            interest = book[request.id] = new
        self._count(request, interest, adding=request.op.adding)
        return interest

    def _undo(self, request: Request, interest: Interest) -> None:
        book = self.interests(request.op.side)
        if request.op.adding:
            del book[request.id]
        else:
            book[request.id] = interest
        self._count(request, interest, adding=not request.op.adding)

    def _count(self, request: Request, interest: Interest, *, adding: bool) -> None:
        self._tables.change(interest, request.op.side, adding=adding)
