"""Network namespaces of this machine, entered and made by the calling thread; and what needs an ioctl there.

Python 3.11 has no `os.setns`, so the C library is asked. A namespace lives as long as a process is in it or a
file of it is open: nothing of it is left behind when its holders are killed.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
ETHTOOL_STXCSUM = 0x17
OWN = Path("/proc/thread-self/ns/net")
SETTINGS = Path("/proc/sys")

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A file or directory, open for the time of a `with` block."""
    file = os.open(path, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


@contextmanager
def entered(namespace: int | Path) -> Iterator[None]:
    """The calling thread is in a namespace: sockets made and processes started meanwhile belong to it."""
    with _back_home():
        if isinstance(namespace, int):
            _enter(namespace)
        else:
            with opened(namespace) as there:
                _enter(there)
        yield


def new_namespace() -> int:
    """An open file of a new, empty namespace; the calling thread stays where it is."""
    with _back_home():
        _check(_libc.unshare(CLONE_NEWNET))
        return os.open(OWN, os.O_RDONLY)


def set_kernel(settings: dict[str, str]) -> None:
    """Write kernel settings of the namespace that the calling thread is in."""
    for name, value in settings.items():
        (SETTINGS / name).write_text(value)


def send_whole_checksums(interfaces: list[str], whole: bool = True) -> None:
    """Have checksums computed before a packet is sent, or not, in the namespace that the calling thread is in.

    A veth pair leaves them to hardware that it does not have; a userspace switch then passes on wrong ones.
    """
    setting = array.array("I", [ETHTOOL_STXCSUM, not whole])
    address, _ = setting.buffer_info()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for interface in interfaces:
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), address))


@contextmanager
def _back_home() -> Iterator[None]:
    """At the end the calling thread is in the namespace again that it is in now."""
    with opened(OWN) as home:
        try:
            yield
        finally:
            _enter(home)


def _enter(namespace: int) -> None:
    _check(_libc.setns(namespace, CLONE_NEWNET))


def _check(result: int) -> None:
    if result:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
