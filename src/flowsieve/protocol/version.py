"""Which version of the protocol we speak: told in hello and in the welcome, and the first item of every datagram."""

from __future__ import annotations

from flowsieve.content.schema import shown
from flowsieve.errors import OtherVersion

VERSION = 2
FIRST_VERSION = 1  # of clients and controllers that do not say


def check_version(client: object = VERSION, controller: object = VERSION) -> None:
    """Raise OtherVersion where one side, which is given, speaks another version than we do."""
    if not all(type(each) is int and each == VERSION for each in (client, controller)):
        raise OtherVersion(client=shown(client), controller=shown(controller))
