"""Publishers that match: whose filters they hold, and for whom their packets are."""

from __future__ import annotations

import numpy as np

from flowsieve.client.label_packets import holders, labelled_packets, offers_of, receivers_of
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.interest import Interest
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import POOLS
from flowsieve.index.dzset import WHOLE

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 9}})


def interest(name: str, host: str, text: str) -> Interest:
    return Interest(name, host, Filter.parse(text, SCHEMA), WHOLE)


OFFERS = [interest("x", "h1", "a < 5"), interest("y", "h2", "a >= 3"), interest("z", "h2", "a >= 3")]
WANTS = [
    interest("low", "h3", "a < 2"),
    interest("mid", "h3", "3 <= a <= 6"),
    interest("same", "h4", "3 <= a <= 6"),
    interest("own", "h1", "a < 5"),
    interest("none", "h5", "a == 9"),
]


def events(*rows: tuple[str, int]) -> EventBatch:
    hosts = np.array([host for host, _ in rows], dtype=object)
    ids = np.array([f"e{n}" for n in range(len(rows))], dtype=object)
    return EventBatch(SCHEMA, ids, hosts, {"a": np.array([value for _, value in rows], float)})


def test_a_publisher_holds_what_overlaps_its_advertisements() -> None:
    offers = offers_of(OFFERS)
    assert [len(filters) for filters in offers.values()] == [1, 1]  # the same one once
    assert [holders(Filter.parse(text, SCHEMA), offers) for text in ("a < 2", "a == 4", "a == 9")] == [
        ["h1"],
        ["h1", "h2"],
        ["h2"],
    ]


def test_receivers_are_others_that_match() -> None:
    found = receivers_of(events(("h1", 1), ("h1", 4), ("h2", 4), ("h2", 9)), OFFERS, WANTS)
    assert {host: rows.tolist() for host, rows in found.items()} == {
        "h3": [True, True, True, False],
        "h4": [False, True, True, False],
        "h1": [False, False, True, False],
        "h5": [False, False, False, True],
    }


def test_an_event_is_sent_once_for_each_set_and_not_at_all_for_nobody() -> None:
    labels = ReceiverLabels(POOLS["receivers"][0], (("h1", "h3"), ("h4", "h5")))
    packets = labelled_packets(events(("h1", 2), ("h1", 4), ("h1", 1)), OFFERS, WANTS, labels)
    assert packets.rows.tolist() == [1, 1, 2]
    assert packets.addresses().tolist() == [*labels.texts(["h3", "h4"]), *labels.texts(["h3"])]
