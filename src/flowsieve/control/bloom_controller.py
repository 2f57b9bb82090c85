"""The controller of a network whose labels are Bloom filters: tables follow the filters that are wanted.

First the tables take in what is new, then publishers send its bits, and when what they sent before has arrived the
tables lose what is no longer asked for. So at every moment tables know all that publishers may send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.control.label_controller import carried_out
from flowsieve.control.request import Op, Request
from flowsieve.control.request_check import check_requests
from flowsieve.control.state import Outcome
from flowsieve.errors import Refused, TableFull
from flowsieve.flow.bloom_view import BloomView
from flowsieve.flow.capacity.packet_guess import packets_expected
from flowsieve.flow.capacity.pattern_merging import PacketSample
from flowsieve.flow.diff import FlowOp
from flowsieve.flow.entry import Flow
from flowsieve.flow.filter_book import FilterBook
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_diff import label_ops, within
from flowsieve.flow.proof.bloom_verify import verify_bloom
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.label_explain import explain_labels
from flowsieve.flow.proof.verify import Verdict
from flowsieve.flow.shares import Shares
from flowsieve.flow.tables.bloom_tables import BloomLabelling
from flowsieve.flow.tables.compiler import Side
from flowsieve.flow.tables.port_entries import Exchanges, PortEntries
from flowsieve.index.dzset import WHOLE
from flowsieve.southbound.fabric import Switches

Taken = tuple[Request, Refused]
GUESSED_ANEW = 16  # the packets to be expected are, when one in so many filters has changed


class BloomController:
    """All interests, what publishers hold of them, and the switches' tables.

    An interest's dz are all of the space: labels know nothing of contents. Tables that would exceed the `capacity` have
    entries merged, by the packets of `sample` events, or by what is wanted. Where a switch has no room for what the end
    of a subscription brings back, since that was covered, its filter stays with publishers and tables until there is.

    `held` and `offered` are what publishers hold and what they may publish, as they have been told so far.
    """

    def __init__(
        self,
        labelling: BloomLabelling,
        copies: Shares,
        schema: Schema,
        switches: Switches,
        capacity: int | None = None,
        sample: EventBatch | None = None,
        book: FilterBook | None = None,
    ) -> None:
        self.labelling = labelling
        self.copies = copies
        self.schema = schema
        self.switches = switches
        self.operations = 0
        self.subscriptions: dict[str, Interest] = {}
        self.advertisements: dict[str, Interest] = {}
        self.leaving: list[Interest] = []  # ended, but still in the tables
        room = {} if capacity is None else dict.fromkeys(labelling.topology.switches, capacity)
        self.ports = PortEntries(labelling, room, self._traffic)
        self._book = book or FilterBook(labelling)
        self.held = self._book.held()
        self.offered: tuple[Interest, ...] = ()
        self._sample = sample
        self._guess: PacketSample | None = None
        self._changed = 0  # filters, since the packets to be expected were guessed
        self._step = 0  # what was asked for and publishers have not heard of yet

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
        wanted, group = self.labelling.tables(self.ports.entries), self.labelling.labels.tag.group
        self._carry_out(
            {switch: label_ops(within(group, held), wanted[switch]) for switch, held in self.tables().items()}
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
            self.offered,
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
        self._go_back(*before)
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
            self._enter(request.op.side, book[request.id])
        elif request.id in book:  # it is not there if it was refused a moment ago
            self._strike(request.op.side, book.pop(request.id))

    def _go_back(self, subscriptions: dict[str, Interest], advertisements: dict[str, Interest]) -> None:
        """Want again what was wanted before."""
        for side, before in ((Side.SUBSCRIBER, subscriptions), (Side.PUBLISHER, advertisements)):
            now = self.interests(side)
            for name in now.keys() | before.keys():
                if now.get(name) is not before.get(name):
                    if name in before:
                        self._enter(side, before[name])
                    if name in now:
                        self._strike(side, now[name])
        self.subscriptions, self.advertisements = subscriptions, advertisements

    def _enter(self, side: Side, interest: Interest) -> None:
        for filter in interest.filters:
            if side is Side.SUBSCRIBER:
                self._book.subscribe(interest.endpoint, filter, self._step)
            else:
                self._book.advertise(interest.endpoint, filter)

    def _strike(self, side: Side, interest: Interest) -> None:
        for filter in interest.filters:
            if side is Side.SUBSCRIBER:
                self._book.unsubscribe(interest.endpoint, filter, self._step)
            else:
                self._book.unadvertise(interest.endpoint, filter)

    def _let_go(self, gone: Interest) -> None:
        """Take a filter that is no longer wanted out of the tables, if there is room for what it covers."""
        self.leaving.remove(gone)
        self._strike(Side.SUBSCRIBER, gone)
        try:
            self._follow()
        except TableFull:
            self._enter(Side.SUBSCRIBER, gone)
            self.leaving.append(gone)

    # Tables.

    def _follow(self) -> None:
        """Bring tables and publishers to what is wanted now; TableFull, and nothing changed, where that has no room."""
        first = self._book.changes()
        more = self.labelling.at_ports({each: now & ~before for each, (before, now) in first.items()})
        exchanges = self.ports.taking_in(more)
        try:
            self._exchange(exchanges)
        except TableFull:
            self._look_again()
            raise
        self.ports.took_in(more, exchanges)
        # Publishers follow; what they sent before is under way until switches have settled.
        self.held, self.offered = self._book.held(), tuple(self.advertisements.values())
        self._book.follow(first)
        self._book.resolve(self._step)
        self._step += 1
        then = self._book.changes()
        self._book.follow(then)
        self._changed += len(first.keys() | then.keys())
        gone = {each: before & ~now for each, (before, now) in first.items()}
        for each, (before, now) in then.items():
            gone[each] = (gone.get(each, 0) | before) & ~now
        if less := self.labelling.at_ports(gone):
            self.switches.settle()
            exchanges = self.ports.letting_go(less)
            try:
                self._exchange(exchanges)
                self.ports.let_go(less, exchanges)
            except TableFull:
                self.ports.let_go(less, {})
                self._look_again()

    def _traffic(self) -> PacketSample:
        """The packets to be expected, guessed anew now and then."""
        if self._guess is None or self._changed * GUESSED_ANEW > len(self.held):
            interests = self.advertisements.values()
            labels = self.labelling.labels
            self._guess = packets_expected(
                self.schema, self._book.held(), list(interests), labels, self.copies, self._sample
            )
            self._changed = 0
        return self._guess

    def _look_again(self) -> None:
        """Go by what switches hold, after one has refused an entry: what others have taken of its table is not known
        before. Nothing is lost with what was done so far, and what is not needed goes."""
        self.ports.adopt(self.tables())
        exchanges = self.ports.tidied()
        self._exchange(exchanges)
        self.ports.let_go({}, exchanges)

    def _exchange(self, exchanges: Exchanges) -> None:
        self._carry_out(self.ports.ops(exchanges))

    def _carry_out(self, changes: Mapping[str, Sequence[FlowOp]]) -> None:
        self.operations += carried_out(self.switches, changes)
