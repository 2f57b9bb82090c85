"""Where clients ask the controller for what they want: JSON, a request a line, an answer a line.

`{"n": 1, "op": "hello", "host": "h1"}` comes first and is answered by all that a client needs to know. Then `adv` and
`sub` with a filter, `unadv` and `unsub` with an id, in any number at once; `{"n": 2, "ok": {…}}` comes when the
switches have acknowledged, or `{"n": 2, "error": {"kind": …, "text": …}}`. What a client asked for ends with its
connection, or before that with `bye`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self

from flowsieve.client.welcome import Welcome
from flowsieve.content.filter import Filter
from flowsieve.content.schema import shown
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Outcome
from flowsieve.errors import BadInput, BadMessage, FlowsieveError, Refused, nearest
from flowsieve.header.tag import Tag
from flowsieve.southbound.openflow.address import Address

log = logging.getLogger(__name__)

LONGEST_LINE = 1 << 20  # bytes
AT_ONCE = 64  # requests of one client
LONGEST_ID = 200
KEEP_ALIVE_SECONDS = 30
OPS = {op.value: op for op in Op}
_END = {Op.ADVERTISE: Op.UNADVERTISE, Op.SUBSCRIBE: Op.UNSUBSCRIBE}


class Service(Protocol):
    """What serves the requests: a controller, as far as clients are concerned."""

    @property
    def state(self) -> ControlState: ...

    @property
    def tag(self) -> Tag: ...

    async def submit(self, request: Request) -> Outcome:
        """Serve a request; returns when the switches have acknowledged it."""
        ...


class RequestServer:
    """Takes clients at `address`, unix:PATH or tcp:HOST:PORT, for as long as its `async with` block lasts.

    `groups` says where events for each host come in: the group that is the host's own. When the server ends, its
    clients' interests stay in force: switches go on without their controller.
    """

    def __init__(
        self, service: Service, address: str, groups: Mapping[str, str], interface: str | None = None
    ) -> None:
        self.service = service
        self.address = Address.parse(address)
        self.groups = groups
        self.interface = interface
        self._numbers = count(1)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        where = self.address
        try:
            if where.path is not None:
                _check_free(where.path)
                self._server = await asyncio.start_unix_server(self._met, where.path, limit=LONGEST_LINE)
            else:
                self._server = await asyncio.start_server(
                    self._met, where.host, where.port, limit=LONGEST_LINE
                )
        except OSError as error:
            raise BadInput(f"clients cannot be taken at {where}: {error.strerror or error}") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        if self.address.path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.address.path)  # noqa: PTH108

    @property
    def port(self) -> int:
        """Where it listens, if it was to choose a TCP port itself."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def free_id(self, host: str, op: Op) -> str:
        """A name for an interest that has none."""
        taken = self.service.state.interests(op.side)
        return next(name for n in self._numbers if (name := f"{host}-{n}") not in taken)

    def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(_Connection(self, reader, writer).run())
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)


