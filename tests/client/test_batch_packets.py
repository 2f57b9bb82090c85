"""Publishers send what lies in the content space and in their advertisements, a packet for each dz."""

from __future__ import annotations

import pandas as pd
import pytest

from flowsieve.client.batch_packets import SHOWN, packets_of, screen
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.flow.interest import Interest
from flowsieve.header.encoding import encoding_of
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import WHOLE
from flowsieve.index.plans.regular import RegularPlan

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "ratio": {"type": "float", "min": 0, "max": 1},
        "side": {"type": "enum", "values": ["buy", "sell"]},
    }
)


def offer(host: str, text: str) -> Interest:
    return Interest(f"{host}: {text}", host, Filter.parse(text, SCHEMA), WHOLE)


def batch(*rows: tuple[str, str, object, object, object]) -> EventBatch:
    return EventBatch.from_frame(SCHEMA, pd.DataFrame(rows, columns=["id", "host", *SCHEMA.names]))


def test_only_events_inside_the_schema_and_the_publishers_own_advertisements_are_sent() -> None:
    events = batch(
        ("e1", "h1", 7, 0.5, "buy"),
        ("e2", "h1", 200, 0.5, "buy"),
        ("e3", "h2", 7, 0.5, "buy"),
        ("e4", "h2", 200, 0.5, "buy"),
        ("e5", "h3", 7, 0.5, "buy"),
        ("e6", "h1", 1024, 0.5, "buy"),
    )
    screened = screen(
        events, [offer("h1", "price < 100"), offer("h2", "price > 100"), offer("h2", "ratio > 0.9")]
    )
    assert screened.good.tolist() == [True, False, False, True, False, False]
    assert screened.rejected == 4
    assert screened.reasons == (
        "e2: outside the advertisements of h1",
        "e3: outside the advertisements of h2",
        "e5: h3 has advertised nothing",
        "e6: price = 1024 is above 1023",
    )


@pytest.mark.parametrize(
    ("price", "ratio", "side", "why"),
    [
        (-1, 0.5, "buy", "price = -1 is below 0"),
        (7.5, 0.5, "buy", "price = 7.5 is not a whole number"),
        (7, float("nan"), "buy", "ratio is missing or not a number"),
        (7, float("inf"), "buy", "ratio = inf is not finite"),
        (7, 0.5, "hold", "side = 'hold' is none of buy, sell"),
        (7, 0.5, None, "side is missing"),
    ],
)
def test_a_rejected_event_is_told_with_the_reason(price: float, ratio: float, side: object, why: str) -> None:
    screened = screen(batch(("e1", "h1", price, ratio, side)), [offer("h1", "True")])
    assert screened.rejected == 1
    assert screened.reasons == (f"e1: {why}",)


def test_all_that_are_rejected_are_counted_and_the_first_few_told() -> None:
    screened = screen(batch(*((f"e{n}", "h1", 7, 0.5, "buy") for n in range(20))), [])
    assert screened.rejected == 20
    assert len(screened.reasons) == SHOWN
    assert screened.reasons[0] == "e0: h1 has advertised nothing"


@pytest.mark.parametrize("header", POOLS)
def test_the_packets_of_a_batch_are_those_of_its_events_one_by_one(header: str) -> None:
    encoding = encoding_of(header)
    plan = RegularPlan.make(SCHEMA, room=encoding.room)
    events = batch(*((f"e{n}", "h1", n * 37 % 1024, n / 99, ("buy", "sell")[n % 2]) for n in range(100)))
    packets = packets_of(events, plan, encoding)
    assert packets.rows.tolist() == list(range(100))
    expected = [encoding.text(dz) for row in range(100) for dz in plan.encode(events.event(row))]
    assert packets.addresses().tolist() == expected
    assert len(set(expected)) > 50


def test_the_addresses_are_those_of_the_design() -> None:
    plan = RegularPlan.make(
        Schema.parse({name: {"type": "int", "min": 0, "max": 99} for name in "AB"}), bits=6
    )
    events = EventBatch.from_events(plan.schema, "h1", [{"A": 65, "B": 55}])
    assert packets_of(events, plan, encoding_of("ipv6")).addresses().tolist() == ["ff0e:c800::"]
    assert encoding_of("ipv4").text(Dz.parse("0101")) == "225.168.0.0"


def test_no_events_make_no_packets() -> None:
    packets = packets_of(batch(), RegularPlan.make(SCHEMA), encoding_of("ipv6"))
    assert packets.addresses().tolist() == []
