"""A request of HTTP/1.1, as it comes in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote


@dataclass(slots=True)
class Incoming:
    """What has come of a request so far."""

    url: bytes = b""
    method: bytes = b""
    version: str = "1.1"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    keeps: bool = True  # the connection
    too_long: bool = False

    @property
    def plain_head(self) -> bytes:
        """Its head, without the wish to talk something else."""
        lines = [b"%s %s HTTP/%s" % (self.method, self.url, self.version.encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    @property
    def scope(self) -> dict[str, Any]:
        """What an ASGI application is told of it."""
        path, _, query = self.url.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": self.version,
            "scheme": "http",
            "method": self.method.decode("latin-1"),
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self.headers,
            "client": None,
            "server": None,
        }
