"""The controller of a network whose labels are Bloom filters: tables follow the filters that are wanted.

First the tables take in what is new, then publishers send its bits, and when what they sent before has arrived the
tables lose what is no longer asked for. So at every moment tables know all that publishers may send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from flowsieve.content.schema import Schema
from flowsieve.control.label_controller import carried_out, label_changes
from flowsieve.control.request import Op, Request
from flowsieve.control.request_check import check_requests
from flowsieve.control.state import Outcome
from flowsieve.errors import Refused, TableFull
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.covering import Covering
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow
from flowsieve.flow.held_filters import HeldFilters
from flowsieve.flow.interest import Interest
from flowsieve.flow.proof.bloom_verify import verify_bloom
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.label_explain import explain_labels
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling, Patterns
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dzset import WHOLE
from flowsieve.southbound.fabric import Switches

Taken = tuple[Request, Refused]


class BloomController:
    """All interests, what publishers hold of them, and the switches' tables.

    An interest's dz are all of the space: labels know nothing of contents. Where an end of a subscription would make
    tables larger than they may be, since what it covered comes back, its filter stays with publishers and tables
    until there is room.
    """

    def __init__(
        self,
        labelling: BloomLabelling,
        copies: Shares,
        schema: Schema,
        switches: Switches,
        capacity: int | None = None,
    ) -> None:
        self.labelling = labelling
        self.copies = copies
        self.schema = schema
        self.switches = switches
        self.capacity = capacity
        self.operations = 0
        self.subscriptions: dict[str, Interest] = {}
        self.advertisements: dict[str, Interest] = {}
        self.leaving: list[Interest] = []  # ended, but still in the tables
        self._covering = Covering()
        self.held = self._held()
        # What the tables ask for, as far as switches have acknowledged it.
        self.patterns: Patterns = dict.fromkeys(labelling.ports, frozenset())
        self._fixed = {switch: len(table) for switch, table in labelling.tables({}).items()}

    def submit(self, requests: Sequence[Request]) -> Outcome:
        """Serve a slice of requests; on return switches and publishers have followed.

        What does not fit the tables is refused one by one. A bad request raises before anything is changed.
        """
        check_requests(requests, self.labelling.topology, self.labelling.tree, self.interests)
        refused: list[Taken] = []
        self._serve(requests, refused)
        for each in tuple(self.leaving):
            self._let_go(each)
        return Outcome({}, tuple(refused))

    def interests(self, side: Side) -> dict[str, Interest]:
        """All of one side, by id."""
        return self.subscriptions if side is Side.SUBSCRIBER else self.advertisements

    def repair(self) -> int:
        """Make all tables what they should be, whatever the switches hold; how many operations it took."""
        before = self.operations
        wanted, group = self.labelling.tables(self.patterns), self.labelling.labels.tag.group
        self._carry_out(
            {
                switch: list(label_changes(group, held, wanted[switch]))
                for switch, held in self.tables().items()
            }
        )
        return self.operations - before

    def tables(self) -> dict[str, tuple[Flow, ...]]:
        """What the switches hold."""
        return {switch: self.switches.read(switch) for switch in self.labelling.topology.switches}

    def view(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> BloomView:
        """The network with the tables that its switches hold, or with others."""
        return BloomView(
            self.labelling,
            self.copies,
            self.schema,
            self.held,
            self.tables() if tables is None else tables,
            tuple(self.advertisements.values()),
            tuple(self.subscriptions.values()),
        )

    def verify(self, tables: Mapping[str, tuple[Flow, ...]] | None = None) -> Verdict:
        """Prove that tables, those in the switches unless others are given, bring packets to whom they are for."""
        return verify_bloom(self.view(tables))

    def explain(self, host: str, values: Mapping[str, object]) -> Explanation:
        """Show, hop by hop, why an event that a host publishes goes where it goes."""
        return explain_labels(self.view(), host, values)

    # Requests.

    def _serve(self, requests: Sequence[Request], refused: list[Taken]) -> None:
        """Serve requests together if they fit, or else in halves, so that those alone are refused that do not."""
        before = dict(self.subscriptions), dict(self.advertisements)
        for request in requests:
            self._take(request)
        try:
            self._follow()
            return
        except TableFull as error:
            full = error
        self.subscriptions, self.advertisements = before
        if len(requests) > 1:
            middle = len(requests) // 2
            self._serve(requests[:middle], refused)
            self._serve(requests[middle:], refused)
        elif requests[0].op is Op.UNSUBSCRIBE:
            self.leaving.append(self.subscriptions.pop(requests[0].id))
        else:
            refused.append((requests[0], full))

    def _take(self, request: Request) -> None:
        book = self.interests(request.op.side)
        if request.op.adding:
            book[request.id] = Interest(request.id, request.endpoint, request.filter, WHOLE)
        else:
            book.pop(request.id, None)  # it is not there if it was refused a moment ago

    def _let_go(self, gone: Interest) -> None:
        """Take a filter that is no longer wanted out of the tables, if there is room for what it covers."""
        self.leaving.remove(gone)
        try:
            self._follow()
        except TableFull:
            self.leaving.append(gone)

    # Tables.

    def _follow(self) -> None:
        """Bring tables and publishers to what is wanted now; TableFull, and nothing changed, where that has no room."""
        held = self._held()
        if held.wanted == self.held.wanted:
            return
        patterns = self.labelling.patterns(held.wanted, self._covering)
        both = {each: self.patterns[each] | some for each, some in patterns.items()}
        for switch, needed in self._entries(both).items():
            if self.capacity is not None and needed > self.capacity:
                raise TableFull(switch=switch, needed=needed, capacity=self.capacity)
        try:
            self._carry_out(self._ops(OpKind.INSTALL, both, self.patterns))
        except TableFull:
            self.repair()  # what others have taken of the table is not known before; some entries may be there
            raise
        self.patterns = both
        self.held = held  # publishers follow; what they sent before is under way until switches have settled
        self.switches.settle()
        self._carry_out(self._ops(OpKind.REMOVE, both, patterns))
        self.patterns = patterns

    def _held(self) -> HeldFilters:
        subscriptions = [*self.subscriptions.values(), *self.leaving]
        return HeldFilters.of(subscriptions, self._covering, self.labelling.topology, self.labelling.tree)

    def _ops(self, kind: OpKind, more: Patterns, less: Patterns) -> dict[str, list[FlowOp]]:
        """An operation for each entry that one of two states of the tables has and the other has not."""
        found: dict[str, list[FlowOp]] = {}
        for each, some in more.items():
            for pattern in sorted(some - less[each]):
                found.setdefault(each.switch, []).append(FlowOp(kind, self.labelling.entry(each, pattern)))
        return found

    def _entries(self, patterns: Patterns) -> dict[str, int]:
        found = Counter(self._fixed)
        for each, some in patterns.items():
            found[each.switch] += len(some)
        return dict(found)

    def _carry_out(self, changes: Mapping[str, Sequence[FlowOp]]) -> None:
        self.operations += carried_out(self.switches, changes)