class _Connection:
    """One client, from its first line to its last."""

    def __init__(
        self, server: RequestServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._service = server.service
        self._reader = reader
        self._writer = writer
        self._host: str | None = None
        self._held: set[tuple[Op, str]] = set()  # what it asked for and has
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        _keep_alive(self._writer)
        try:
            async with asyncio.TaskGroup() as tasks:
                bye = await self._serve(tasks)
            await self._end_all()
            if bye is not None:
                await self._answer(bye, ok={})
        finally:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _serve(self, tasks: asyncio.TaskGroup) -> int | None:
        """Take requests until the client leaves; the number of its `bye`, if it said so."""
        while True:
            try:
                line = await self._reader.readline()
            except ValueError:
                problem = BadMessage(f"a line of more than {LONGEST_LINE:,} bytes; the connection ends here")
                await self._answer(None, error=problem)
                return None
            except OSError:
                return None
            if not line:
                return None
            number = None
            try:
                ask = _read(line)
                number = _number(ask)
                if ask.get("op") == "bye":
                    return number
                if ask.get("op") == "hello" or self._host is None:
                    await self._answer(number, ok=self._greet(ask))
                else:
                    request = self._request(ask)
                    await self._room.acquire()
                    tasks.create_task(self._carry_out(number, request))
            except FlowsieveError as error:
                await self._answer(number, error=error)

    def _greet(self, ask: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to hello; whoever says something else first is told so."""
        host, hosts = ask.get("host"), self._service.state.topology.hosts
        if ask.get("op") != "hello":
            raise BadMessage(f'say hello first: {{"op": "hello", "host": …}}, then {shown(ask.get("op"))}')
        if self._host is not None:
            raise BadMessage(
                f"hello was said already, by host {self._host!r}; one connection is for one host"
            )
        if not isinstance(host, str) or host not in hosts:
            hint = nearest(host, hosts) if isinstance(host, str) and len(host) <= LONGEST_ID else ""
            raise BadInput(f"there is no host {shown(host)}{hint}")
        if host not in self._server.groups:
            raise BadInput(f"host {host!r} has no group of its own to get events at")
        self._host = host
        group, interface = self._server.groups[host], self._server.interface
        return Welcome(host, self._service.state.plan, self._service.tag, group, interface).to_json()

    def _request(self, ask: Mapping[str, Any]) -> Request:
        assert self._host is not None
        name, id, text = ask.get("op"), ask.get("id"), ask.get("filter")
        op = OPS.get(name) if isinstance(name, str) else None
        if op is None:
            known = ("hello", *OPS, "bye")
            raise BadMessage(f"there is no op {shown(name)}; right is one of {', '.join(known)}")
        if id is not None and not (isinstance(id, str) and 0 < len(id) <= LONGEST_ID):
            raise BadMessage(f"an id is a text of 1 to {LONGEST_ID} characters, not {shown(id)}")
        if op.adding:
            if not isinstance(text, str):
                raise BadMessage(
                    f"the filter of {op.value} is a text such as 'price < 50', not {shown(text)}"
                )
            filter = Filter.parse(text, self._service.state.plan.schema)
            return Request(op, id or self._server.free_id(self._host, op), self._host, filter)
        if id is None or not any((made, id) in self._held for made in _END if _END[made] is op):
            raise BadInput(f"this client has nothing of the id {shown(id)} that {op.value} could end")
        return Request(op, id, self._host)

    async def _carry_out(self, number: int | None, request: Request) -> None:
        try:
            await self._answer(number, ok=await self._submit(request))
        except FlowsieveError as error:
            await self._answer(number, error=error)
        except Exception:
            log.exception("%s", request)
            await self._answer(number, error=FlowsieveError("the controller failed; its log says how"))
        finally:
            self._room.release()

    async def _submit(self, request: Request) -> dict[str, Any]:
        outcome = await self._service.submit(request)
        for _, reason in outcome.refused:
            raise reason
        if not request.op.adding:
            self._held -= {(made, request.id) for made, end in _END.items() if end is request.op}
            return {"id": request.id}
        self._held.add((request.op, request.id))
        answer: dict[str, Any] = {"id": request.id}
        if request.op is Op.SUBSCRIBE:
            answer["dz"] = self._service.state.subscriptions[request.id].dz.texts()
        return answer

    async def _end_all(self) -> None:
        """End what the client leaves behind; its subscriptions first, since they cost others something."""
        assert self._host is not None or not self._held
        for op in (Op.SUBSCRIBE, Op.ADVERTISE):
            left = sorted(id for made, id in self._held if made is op)
            for start in range(0, len(left), AT_ONCE):
                ends = (Request(_END[op], id, self._host or "") for id in left[start : start + AT_ONCE])
                for answer in await asyncio.gather(*map(self._submit, ends), return_exceptions=True):
                    if isinstance(answer, BaseException):
                        log.warning("an interest of a client that left: %s", answer)

    async def _answer(
        self, number: int | None, *, ok: object = None, error: FlowsieveError | None = None
    ) -> None:
        said = {"ok": ok} if error is None else {"error": {"kind": _kind(error), "text": str(error)}}
        with contextlib.suppress(OSError):  # a client that is gone wants no answer
            self._writer.write(json.dumps({"n": number, **said}).encode() + b"\n")
            await self._writer.drain()


def _read(line: bytes) -> Mapping[str, Any]:
    try:
        ask = json.loads(line)
    except (ValueError, RecursionError):
        raise BadMessage(f"a line that is no JSON: {shown(line)}") from None
    if not isinstance(ask, dict):
        raise BadMessage(f'a request is an object such as {{"n": 1, "op": "hello", …}}, not {shown(ask)}')
    return ask


def _number(ask: Mapping[str, Any]) -> int:
    number = ask.get("n")
    if type(number) is not int:
        raise BadMessage(f"a request has a whole number n that its answer repeats, not {shown(number)}")
    return number


def _kind(error: FlowsieveError) -> str:
    return "bad" if isinstance(error, BadInput) else "refused" if isinstance(error, Refused) else "failed"


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice a client whose machine is gone."""
    own = writer.get_extra_info("socket")
    if own is not None and own.family != socket.AF_UNIX:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        own.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS)


def _check_free(path: str) -> None:
    """A socket that nobody listens to any more may be replaced, no other file."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
        except OSError as error:
            raise BadInput(f"clients cannot be taken at unix:{path}: {error.strerror or error}") from None
    raise BadInput(f"clients cannot be taken at unix:{path}: another controller takes them there")
