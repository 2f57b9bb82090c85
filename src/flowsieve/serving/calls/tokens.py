"""The token that shows that a call comes from its host, or an operator: a digest keyed with the controller's secret.

It is bound to the port at which the host is plugged in. A host that moves keeps it: whoever shows it elsewhere is the
host, if that is not plugged in where it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from flowsieve.errors import BadInput
from flowsieve.network.topology import EndpointKind, Topology

SECRET_BYTES = 32
DIGEST_BYTES = 16
MOST_REMEMBERED = 1 << 14


class Tokens:
    """The tokens of all hosts of a network; `homes` are the ports at which hosts were that have moved since."""

    def __init__(
        self, secret: bytes, topology: Topology, homes: Mapping[str, tuple[str, int]] | None = None
    ) -> None:
        if len(secret) < DIGEST_BYTES:
            raise BadInput(f"a secret of {len(secret)} bytes is too short; right are {DIGEST_BYTES} or more")
        self._key = hashlib.blake2b(secret, digest_size=SECRET_BYTES).digest()
        self.topology = topology  # may grow
        self._homes = homes if homes is not None else {}  # likewise
        self._made: dict[tuple[str, str, int], str] = {}  # those asked for: every call is checked

    @property
    def network(self) -> str:
        """A name for the network whose tokens these are, which tells nobody what they are."""
        return hashlib.blake2b(b"network", key=self._key, digest_size=8).hexdigest()

    @property
    def operator(self) -> str:
        """The token of whoever operates the network; no host has it."""
        return hashlib.blake2b(b"operator", key=self._key, digest_size=DIGEST_BYTES).hexdigest()

    def of(self, host: str) -> str:
        """The token of a host; no other kind of endpoint makes calls."""
        endpoint = self.topology.endpoint(host)
        if endpoint.kind is not EndpointKind.HOST:
            raise BadInput(f"{host!r} is a {endpoint.kind.value}, and tokens are for hosts")
        return self.at(host, endpoint.switch, self.topology.number(endpoint.switch, host))

    def at(self, host: str, switch: str, number: int) -> str:
        """The token that a host will have once it is found at a port, by the switch's own number for it."""
        place = host, switch, number
        found = self._made.get(place)
        if found is None:
            if len(self._made) >= MOST_REMEMBERED:
                self._made.clear()
            told = f"{host}\0{switch}\0{number}".encode()
            found = hashlib.blake2b(told, key=self._key, digest_size=DIGEST_BYTES).hexdigest()
            self._made[place] = found
        return found

    def valid(self, host: str, token: str) -> bool:
        """Whether a token is that of a host, where it is or was; it takes as long for any."""
        shown, right = token.encode(errors="replace"), [self.of(host)]
        if host in self._homes:
            right.append(self.at(host, *self._homes[host]))
        return sum(hmac.compare_digest(each.encode(), shown) for each in right) > 0


def kept_secret(path: Path) -> bytes:
    """The secret in a file, which is made if it is not there; nobody else may read it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make(path, secrets.token_bytes(SECRET_BYTES))
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"the secret cannot be kept in {path}: {error.strerror}") from None


def keep_secret(path: Path, secret: bytes) -> None:
    """Have a secret in a file, unless there is one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path, secret)
    except OSError as error:
        raise BadInput(f"the secret cannot be kept in {path}: {error.strerror}") from None


def _make(path: Path, secret: bytes) -> None:
    """A new secret, whole at once; if somebody else makes one at the same time, the first stays."""
    new = path.with_name(f"{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(new)
    finally:
        new.unlink(missing_ok=True)
