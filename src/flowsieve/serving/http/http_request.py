"""An HTTP/1.1 request while its bytes come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

OBJECT_BYTES = 1024  # about what a request takes beside its texts
HEADER_BYTES = 128  # likewise, for each header


@dataclass(slots=True)
class HttpRequest:
    """What has come of a request so far."""

    url: bytes = b""
    method: bytes = b""
    version: str = "1.1"
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    keep_alive: bool = True
    too_long: bool = False

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        headers = sum(HEADER_BYTES + len(name) + len(value) for name, value in self.headers)
        return OBJECT_BYTES + len(self.url) + headers + len(self.body)

    @property
    def head_without_upgrade(self) -> bytes:
        """Its head, without the header that asks for another protocol."""
        lines = [b"%s %s HTTP/%s" % (self.method, self.url, self.version.encode())]
        lines += [b"%s: %s" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    @property
    def scope(self) -> dict[str, Any]:
        """The request as ASGI describes it to an application."""
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
            "headers": self.headers,
        }
