"""Publish and subscribe in one process: results are exact, mistakes are told, refusals leave no trace."""

from __future__ import annotations

import pytest

from flowsieve import BadInput, PubSub, Refused, Schema, Settings, Tables, Topology, TreeMap, ring

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "side": {"type": "enum", "values": ["buy", "sell"]},
    }
)
NETWORK = Topology.make(
    [("s1", "s2"), ("s2", "s3"), ("x1", "x2")], {"ann": "s1", "bob": "s2", "cy": "s3", "far": "x1"}
)


@pytest.fixture
def pubsub() -> PubSub:
    made = PubSub(SCHEMA, NETWORK)
    made.advertise("ann")
    return made


def test_an_event_reaches_those_who_want_it_and_nobody_else(pubsub: PubSub) -> None:
    cheap, dear = pubsub.subscribe("bob", "price < 100"), pubsub.subscribe("cy", "price >= 900")
    sent = pubsub.publish("ann", price=60, side="buy")
    assert (sent.hosts, sent.matches) == (("bob",), (cheap.id,))
    assert cheap.received == [{"price": 60, "side": "buy"}]
    assert dear.received == []
    assert pubsub.publish("ann", {"price": 500, "side": "buy"}).hosts == ()
    assert pubsub.verify().holds


def test_applications_see_exact_results_where_the_network_delivers_more() -> None:
    coarse = PubSub(SCHEMA, NETWORK, settings=Settings(budget=1))
    coarse.advertise("ann")
    wanted = coarse.subscribe("bob", "500 <= price < 600")
    sent = coarse.publish("ann", price=10, side="buy")
    assert (sent.hosts, sent.matches, wanted.received) == (("bob",), (), [])


def test_subscribers_do_not_share_the_event_they_received(pubsub: PubSub) -> None:
    one, two = pubsub.subscribe("bob", "price < 100"), pubsub.subscribe("bob", "price < 200")
    pubsub.publish("ann", price=60, side="buy")
    one.received[0]["price"] = 0
    assert two.received == [{"price": 60, "side": "buy"}]


def test_a_subscription_ends_with_its_context_and_may_be_cancelled_twice(pubsub: PubSub) -> None:
    with pubsub.subscribe("bob", "True") as all_of_it:
        pubsub.publish("ann", price=1, side="buy")
    all_of_it.cancel()
    assert pubsub.publish("ann", price=2, side="buy").hosts == ()
    assert len(all_of_it.received) == 1
    assert not any(pubsub.tables().values())


def test_after_the_end_of_an_advertisement_nothing_can_be_published(pubsub: PubSub) -> None:
    pubsub.subscribe("bob", "True")
    offer = pubsub.advertise("cy", "side == 'buy'")
    assert pubsub.publish("cy", price=1, side="buy").hosts == ("bob",)
    pubsub.unadvertise(offer)
    with pytest.raises(BadInput, match="cy has no advertisement that covers"):
        pubsub.publish("cy", price=1, side="buy")
    with pytest.raises(BadInput, match="there is no advertisement"):
        pubsub.unadvertise(offer)


def test_ids_are_given_where_none_is_chosen_and_never_twice(pubsub: PubSub) -> None:
    pubsub.subscribe("bob", "price < 3", id="sub-1")
    assert pubsub.subscribe("bob", "price < 4").id == "sub-2"
    with pytest.raises(BadInput, match="'sub-2' of this sub is in use already"):
        pubsub.subscribe("cy", "price < 5", id="sub-2")


@pytest.mark.parametrize(
    ("host", "event", "why"),
    [
        ("ann", {"price": 60}, "side is missing"),
        ("ann", {"price": 1024, "side": "buy"}, "1023"),
        ("ann", {"price": 60, "side": "buy", "colour": "red"}, "colour"),
        ("bob", {"price": 60, "side": "buy"}, "bob has no advertisement"),
    ],
)
def test_a_bad_event_is_not_sent(pubsub: PubSub, host: str, event: dict[str, object], why: str) -> None:
    pubsub.subscribe("cy", "True")
    with pytest.raises(BadInput, match=why):
        pubsub.publish(host, event)
    assert pubsub.network.deliveries == []


def test_bad_requests_change_nothing(pubsub: PubSub) -> None:
    for ask in (
        lambda: pubsub.subscribe("bob", "prise < 3"),
        lambda: pubsub.subscribe("rob", "price < 3"),
        lambda: pubsub.subscribe("far", "price < 3"),
        lambda: PubSub(SCHEMA, NETWORK, header="ipv5"),
    ):
        with pytest.raises(BadInput):
            ask()
    assert pubsub.state.subscriptions == {}


def test_what_does_not_fit_is_refused_and_can_be_asked_for_again() -> None:
    tight = PubSub(SCHEMA, NETWORK, trees=TreeMap.spread(NETWORK, 4), settings=Settings(capacity=3))
    tight.advertise("ann")
    with pytest.raises(Refused, match="needs at least 5 entries and has room for 3"):
        tight.subscribe("bob", "True", id="mine")
    narrow = tight.subscribe("bob", "price < 4 and side == 'buy'", id="mine")
    assert tight.publish("ann", price=3, side="buy").matches == (narrow.id,)


@pytest.mark.parametrize("header", ["ipv6", "ipv4"])
@pytest.mark.parametrize("kind", Tables)
def test_all_headers_and_tables_deliver_alike(header: str, kind: Tables) -> None:
    network = ring(5, 10)
    made = PubSub(
        SCHEMA, network, header=header, trees=TreeMap.spread(network, 2), settings=Settings(tables=kind)
    )
    made.advertise("h0", "price < 512")
    for n in range(1, 10):
        made.subscribe(f"h{n}", f"{100 * n} <= price < {100 * n + 60}")
    assert made.publish("h0", price=430, side="sell").matches == ("sub-4",)
    assert made.verify().holds


def test_an_event_is_explained_hop_by_hop(pubsub: PubSub) -> None:
    pubsub.subscribe("cy", "price < 100", id="mine")
    found = pubsub.explain("ann", price=60, side="buy")
    assert [(hop.switch, hop.subscriptions) for hop in found.hops] == [
        (f"s{n}", ("mine",)) for n in (1, 2, 3)
    ]
    assert (found.delivered, found.matches) == (("cy",), ("mine",))
