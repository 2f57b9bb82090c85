"""Where clients' calls are answered, however they come: each call of a session is carried out once.

A client that asks again, because an answer was lost or the controller restarted, gets the same answer. What a client
asked for stays in force while it is heard of now and then (see `leases`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

from flowsieve.content.filter import Filter
from flowsieve.content.schema import shown
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.memory.journal import Origin
from flowsieve.control.request import Op, Request, free_id
from flowsieve.control.requests.ledger import RequestRecord
from flowsieve.errors import BadInput, BadMessage, Busy, Denied, FlowsieveError, nearest
from flowsieve.protocol.answer import FAILED, Answer, answer_of, error_of, kind_in, refusal
from flowsieve.protocol.call import BYE, DEADLINE_SECONDS, FILTERS, HELLO, REPORT, Call
from flowsieve.protocol.event_keys import UNSIGNED
from flowsieve.protocol.report import NO_TELEMETRY, Report, TelemetryTerms
from flowsieve.protocol.welcome import Welcome
from flowsieve.serving.calls import index_telling
from flowsieve.serving.calls.key_rotation import KeyRotation
from flowsieve.serving.calls.leases import Leases
from flowsieve.serving.calls.sessions import ClientSession, ClientSessions, session_text
from flowsieve.serving.calls.tokens import Tokens
from flowsieve.serving.fair_shares import FairShares
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.tasks import Tasks

log = logging.getLogger(__name__)

LEASE_SECONDS = 30.0
AT_ONCE = 64  # calls of one session
MOST_AT_ONCE = 4096  # calls of all
TICK_SECONDS = 0.5
ASKS = 3  # of a publisher for filters, within the lease that it holds them for
_REQUESTS = {op.value: op for op in Op}


class Observer(Protocol):
    """Counts calls, and what clients report."""

    def asked(self, op: str, outcome: str, seconds: float) -> None: ...

    def client_reported(self, session: str, stats: Mapping[str, object]) -> None: ...

    def client_left(self, session: str) -> None: ...


class CallHandler:
    """`call` answers; `run` ends what silent clients have asked for.

    `groups` says where events for each host come in: the group that is the host's own. Without `tokens` every host
    is believed, and without `keys` every datagram; without `reports` none are asked for. `standing_by` says why
    nothing can be done for anybody, if that is so.
    """

    def __init__(
        self,
        service: Dispatcher,
        groups: Mapping[str, str],
        interface: str | None = None,
        *,
        tokens: Tokens | None = None,
        keys: KeyRotation | None = None,
        lease: float = LEASE_SECONDS,
        observer: Observer | None = None,
        most: int = MOST_AT_ONCE,
        standing_by: Callable[[], str | None] = lambda: None,
        reports: ReportIntake | None = None,
    ) -> None:
        self.service = service
        self.groups = groups
        self.interface = interface
        self.leases = Leases(lease)
        self._tokens = tokens
        self._keys = keys
        self._observer = observer
        self._slots = FairShares(most)  # by host: one whose switch is away does not take those of others
        self._standing_by = standing_by
        self.reports = reports
        self._numbers = count(1)
        self._running: dict[tuple[str, int], asyncio.Task[Answer]] = {}
        self._sessions = ClientSessions()
        self._endings = asyncio.Semaphore(AT_ONCE)
        for session in service.ledger.sessions:
            host = service.ledger.host(session)
            if host is not None:
                self._sessions.restore(session, host)
            self.leases.renew(session, time.monotonic(), service.ledger.promised)

    @property
    def under_way(self) -> int:
        """How many calls are being worked on."""
        return len(self._running)

    @property
    def most(self) -> int:
        """How many calls are worked on at a time, those of all hosts together."""
        return self._slots.whole

    @most.setter
    def most(self, most: int) -> None:
        self._slots.whole = most

    async def call(self, message: Mapping[str, Any], host: str | None = None) -> Answer:
        """The answer to a call; `host` is the one at whose port it came in, where that is known."""
        told = asyncio.get_running_loop().create_future()

        def tell(answer: Answer) -> None:
            if not told.done():  # else nobody waits any more
                told.set_result(answer)

        self.take(message, tell, host)
        answer: Answer = await told
        return answer

    def take(
        self, message: Mapping[str, Any], tell: Callable[[Answer], None], host: str | None = None
    ) -> None:
        """Have a call answered: `tell` gets the answer, now or later; it is carried out even if nobody waits."""
        start, op = time.perf_counter(), "unknown"

        def answer(told: Answer) -> None:
            if self._observer is not None:
                self._observer.asked(op, kind_in(told) or "ok", time.perf_counter() - start)
            tell(self._as_of_now(call, told) if call is not None else told)

        call: Call | None = None
        try:
            call = Call.parse(message)
            op = call.op
            self._check(call, host)
            self._check_keys(call)
            found = self._once(call)
        except FlowsieveError as error:
            answer(answer_of(error))
            return
        if isinstance(found, asyncio.Task):
            found.add_done_callback(lambda task: answer(_LOST if task.cancelled() else task.result()))
        else:
            answer(found)

    async def run(self) -> None:
        """Until cancelled, end the interests of clients that have fallen silent, and change keys when it is time."""
        async with Tasks() as endings:
            if self._keys is not None:
                endings.start(self._keys.run(self._sessions, lambda: self.leases.seconds))
            while True:
                await asyncio.sleep(TICK_SECONDS)
                if self._standing_by() is not None:
                    continue  # clients are not to blame for not being heard
                for session in self.leases.ended(time.monotonic()):
                    client = self._sessions.find(session)
                    if client is not None and client.under_way:
                        self.leases.renew(session, time.monotonic())
                    else:
                        self.leases.end(session)
                        endings.start(self._forget(session))

    # One call.

    def _check(self, call: Call, host: str | None) -> None:
        if why := self._standing_by():
            raise Busy(f"this controller stands by: {why}")
        hosts = self.service.state.topology.hosts
        if call.host not in hosts:
            raise BadInput(f"there is no host {shown(call.host)}{nearest(call.host, hosts)}")
        if host is not None and host != call.host:
            raise Denied(f"this is the port of host {host!r}, not of {call.host!r}")
        if self._tokens is not None and not self._tokens.valid(call.host, call.token):
            what = "another token than" if call.token else "no token, and needs"
            raise Denied(f"the call has {what} that of host {call.host!r}; its operator can tell it")
        if call.host not in self.groups:
            raise BadInput(f"host {call.host!r} has no group of its own to get events at")

    def _check_keys(self, call: Call) -> None:
        """Raise where a client signs events and we do not, or the other way round."""
        signed = self._keys is not None
        if call.stage is not None and call.op != BYE and (call.stage != UNSIGNED) != signed:
            now = "signed, and were not" if signed else "not signed any more"
            raise BadInput(f"events are {now}: the controller's event_mac was changed; begin another session")

    def _as_of_now(self, call: Call, told: Answer) -> Answer:
        """An answer with all that may have changed since it was first given: the index, and keys."""
        return index_telling.told(self.service, call, self._with_keys(call, told))

    def _with_keys(self, call: Call, told: Answer) -> Answer:
        """An answer, and the keys for events if the client has not those of now; hello is told in the welcome."""
        if self._keys is None or call.op == HELLO or call.stage == self._keys.stage or "ok" not in told:
            return told
        keys = self._keys.keys(call.host, call.session, checks=bool(call.checks))
        return {"ok": {**told["ok"], "keys": keys.to_json()}}

    def _once(self, call: Call) -> Answer | asyncio.Task[Answer]:
        """The answer that the call got before, or the work on it that is under way or begins now."""
        key = (call.session, call.number)
        client = self._sessions.meet(call.session, call.host)
        self._heard(call, client)
        if call.number in client.answers:
            return client.answers[call.number]
        task = self._running.get(key)
        if task is None:
            if call.op in _REQUESTS:
                client.hears(self.service.ledger.heard(call.session))
                client.check_new(call.number)
            if client.under_way >= AT_ONCE:
                raise Busy(f"{AT_ONCE} calls of this session are being worked on; wait for one of them")
            if not self._slots.take(call.host):
                raise Busy(
                    f"{len(self._running)} calls are being worked on, and host {call.host!r} has its share of them; "
                    "ask again in a second"
                )
            client.under_way += 1
            task = self._running[key] = asyncio.create_task(self._answer(call, client))
            task.add_done_callback(lambda done: self._finished(call, client, done))
        return task

    def _heard(self, call: Call, client: ClientSession) -> None:
        self.leases.renew(call.session, time.monotonic())
        client.hears(call.answered)
        if call.stage is not None:
            client.stage = call.stage
        index_telling.heard(self.service, call)
        self.service.ledger.answered(call.session, call.answered)
        if call.stats is not None and self._observer is not None:
            self._observer.client_reported(call.session, call.stats)

    def _finished(self, call: Call, client: ClientSession, task: asyncio.Task[Answer]) -> None:
        del self._running[call.session, call.number]
        self._slots.give_back(call.host)
        client.under_way -= 1
        if not task.cancelled() and task.exception() is None and call.op in _REQUESTS:
            client.answers[call.number] = task.result()

    async def _answer(self, call: Call, client: ClientSession) -> Answer:
        try:
            if call.op in _REQUESTS:
                return {"ok": await self._serve(call)}
            if call.op == HELLO:
                return {"ok": self._welcome(call)}
            if call.op == FILTERS:
                return {"ok": await self._filters(call)}
            if call.op == REPORT:
                return {"ok": self._report(call)}
            if call.op == BYE:
                client.hears(call.number)  # what comes late is not carried out
                await self._end(call.session)
                self._said_goodbye(call, client)
            holds = len(self.service.ledger.holds(call.session))
            terms = self._terms.to_json()
            return {"ok": {"holds": holds, "lease": self.leases.seconds, "telemetry": terms}}
        except FlowsieveError as error:
            return answer_of(error)
        except Exception:
            log.exception("%s", call)
            return refusal(FAILED, "the controller failed; its log says how")

    def _welcome(self, call: Call) -> dict[str, Any]:
        service, group = self.service, self.groups[call.host]
        index, state = service.index, service.state
        told = Welcome(
            call.host,
            index.plan,
            index.tag,
            group,
            self.interface,
            self.leases.seconds,
            network=self._tokens.network if self._tokens is not None else "",
            index=index.version,
            telemetry=self._terms,
        )
        if state.mixed and state.labels_events_of(call.host):
            told = replace(told, tag=state.label_tag, dz_tag=index.tag)
        if state.bloom is not None:
            told = replace(told, receiver=state.sets.number(call.host))
        if self._keys is not None:
            keys = self._keys.keys(call.host, call.session)
            told = replace(told, publisher=self._keys.publisher(call.host, call.session), keys=keys)
            if self.reports is not None and told.publisher is not None:
                self.reports.meet(call.session, call.host, told.publisher)
        return told.to_json()

    @property
    def _terms(self) -> TelemetryTerms:
        """What clients are to report of events."""
        return self.reports.terms if self.reports is not None else NO_TELEMETRY

    def _report(self, call: Call) -> dict[str, Any]:
        """Take what a client reports, as far as it was asked to."""
        if self.reports is None:
            return {"taken": 0, "telemetry": self._terms.to_json()}
        own = self._keys.publisher(call.host, call.session) if self._keys is not None else None
        schema, report = self.service.index.plan.schema, Report.parse(call.report)
        return self.reports.take(call.host, call.session, call.number, own, report, schema)

    async def _filters(self, call: Call) -> dict[str, Any]:
        """What is new to a publisher's host of others' filters; where nothing is, it waits for a part of its lease."""
        publishers = self.service.publishers
        if publishers is None or not self.service.state.labels_events_of(call.host):
            raise BadInput(f"packets of host {call.host!r} say what is in them, and it needs no filters")
        patience = min(call.deadline or DEADLINE_SECONDS, self.service.filter_lease / ASKS)
        page = await publishers.ask(call.host, call.session, call.held, patience)
        return page.to_json()

    async def _serve(self, call: Call) -> dict[str, Any]:
        """Carry out a request, unless that was done before the controller restarted."""
        record = self.service.ledger.record(call.session, call.number)
        if record is not None:
            await self._again(record, call)
            request = record.request
        else:
            request = self._request(call)
            origin = Origin(call.session, call.number, time.time())
            outcome = await self.service.submit(request, origin, patience=call.deadline)
            for _, reason in outcome.refused:
                raise reason
        answer: dict[str, Any] = {"id": request.id}
        state = self.service.state
        there = state.subscriptions.get(request.id) if state.labelled else None
        if request.op is Op.SUBSCRIBE and there is not None and (others := state.filters.forbidden(there)):
            answer["forbidden"] = others
        return answer

    async def _again(self, record: RequestRecord, call: Call) -> None:
        if record.kind is not None:
            raise error_of(record.kind, record.why)
        request = record.request
        if request.op.adding and request.id in self.service.state.interests(request.op.side):
            await self.service.acknowledged(
                request, Origin(call.session, call.number), patience=call.deadline
            )

    def _request(self, call: Call) -> Request:
        op, id = _REQUESTS[call.op], call.id
        if op.adding:
            if call.filter is None:
                raise BadMessage(f"{call.op} has a filter, a text such as 'price < 50'")
            filter = Filter.parse(call.filter, self.service.state.plan.schema)
            if id is None:
                id = free_id(call.host, self.service.state.interests(op.side), self._numbers)
            return Request(op, id, call.host, filter)
        if id is None or self.service.ledger.holder(op.side, id) != call.session:
            raise BadInput(f"this client has nothing of the id {shown(id)} that {call.op} could end")
        return Request(op, id, call.host)

    # Endings.

    async def _end(self, session: str) -> None:
        """End all that a session holds; its subscriptions first, since they cost others something."""
        ledger = self.service.ledger
        for op in (Op.SUBSCRIBE, Op.ADVERTISE):
            left = [request for request in ledger.holds(session) if request.op is op]
            for start in range(0, len(left), AT_ONCE):
                ends = [Request(op.reverse, each.id, each.endpoint) for each in left[start : start + AT_ONCE]]
                for told in await asyncio.gather(*map(self.service.submit, ends), return_exceptions=True):
                    if isinstance(told, BaseException):
                        unexpected = not isinstance(told, FlowsieveError | asyncio.CancelledError)
                        log.warning(
                            "an interest of a client that left: %s",
                            told,
                            exc_info=told if unexpected else None,
                        )

    def _said_goodbye(self, call: Call, client: ClientSession) -> None:
        if not client.left:
            client.left = True
            log.info("host %s: session %s has ended, as it asked", call.host, session_text(call.session))

    async def _forget(self, session: str) -> None:
        """End all that a silent session holds; if the journal cannot be written, or we err, try again later."""
        held = len(self.service.ledger.holds(session))
        try:
            async with self._endings:
                await self._end(session)
        except Exception:  # our own mistake: the sessions of others end all the same
            log.exception("what session %s holds was not ended", session)
        ledger = self.service.ledger
        client = self._sessions.find(session)
        if ledger.holds(session) or (client is not None and client.under_way):
            self.leases.renew(session, time.monotonic())
        elif not self.leases.runs(session):  # else it came back meanwhile
            if client is None or not client.left:
                whose = client.host if client is not None else "unknown"
                log.info(
                    "host %s: session %s has fallen silent and is over, with %d subscriptions and advertisements",
                    whose,
                    session_text(session),
                    held,
                )
            ledger.forget(session)
            self.service.holders.ended(session)
            self._sessions.leave(session)
            if self._observer is not None:
                self._observer.client_left(session)
            if self.reports is not None:
                self.reports.left(session)


_LOST = refusal(FAILED, "the controller ends; ask again when it is back")
