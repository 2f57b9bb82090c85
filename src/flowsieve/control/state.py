"""The control plane's state: who wants and publishes what, and the tables that follow. It only decides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput, Refused, nearest
from flowsieve.flow.capacity import FittedTables
from flowsieve.flow.compiler import Compiler, Side, Tables
from flowsieve.flow.diff import Change, Ports, changes_between, joined
from flowsieve.flow.interest import Interest
from flowsieve.flow.weights import Weights
from flowsieve.index.dz import Dz
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.mend import Edge, mended
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap, center_tree

DEFAULT_BUDGET = 32


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may choose; the defaults suit a network without tight tables.

    `budget`: dz per filter, 0 for exact covers. `capacity`: entries per switch. `sample`: where events fall,
    so that budgets and tables are spent there.
    """

    budget: int = DEFAULT_BUDGET
    capacity: int | None = None
    tables: Tables = Tables.OVERLAY
    sample: EventSample | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a slice of requests comes to: the net changes per switch, and what could not be served."""

    changes: Mapping[str, list[Change]]
    refused: tuple[tuple[Request, Refused], ...] = field(default=())

    @property
    def operations(self) -> int:
        return sum(map(len, self.changes.values()))


class ControlState:
    """All interests and the tables they make; a slice of requests is one net difference."""

    def __init__(
        self,
        topology: Topology,
        plan: IndexPlan,
        trees: TreeMap | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.topology = topology
        self.plan = plan
        self.trees = trees or TreeMap.single(center_tree(topology))
        self.settings = settings or Settings()
        self.down: frozenset[Edge] = frozenset()  # links that carry nothing
        self.bounds: dict[str, int] = {}  # what room switches turned out to have
        self.subscriptions: dict[str, Interest] = {}
        self.advertisements: dict[str, Interest] = {}
        self._weighed = 0
        compiler = Compiler(topology, self.trees, self.settings.tables)
        self._tables = FittedTables(compiler, self.settings.capacity)

    def step(self, requests: Sequence[Request]) -> Outcome:
        """Take a slice of requests; what does not fit is refused one by one.

        A bad request raises before anything is changed.
        """
        self._check(requests)
        new = [self._interest(request) for request in requests]
        taken = [self._take(request, interest) for request, interest in zip(requests, new, strict=True)]
        self._weigh()
        try:
            return Outcome(self._tables.update())
        except Refused as reason:
            if not any(request.op.adding for request in requests):
                return Outcome({})  # what was there did not fit; who leaves shall not have to stay for it
            for request, interest in zip(reversed(requests), reversed(taken), strict=True):
                self._undo(request, interest)
            back: Mapping[str, list[Change]] = {}
            with suppress(
                Refused
            ):  # nor did what was there before, since a switch turned out to be too small
                back = self._tables.update()
            if len(requests) == 1:
                return Outcome(back, ((requests[0], reason),))
        return self._one_by_one(requests, back)

    def restore(self, requests: Sequence[Request]) -> None:
        """Take up what was in force before, though a table may have become too small for it since."""
        self._check(requests)
        for request in requests:
            self._take(request, self._interest(request))
        self._weigh()
        with suppress(Refused):
            self._tables.update()

    def rewire(self, down: Collection[Edge]) -> Outcome:
        """Mend the trees, given all links that are down: dead edges out, live ones in where something is cut off."""
        trees = mended(self.trees, self.topology, down)
        if trees != self.trees:
            self.trees = trees
            self._tables.compiler.rewire(trees)
        self.down = frozenset(down)
        return Outcome(self._tables.update())

    def bound(self, switch: str, capacity: int) -> Outcome:
        """A switch turned out to have room for so many entries; raises Refused where the coarsest table needs more."""
        self.bounds[switch] = capacity
        self._tables.bound(switch, capacity)
        return Outcome(self._tables.update())

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold."""
        return self._tables.table(switch)

    def capacity(self, switch: str) -> int | None:
        """How many entries a switch has room for, if that is bounded."""
        return self._tables.capacity.get(switch)

    @property
    def bounded(self) -> bool:
        """Whether some table has a capacity: only then does it matter in which order requests came."""
        return bool(self._tables.capacity)

    def check(self, request: Request) -> None:
        """Raise if no state like this one could take a request."""
        self._check([request])

    def waste(self) -> dict[str, float]:
        """The unwanted copies per event that each coarsened table is expected to send."""
        return self._tables.waste()

    def interests(self, side: Side) -> dict[str, Interest]:
        """All of one side, by id."""
        return self.subscriptions if side is Side.SUBSCRIBER else self.advertisements

    def publishes(self, host: str) -> list[Interest]:
        return [interest for interest in self.advertisements.values() if interest.host == host]

    def _one_by_one(self, requests: Sequence[Request], back: Mapping[str, list[Change]]) -> Outcome:
        before = {switch: self.table(switch) for switch in self.topology.switches}
        refused: list[tuple[Request, Refused]] = []
        gone: set[tuple[Side, str]] = set()
        for request in requests:
            key = (request.op.side, request.id)
            if not request.op.adding and key in gone:
                gone.remove(key)
                continue
            outcome = self.step([request])
            refused += outcome.refused
            if outcome.refused:
                gone.add(key)
        changes = {switch: changes_between(table, self.table(switch)) for switch, table in before.items()}
        return Outcome(joined(back, changes), tuple(refused))

    def _weigh(self) -> None:
        """Now and then, if tables are bounded, see where to expect events: subscriptions hint at it."""
        there = len(self.subscriptions)
        if self._tables.capacity and abs(there - self._weighed) * 10 > self._weighed:
            self._weighed = there
            interests = [interest.dz for interest in self.subscriptions.values()]
            self._tables.weights = Weights.of(interests, self.settings.sample)

    def _check(self, requests: Sequence[Request]) -> None:
        """Raise at the first request that no state could take."""
        owners: dict[tuple[Side, str], str | None] = {}  # as the requests before change them
        for request in requests:
            key = (request.op.side, request.id)
            there = self.interests(request.op.side).get(request.id)
            owner = owners.get(key, there and there.host)
            if request.host not in self.topology.hosts:
                hint = nearest(request.host, self.topology.hosts)
                raise BadInput(f"there is no host {request.host!r}{hint}")
            if not self.topology.reachable(request.host):
                raise BadInput(f"host {request.host!r} is in a part of the network that is cut off")
            if request.op.adding:
                if owner is not None:
                    raise BadInput(f"the id {request.id!r} of this {request.op.value} is in use already")
            elif owner != request.host:
                raise BadInput(f"host {request.host!r} has no {_ended(request.op)} {request.id!r} to end")
            owners[key] = request.host if request.op.adding else None

    def _interest(self, request: Request) -> Interest | None:
        """What a request that adds something adds."""
        if request.filter is None:
            return None
        dz = self.plan.cover(request.filter, self.settings.budget, self.settings.sample)
        return Interest(request.id, request.host, request.filter, dz)

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
        self._tables.compiler.change(interest.host, request.op.side, interest.dz, adding=adding)


def _ended(op: Op) -> str:
    return "subscription" if op is Op.UNSUBSCRIBE else "advertisement"
