"""Sessions are told of another index with the answer to any call, as they are of keys, and say which one they use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from flowsieve.control.request import Op
from flowsieve.control.requests.ledger import Ledger
from flowsieve.control.transition.index_holders import IndexHolders
from flowsieve.control.transition.served_index import ServedIndex
from flowsieve.index.dzset import DzSet
from flowsieve.protocol.answer import Answer
from flowsieve.protocol.call import HELLO, Call
from flowsieve.protocol.told_index import FIRST_INDEX, ToldIndex


class ServesIndex(Protocol):
    """What knows the index of now, what is owed under it, and who uses it."""

    @property
    def index(self) -> ServedIndex: ...

    @property
    def holders(self) -> IndexHolders: ...

    @property
    def ledger(self) -> Ledger: ...

    def cover_now(self, id: str) -> DzSet | None:
        """The dz of a subscription under the index of now; None where there is no such subscription."""
        ...


def heard(service: ServesIndex, call: Call) -> None:
    """A call came: it says what index its session uses, unless its client is too old to know of any other."""
    if call.index is not None and call.op != HELLO:
        service.holders.said(call.session, call.index)


def told(service: ServesIndex, call: Call, answer: Answer) -> Answer:
    """An answer as it is told now: with the dz of a subscription, and the index if the session uses another.

    An answer may be given again, or late. So all that depends on the index is added when it is told.
    """
    ok: Mapping[str, Any] | None = answer.get("ok")
    if ok is None or call.op == HELLO:
        return answer
    index, more = service.index, dict[str, Any]()
    if call.op == Op.SUBSCRIBE.value and (cover := service.cover_now(ok["id"])) is not None:
        more["dz"] = cover.texts()
        if index.version != FIRST_INDEX:
            more["dz_index"] = index.version
    if call.index is not None and call.index != index.version:
        more["index"] = ToldIndex(index.version, index.tag, index.plan, _owed(service, call)).to_json()
    return {"ok": {**ok, **more}} if more else answer


def _owed(service: ServesIndex, call: Call) -> dict[str, DzSet]:
    """The dz of the session's own subscriptions under the index of now."""
    own = (each.id for each in service.ledger.holds(call.session) if each.op is Op.SUBSCRIBE)
    covers = ((id, service.cover_now(id)) for id in own)
    return {id: cover for id, cover in covers if cover is not None}
