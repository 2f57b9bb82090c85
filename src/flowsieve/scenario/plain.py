"""Flows, explanations, verdicts and quotes as plain data; the formats are a contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.flow.proof.explain import Explanation
from flowsieve.flow.proof.verify import Verdict
from flowsieve.header.match import MaskedMatch
from flowsieve.network.topology import Topology

if TYPE_CHECKING:
    from flowsieve.scenario.price import Quote

_SORT_KEY = attrgetter("sort_key")


def plain_flow(topology: Topology, switch: str, flow: Flow, masked: bool = False) -> dict[str, Any]:
    """One entry; ports are named by what they lead to. Matches are written with masks if they have, or if told so."""
    out = [topology.neighbour(switch, port) for port in flow.ports]
    if not masked and not needs_masks(flow):
        return {"switch": switch, "priority": flow.priority, "dst": str(flow.match), "out": out}
    source, destination = flow.match.parts
    src = {} if source is None else {"src": str(source)}
    table = 0 if flow.table == CONTENT_TABLE else flow.table
    entry = {"switch": switch, "table": table, "priority": flow.priority, **src, "dst": str(destination)}
    return entry | {"out": out}


def plain_flows(topology: Topology, tables: Mapping[str, Iterable[Flow]]) -> list[dict[str, Any]]:
    """All entries in one form: with masks as soon as one of them needs that."""
    rows = rows_of(tables)
    masked = need_masks(rows)
    return [plain_flow(topology, switch, flow, masked) for switch, flow in rows]


def rows_of(tables: Mapping[str, Iterable[Flow]]) -> list[tuple[str, Flow]]:
    """All entries with their switches, those of a switch in order."""
    return [(switch, flow) for switch, flows in tables.items() for flow in sorted(flows, key=_SORT_KEY)]


def need_masks(rows: Iterable[tuple[str, Flow]]) -> bool:
    """Whether some entry asks for the form with masks."""
    return any(needs_masks(flow) for _, flow in rows)


def needs_masks(flow: Flow) -> bool:
    """Whether an entry is one of several tables, or its match can be written with a mask alone."""
    several = flow.table != CONTENT_TABLE or flow.onward is not None
    return several or isinstance(flow.match, MaskedMatch)


def plain_explanation(topology: Topology, found: Explanation) -> dict[str, Any]:
    """An explanation; `published` tells an event that nobody wants from one that its host may not send."""
    return {
        "published": found.published,
        "hops": [
            {
                "switch": hop.switch,
                "came_from": hop.came_from,
                "dst": hop.dst,
                "flow": plain_flow(topology, hop.switch, hop.flow) if hop.flow else None,
                "out": list(hop.out),
                "subscriptions": list(hop.subscriptions),
                "notes": list(hop.notes),
            }
            for hop in found.hops
        ],
        "delivered": list(found.delivered),
        "matches": list(found.matches),
        "missed": [asdict(miss) for miss in found.missed],
    }


def plain_quote(quote: Quote) -> dict[str, Any]:
    return {
        "entries": dict(quote.entries),
        "operations": dict(quote.operations),
        "dz": len(quote.dz),
        "false_positive_share": quote.false_positive_share,
        "fits": quote.fits,
        "reason": quote.reason,
        "told": list(quote.told),
    }


def plain_verdict(verdict: Verdict, false_positive_share: float | None) -> dict[str, Any]:
    found = asdict(verdict) | {"undecided": list(verdict.undecided)}
    witness = found.pop("witness")
    share = {"false_positive_share": false_positive_share}
    return {"holds": verdict.holds} | found | share | {"witness": witness}
