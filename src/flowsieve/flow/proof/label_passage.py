"""What becomes of labels that switches send: whether ports carry them, and whether they arrive as events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from flowsieve.flow.entry import Flow
from flowsieve.flow.label_view import Label, TreeView
from flowsieve.flow.others import SentCopy
from flowsieve.flow.proof.passage import Passage
from flowsieve.flow.table_chain import met
from flowsieve.header.encoding import CONTENT_PRIORITY


def arriving(view: TreeView) -> Mapping[str, tuple[Flow, ...]]:
    """The tables without what sends out of shut ports, and without what sends copies that nobody takes for events."""
    passage = Passage.of_labels(view)
    found = dict(passage.arriving(view.tables))
    shut = frozenset(passage.shut_ports())
    for switch in {switch for switch, _ in shut} & found.keys():
        found[switch] = tuple(
            replace(flow, actions=tuple(each for each in flow.actions if (switch, each.port) not in shut))
            for flow in found[switch]
        )
    return found


def strangers(view: TreeView) -> Iterator[str]:
    """The entries of others that labels may meet, each with its switch: what these do to them is not followed.

    Ours say of all labels what becomes of them, so that nothing meets what is below.
    """
    passage = Passage.of_labels(view)
    for switch in view.others:
        for each in passage.entries(switch):
            if each.rank >= CONTENT_PRIORITY:
                yield f"{switch}: labels may meet an entry of others: {each.text}"


def unsent(view: TreeView, switch: str, port: int, labels: Iterable[Label]) -> str | None:
    """Why none of these labels gets from a switch to what is at a port; None if one does."""
    passage, flows = Passage.of_labels(view), view.tables.get(switch, ())
    there = [met(flows, view.family, label.destination, label.source) for label in labels]
    copies = [each for some in there for flow in some for each in flow.actions if each.port == port]
    if not copies:
        return f"{switch} does not send it to {view.topology.neighbour(switch, port)}"
    lost = [passage.lost(switch, SentCopy.of(each)) for each in copies]
    return lost[0] if all(lost) else None
