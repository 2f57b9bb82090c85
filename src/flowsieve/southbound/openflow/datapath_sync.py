"""Waits until packets meet a table that was acknowledged: a switch's datapath follows its tables a little later.

Open vSwitch's main thread notes a change in one pass of its loop, and in the next one marks all that the datapath
has cached as out of date. Other threads then go over the cache, at most once in 5 ms. `revalidator/wait` answers
when a round of theirs has ended, but that round may have begun before the mark. So, after an acknowledgement:

1. We ask anything and, when that is answered, connect anew: a new connection is served in a later pass, so all
   that we ask on it comes after the mark.
2. We ask for the end of a round; the next one begins after it, hence after the mark.
3. We ask for the end of that round: with it the datapath has followed.

Where entries were removed, all that is cached is thrown away instead. A decision that was cached for a narrow prefix
because of an entry that is gone is else kept beside one for a wider prefix, and when both have to change, Open
vSwitch (3.1 at least) changes the wider one twice: packets then meet the narrow one as it was, for good. What comes
into the cache afterwards is decided by the new tables, or was being decided at that moment: one round sees to it.
Where batches for other switches are under way at that moment, they are waited for, but not for long: Open vSwitch's
main thread, which does all of this, is through with them sooner, and what is cached is thrown away once for all.

Rounds begin by themselves only twice a second. To have one at once we add an address to a bridge's table of learnt
addresses and take it out again, which nothing of ours looks at. All this is one question, shared by all who wait when
it is asked. Every message wakes a thread that then looks at all ports of all bridges, so there are few: the
connection of one question is kept for the first step of the next.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flowsieve.errors import SwitchError
from flowsieve.southbound.shared_question import SharedQuestion, Unanswered
from flowsieve.southbound.socket_address import SocketAddress

log = logging.getLogger(__name__)

LONGEST = 5.0  # seconds to wait for an answer
# Seconds of silence before Open vSwitch is woken up: a round takes one millisecond, or begins five after the last.
WAKE_UPS, AGAIN = (0.0015, 0.004), 0.002
TOGETHER = 0.05  # seconds to wait for batches that are under way, at most
FULL = 0.002  # seconds before we dial again where too many callers wait
NOBODY = "02:f1:05:5e:00:01"  # an address that no interface has
Command = tuple[str, Sequence[str]]
_DECODER = json.JSONDecoder()
# What shows that there is no Open vSwitch to ask: no answer at all, or one that it would not give.
NOBODY_THERE = (FileNotFoundError, ConnectionRefusedError, EOFError, ValueError, KeyError, TypeError)


class DatapathBehind(SwitchError):
    """The datapath did not confirm that it follows the tables; packets may still meet older ones."""


class Unreachable(Exception):
    """There is nobody to ask whether the datapath has followed."""


class DatapathSync:
    """The datapath behind some switches; where nobody can be asked, it gets a fixed time to follow."""

    def __init__(self, control: SocketAddress | None, seconds: float) -> None:
        self._control = control
        self._seconds = seconds
        self._question = SharedQuestion(self._ask)
        self._purge = False  # when it is asked next
        self._under_way: set[asyncio.Future[None]] = set()  # batches
        self._socket: VswitchdSocket | None = None
        self._missed = False  # whether there was nobody to ask when there should be

    @contextmanager
    def batch(self) -> Iterator[None]:
        """For the time of a block, a batch is under way."""
        over = asyncio.get_running_loop().create_future()
        self._under_way.add(over)
        try:
            yield
        finally:
            self._under_way.discard(over)
            over.cancel()

    async def follow(self, removed: bool = False) -> None:
        """Return when packets meet the tables as acknowledged up to now; `removed` says whether entries were."""
        if removed and self._under_way:
            await asyncio.wait(set(self._under_way), timeout=TOGETHER)
        self._purge = self._purge or removed
        try:
            await self._question.answered()
        except Unanswered:
            raise DatapathBehind("the connections were closed before the datapath has followed") from None
        except Unreachable as error:
            if self._control is not None and not self._missed:
                log.warning("nobody at %s says when the datapath has followed: %s", self._control, error)
            self._missed = True
            await asyncio.sleep(self._seconds)
        else:
            self._missed = False

    def close(self) -> None:
        """Ask nothing any more."""
        self._question.close()
        self._hang_up()

    async def _ask(self) -> None:
        """Ask once; a purge that may have failed is left to the next question."""
        purge, self._purge = self._purge, False
        try:
            await self._ask_once(purge)
        except BaseException:
            self._purge = self._purge or purge
            raise

    async def _ask_once(self, purge: bool) -> None:
        if self._control is None or self._control.path is None:
            raise Unreachable("that is no socket in the file system")
        try:
            async with asyncio.timeout(LONGEST):
                bridge = await self._pass(self._control)
                kept = self._socket = await VswitchdSocket.dial(self._control)
                stir: tuple[Command, ...] = (
                    ("fdb/add", (bridge, bridge, "0", NOBODY)),
                    ("fdb/del", (bridge, "0", NOBODY)),
                    ("revalidator/wait", ()),
                )
                if purge:
                    await kept.ask(("revalidator/purge", ()), *stir)
                else:
                    await kept.ask(*stir)
                    await kept.ask(*stir)
        except TimeoutError:
            self._hang_up()
            raise DatapathBehind(
                f"no word from the datapath at {self._control} within {LONGEST:g} s"
            ) from None
        except NOBODY_THERE as error:
            self._hang_up()
            raise Unreachable(str(error) or type(error).__name__) from None
        except OSError as error:
            self._hang_up()
            raise DatapathBehind(f"the datapath at {self._control} cannot be asked: {error}") from None

    async def _pass(self, control: SocketAddress) -> str:
        """Wait for one pass of the main thread; returns a bridge. The connection that was kept may have died since."""
        for kept in (self._socket, None):
            try:
                self._socket = kept or await VswitchdSocket.dial(control)
                return (await self._socket.ask(("ofproto/list", ()))).partition("\n")[0]
            except (OSError, EOFError):
                if kept is None:
                    raise
            finally:
                self._hang_up()
        raise AssertionError("the second attempt returns or raises")

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class VswitchdSocket:
    """A connection on which one question follows the other; there are hundreds a second, so it is a bare socket."""

    def __init__(self, control: SocketAddress, own: socket.socket) -> None:
        self._control, self._own = control, own

    @classmethod
    async def dial(cls, control: SocketAddress) -> VswitchdSocket:
        return cls(control, await _dialled(control))

    async def ask(self, *commands: Command) -> str:
        """Ask all at once; the last answer counts.

        Open vSwitch may note the end of a round and fall asleep before it says so; being dialled wakes it up.
        """
        messages = [
            json.dumps({"id": number, "method": method, "params": params})
            for number, (method, params) in enumerate(commands)
        ]
        data = "".join(messages).encode()
        if (sent := _sent_at_once(self._own, data)) < len(data):
            await asyncio.get_running_loop().sock_sendall(self._own, data[sent:])
        text, patience = "", iter(WAKE_UPS)
        while (answer := _last(text, len(commands))) is None:
            await _readable(self._own, next(patience, AGAIN))
            try:
                part = self._own.recv(1 << 16)
            except BlockingIOError:
                if (waking := _dialled_at_once(self._control)) is not None:
                    waking.close()
                continue
            if not part:
                raise EOFError
            text += part.decode()
        if answer["error"] is not None:
            raise ValueError(answer["error"])
        return str(answer["result"])

    def close(self) -> None:
        self._own.close()


async def _readable(own: socket.socket, seconds: float) -> None:
    """Wait until something can be read, but no longer than that."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    late, number = loop.call_later(seconds, wake), own.fileno()  # by the number: asyncio spells sockets out
    loop.add_reader(number, wake)
    try:
        await waiter
    finally:
        loop.remove_reader(number)
        late.cancel()


def _sent_at_once(own: socket.socket, data: bytes) -> int:
    """How many bytes could be sent without waiting; there is room for a question but where nobody takes any."""
    try:
        return own.send(data)
    except BlockingIOError:
        return 0


async def _dialled(control: SocketAddress) -> socket.socket:
    """A connection, as soon as there is room for one."""
    while (own := _dialled_at_once(control)) is None:
        await asyncio.sleep(FULL)
    return own


def _dialled_at_once(control: SocketAddress) -> socket.socket | None:
    """A connection, or None where so many wait to be let in that there is no room: somebody is there, and busy.

    Open vSwitch takes connections on sockets in the file system alone, and there nobody who dials has to wait.
    """
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        own.setblocking(False)
        own.connect(control.path or "")
    except BlockingIOError:
        own.close()
        return None
    except BaseException:
        own.close()
        raise
    return own


def _last(text: str, count: int) -> Any:
    """The last of `count` JSON values in a row, or None if they are not all there yet."""
    value = None
    for _ in range(count):
        try:
            value, end = _DECODER.raw_decode(text)
        except ValueError:
            return None
        text = text[end:].lstrip()
    return value
