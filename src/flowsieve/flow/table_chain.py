"""What the tables of a switch mean together: a packet comes from one to the next as entries let it go on."""

from __future__ import annotations

from collections.abc import Collection

from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.flow.flat import look_up


def met(flows: Collection[Flow], family: int, destination: int, source: int = 0) -> tuple[Flow, ...]:
    """The entries that a packet meets at a switch, one in each table that it comes to, in their order."""
    found: list[Flow] = []
    table: int | None = CONTENT_TABLE
    while table is not None:
        flow = look_up((each for each in flows if each.table == table), family, destination, source)
        if flow is None:
            break
        found.append(flow)
        table = flow.onward
    return tuple(found)
