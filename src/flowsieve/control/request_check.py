"""Which requests no state could take: from whom nobody knows, or about what is not there or is there already."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput, nearest
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.topology import Topology


def check_requests(
    requests: Sequence[Request],
    topology: Topology,
    served: Container[str],
    interests: Callable[[Side], Mapping[str, Interest]],
) -> None:
    """Raise at the first request that cannot be taken after those before it; `served` are the switches on the trees."""
    owners: dict[tuple[Side, str], str | None] = {}  # as the requests before change them
    for request in requests:
        key = (request.op.side, request.id)
        there = interests(request.op.side).get(request.id)
        owner = owners.get(key, there and there.endpoint)
        if request.endpoint not in topology.attached:
            raise BadInput(
                f"there is no host {request.endpoint!r}{nearest(request.endpoint, topology.attached)}"
            )
        if topology.attached[request.endpoint] not in served:
            raise BadInput(f"host {request.endpoint!r} is in a part of the network that is cut off")
        if request.op.adding:
            if owner is not None:
                raise BadInput(f"the id {request.id!r} of this {request.op.value} is in use already")
        elif owner != request.endpoint:
            raise BadInput(f"host {request.endpoint!r} has no {_ended(request.op)} {request.id!r} to end")
        owners[key] = request.endpoint if request.op.adding else None


def _ended(op: Op) -> str:
    return "subscription" if op is Op.UNSUBSCRIBE else "advertisement"
