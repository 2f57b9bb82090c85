"""`flowsieve explain`: the way of an event, and why it goes no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def explain(flowsieve: Command, scene: Any) -> Command:
    def call(host: str, *words: str) -> Any:
        return flowsieve("explain", scene.scenario, "--host", host, *words)

    return call


def test_a_delivered_event_is_followed_hop_by_hop(explain: Command) -> None:
    answer = explain("ann", "price=60", "side=buy", "--json")
    assert (answer.status, answer.err) == (0, "")
    found = answer.json
    assert [(hop["switch"], hop["came_from"]) for hop in found["hops"]] == [
        ("s1", "ann"),
        ("s3", "s1"),
        ("s2", "s3"),
    ]
    assert all(hop["subscriptions"] == ["cheap"] for hop in found["hops"])
    assert [hop["flow"]["out"] for hop in found["hops"]] == [["s3"], ["s2"], ["bob"]]
    assert all(hop["flow"]["priority"] > 1000 for hop in found["hops"])
    assert (found["delivered"], found["matches"], found["missed"]) == (["bob"], ["cheap"], [])
    assert found["published"] is True


def test_people_read_who_got_it_and_for_whom(explain: Command) -> None:
    answer = explain("ann", "price=150", "side=buy")
    words = " ".join(answer.out.split())
    assert answer.status == 0
    assert "ann publishes price = 150, side = 'buy'" in words
    assert "s1, from ann: ff0e:" in words
    assert "for some" in words
    assert "delivered to cy; matches some" in words
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_a_dropped_event_says_where(explain: Command) -> None:
    answer = explain("ann", "price=700", "side=buy", "--json")
    assert answer.status == 0
    (hop,) = answer.json["hops"]
    assert (hop["switch"], hop["flow"], hop["subscriptions"]) == ("s1", None, [])
    assert (answer.json["delivered"], answer.json["matches"]) == ([], [])
    people = explain("ann", "price=700", "side=buy").out
    assert "no flow matches ff0e:" in people
    assert "delivered to nobody; matches no subscription" in people


def test_an_event_outside_the_hosts_advertisements_is_not_sent(explain: Command) -> None:
    answer = explain("bob", "price=950", "side=buy", "--json")
    assert answer.status == 0
    assert (answer.json["published"], answer.json["hops"], answer.json["delivered"]) == (False, [], [])
    (miss,) = answer.json["missed"]
    assert (miss["host"], miss["subscription"]) == ("cy", "dear")
    people = explain("bob", "price=950", "side=buy").out
    assert "it is not sent: no advertisement of bob holds it" in people
    assert "missed by dear of cy" in people


def test_a_false_positive_is_explained_by_the_subscription_whose_dz_brought_it(
    explain: Command, scene: Any
) -> None:
    scene.replace("bits = 11", "bits = 4")
    answer = explain("ann", "price=110", "side=sell", "--json")
    assert answer.json["delivered"] == ["bob"]
    assert answer.json["matches"] == []
    assert {name for hop in answer.json["hops"] for name in hop["subscriptions"]} == {"cheap"}


def test_long_lists_are_cut_for_people_and_whole_for_machines(explain: Command, scene: Any) -> None:
    many = "".join(f"sub,more-{n},dee,price >= {600 + n % 7}\n" for n in range(30))
    scene.write("requests.csv", (scene.folder / "requests.csv").read_text() + many)
    assert len(explain("ann", "price=950", "side=buy", "--json").json["matches"]) == 31
    people = " ".join(explain("ann", "price=950", "side=buy").out.split())
    assert "and 23 more" in people
    assert "more-29" not in people


@pytest.mark.parametrize(
    ("host", "words", "told"),
    [
        ("eve", ["price=1", "side=buy"], ["there is no host 'eve'", "did you mean 'dee'?"]),
        ("ann", ["price=1"], ["side"]),
        ("ann", ["price=1", "side=hold"], ["'hold'", "buy"]),
        ("ann", ["price=1024", "side=buy"], ["1024", "1023"]),
        ("ann", ["price=one", "side=buy"], ["'one'", "price"]),
        ("ann", ["prise=1", "side=buy"], ["'prise'", "'price'"]),
        ("ann", ["price", "side=buy"], ["'price'", "price=…"]),
    ],
)
def test_bad_events_and_hosts_are_told(
    explain: Command, host: str, words: list[str], told: list[str]
) -> None:
    answer = explain(host, *words, "--json")
    assert (answer.status, answer.out) == (2, "")
    assert all(part in answer.err for part in told), answer.err


def test_a_host_that_is_cut_off_is_bad_input(explain: Command, scene: Any) -> None:
    scene.replace('["s3", "s1"]]', '["s3", "s1"], ["x1", "x2"]]')
    scene.replace('dee = "s3"', 'dee = "x1"')
    answer = explain("dee", "price=1", "side=buy")
    assert answer.status == 2
    assert "'dee' is in a part of the network that is cut off" in answer.err
