"""The control plane's state: who wants and publishes what, and the tables that follow. A step decides; it touches no switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowsieve.errors import BadInput, Refused, nearest
from flowsieve.control.request import Op, Request
from flowsieve.flow.capacity import FittedTables
from flowsieve.flow.compiler import Compiler, Side, Tables
from flowsieve.flow.diff import Change, Ports, changes_between
from flowsieve.flow.interest import Interest
from flowsieve.flow.weights import BY_VOLUME, Weights
from flowsieve.index.sample import EventSample
from flowsieve.index.dz import Dz
from flowsieve.index.plan import IndexPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap, center_tree, hosts_behind

DEFAULT_BUDGET = 32


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may choose; the defaults suit a network without tight tables.

    `budget`: dz per filter, 0 for exact covers. `capacity`: entries per switch. `sample`: where events fall, so that budgets and
    tables are spent there.
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
        self.subscriptions: dict[str, Interest] = {}
        self.advertisements: dict[str, Interest] = {}
        sample = self.settings.sample
        weights = Weights.of_sample(sample.hi, sample.lo) if sample is not None else BY_VOLUME
        self._weighed = 0
        compiler = Compiler(topology, self.trees, self.settings.tables)
        self._tables = FittedTables(compiler, self.settings.capacity, weights)

    def step(self, requests: Sequence[Request]) -> Outcome:
        """Take a slice of requests. Bad ones raise before anything is changed; what does not fit is refused one by one."""
        self._check(requests)
        taken = [self._take(request) for request in requests]
        self._weigh()
        try:
            return Outcome(self._tables.update())
        except Refused as reason:
            for request, interest in zip(reversed(requests), reversed(taken), strict=True):
                self._undo(request, interest)
            if len(requests) == 1:
                self._tables.update()
                return Outcome({}, ((requests[0], reason),))
        return self._one_by_one(requests)

    def table(self, switch: str) -> dict[Dz, Ports]:
        """What a switch should hold."""
        return self._tables.table(switch)

    def waste(self) -> dict[str, float]:
        """The unwanted copies per event that each coarsened table is expected to send."""
        return self._tables.waste()

    def behind(self, switch: str, port: int) -> frozenset[str]:
        """The hosts that a switch can reach through a port on some tree."""
        return frozenset().union(*(hosts_behind(self.topology, tree, switch, port) for tree in self.trees.trees))

    def publishes(self, host: str) -> list[Interest]:
        return [interest for interest in self.advertisements.values() if interest.host == host]

    def _one_by_one(self, requests: Sequence[Request]) -> Outcome:
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
        return Outcome({switch: found for switch, found in changes.items() if found}, tuple(refused))

    def _weigh(self) -> None:
        """Where tables are bounded and no sample tells where events fall, guess it from the subscriptions, now and then."""
        there = len(self.subscriptions)
        if self.settings.capacity is None or self.settings.sample is not None:
            return
        if abs(there - self._weighed) * 10 > self._weighed:
            self._weighed = there
            self._tables.weights = Weights.of_interests([interest.dz for interest in self.subscriptions.values()])

    def _book(self, side: Side) -> dict[str, Interest]:
        return self.subscriptions if side is Side.SUBSCRIBER else self.advertisements

    def _check(self, requests: Sequence[Request]) -> None:
        """Raise at the first request that no state could take."""
        owners = {side: {name: interest.host for name, interest in self._book(side).items()} for side in Side}
        for request in requests:
            known = owners[request.op.side]
            if request.host not in self.topology.hosts:
                raise BadInput(f"there is no host {request.host!r}{nearest(request.host, self.topology.hosts)}")
            if not self.topology.reachable(request.host):
                raise BadInput(f"host {request.host!r} is in a part of the network that is cut off")
            if request.op.adding:
                if request.id in known:
                    raise BadInput(f"the id {request.id!r} of this {request.op.value} is in use already")
                known[request.id] = request.host
            elif known.pop(request.id, None) != request.host:
                raise BadInput(f"host {request.host!r} has no {_ended(request.op)} {request.id!r} to end")

    def _take(self, request: Request) -> Interest:
        book = self._book(request.op.side)
        if request.filter is None:
            interest = book.pop(request.id)
        else:
            dz = self.plan.cover(request.filter, self.settings.budget, self.settings.sample)
            interest = book[request.id] = Interest(request.id, request.host, request.filter, dz)
        self._count(request, interest, adding=request.op.adding)
        return interest

    def _undo(self, request: Request, interest: Interest) -> None:
        book = self._book(request.op.side)
        if request.op.adding:
            del book[request.id]
        else:
            book[request.id] = interest
        self._count(request, interest, adding=not request.op.adding)

    def _count(self, request: Request, interest: Interest, *, adding: bool) -> None:
        self._tables.compiler.change(interest.host, request.op.side, interest.dz, adding=adding)


def _ended(op: Op) -> str:
    return "subscription" if op is Op.UNSUBSCRIBE else "advertisement"
