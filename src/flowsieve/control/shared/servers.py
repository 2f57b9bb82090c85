"""Where servers of etcd are."""

from __future__ import annotations

from dataclasses import dataclass

from flowsieve.errors import BadInput

PORT = 2379


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server of etcd listens."""

    host: str
    port: int = PORT

    @classmethod
    def parse(cls, text: str) -> Server:
        """From HOST:PORT, with http:// before it or not.

        >>> Server.parse("http://10.0.0.1:2379")
        Server(host='10.0.0.1', port=2379)
        """
        bare = text.removeprefix("http://").rstrip("/")
        host, colon, port = bare.rpartition(":")
        if not colon:
            host, port = bare, str(PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 1 << 16 or "/" in host:
            raise BadInput(f"{text!r} is no server of etcd; right is HOST:PORT, such as 127.0.0.1:{PORT}")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"
