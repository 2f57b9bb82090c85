"""Sending and timing packets on a lab's hosts, with as little of Python in the way as can be.

Frames are handed to the kernel many at a time (`sendmmsg`). What passes an interface is written by the kernel, with
the time, into memory that is only looked at afterwards (a packet ring): no receiver competes with the switch.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from benchmarks.frames import SMALLEST, Frames, numbers_of
from flowsieve.lab.lab import Lab
from flowsieve.lab.namespace import entered
from flowsieve.lab.vswitchd import ask

AT_ONCE = 128  # frames in one call
MOST_BEHIND = 32  # frames sent at once to make up for time lost
NAP_SECONDS = 50e-6
PR_SET_TIMERSLACK = 29

# Constants of Linux that the socket module of Python 3.11 lacks.
ETH_P_ALL = 0x0003
SOL_PACKET = 263
PACKET_RX_RING, PACKET_VERSION = 5, 10
TPACKET_V2 = 1
_HEADER = 32  # bytes of struct tpacket2_hdr
_SLOT, _BLOCK = 256, 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def cores_parted(lab: Lab) -> Iterator[None]:
    """The calling thread, and those that it starts, have one core, and the lab's switches the others.

    Left to itself, the scheduler puts a sender beside the switch now and then: twice the delay, half the rate.
    """
    cores = sorted(os.sched_getaffinity(0))
    for thread in Path(f"/proc/{_daemon(lab)}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), cores[1:] or cores)
    os.sched_setaffinity(0, cores[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def switch_seconds(lab: Lab) -> float:
    """The time that the thread which forwards has had on a core."""
    return int(Path(f"/proc/{_daemon(lab)}/schedstat").read_text().split()[0]) / 1e9


def _daemon(lab: Lab) -> int:
    return int((lab.directory / "ovs-vswitchd.pid").read_text())


def forget_decisions(lab: Lab) -> None:
    """Have the switches forget what they have cached: packets meet the tables as they are now."""
    for method in ("revalidator/purge", "revalidator/wait"):
        ask(lab, method)


def misses(lab: Lab) -> int:
    """How many packets the switches had to look up in their tables, for want of a cached decision."""
    lines = ask(lab, "dpif-netdev/pmd-stats-show").splitlines()
    return sum(int(line.split(":")[1]) for line in lines if line.strip().startswith("miss with"))


def decisions(lab: Lab) -> int:
    """How many decisions the switches have cached: megaflows, as Open vSwitch calls them."""
    found = re.search(r"\(current (\d+)\)", ask(lab, "upcall/show"))
    return int(found[1]) if found else 0


class Sender:
    """A host's interface and the frames that it is to send, in their order and then from the start again."""

    def __init__(self, namespace: Path, interface: str, frames: Frames) -> None:
        with entered(namespace):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self._socket.bind((interface, 0))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self._frames = np.ascontiguousarray(frames)  # held: the kernel reads from it
        n, size = frames.shape
        self.size = size
        self._count = n
        self._parts = np.zeros((n, 2), np.uint64)  # struct iovec: where, how long
        self._parts[:, 0] = self._frames.ctypes.data + np.arange(n, dtype=np.uint64) * np.uint64(size)
        self._parts[:, 1] = size
        self._messages = np.zeros((n, 8), np.uint64)  # struct mmsghdr: its third word leads to the parts
        self._messages[:, 2] = self._parts.ctypes.data + np.arange(n, dtype=np.uint64) * np.uint64(16)
        self._messages[:, 3] = 1
        self._next = 0

    def close(self) -> None:
        self._socket.close()

    def rewind(self) -> None:
        """Begin with the first frame again."""
        self._next = 0

    def send(self, count: int) -> int:
        """Hand some of the next frames to the kernel, at most so many; how many it took."""
        count = min(count, self._count - self._next)
        where = self._messages.ctypes.data + 64 * self._next
        taken = int(_libc.sendmmsg(self._socket.fileno(), ctypes.c_void_p(where), count, 0))
        if taken < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self._next = (self._next + taken) % self._count
        return taken

    def send_paced(self, count: int, per_second: float) -> float:
        """Send so many frames at a rate, a few at a time; the rate that was kept.

        The thread sleeps in between: one that spins would take a core from the switch.
        """
        _libc.prctl(PR_SET_TIMERSLACK, 1)  # sleep as short as asked
        begin = time.perf_counter()
        sent = 0
        while sent < count:
            due = int((time.perf_counter() - begin) * per_second) + 1 - sent
            if due > 0:
                sent += self.send(min(due, count - sent, MOST_BEHIND))
            time.sleep(NAP_SECONDS)
        return count / (time.perf_counter() - begin)

    @contextmanager
    def flooding(self) -> Iterator[None]:
        """For the time of a `with` block, send as fast as the kernel takes it, in a thread of its own."""
        end = threading.Event()

        def flood() -> None:
            while not end.is_set():
                with contextlib.suppress(OSError):  # a full queue
                    self.send(AT_ONCE)

        thread = threading.Thread(target=flood, daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()


class Tap:
    """What passes an interface, in or out, of frames that tell their numbers: each one's time, up to a bound."""

    def __init__(self, namespace: Path, interface: str, most: int) -> None:
        slots = -(-most * _SLOT // _BLOCK) * (_BLOCK // _SLOT)
        with entered(namespace):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self._socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            ring = struct.pack("IIII", _BLOCK, slots * _SLOT // _BLOCK, _SLOT, slots)
            self._socket.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
            self._memory = mmap.mmap(self._socket.fileno(), slots * _SLOT)
            self._socket.bind((interface, ETH_P_ALL))
        self._slots = np.frombuffer(self._memory, np.uint8).reshape(slots, _SLOT)

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._slots
        self._memory.close()
        self._socket.close()

    def times(self, size: int) -> dict[int, int]:
        """Number and time, in nanoseconds, of all frames of one size since the last look; then it is empty."""
        heads = self._heads()
        rows = np.flatnonzero((heads[:, 0] != 0) & (heads[:, 1] == size))
        start = heads[rows, 3] & 0xFFFF  # where the frame begins in its slot
        columns = start[:, None] + np.arange(SMALLEST)
        frames = self._slots[rows[:, None], columns]
        stamps = heads[rows, 4].astype(np.int64) * 1_000_000_000 + heads[rows, 5]
        found = dict(zip(numbers_of(frames).tolist(), stamps.tolist(), strict=True))
        heads[:, 0] = 0  # the kernel may write there again
        return found

    def _heads(self) -> NDArray[np.uint32]:
        """Status, length, length kept, offsets of MAC and IP, seconds, nanoseconds, the rest."""
        return self._slots[:, :_HEADER].view(np.uint32)


def received(namespace: Path, interface: str) -> tuple[int, int]:
    """Bytes and packets that an interface has received."""
    with entered(namespace):
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    for line in lines:
        name, _, figures = line.partition(":")
        if name.strip() == interface:
            words = figures.split()
            return int(words[0]), int(words[1])
    raise LookupError(f"there is no interface {interface} here")
