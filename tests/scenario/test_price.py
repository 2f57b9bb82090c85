"""Prices in entries and unwanted traffic, before and after the purchase."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.scenario.play import Stage, settled
from flowsieve.scenario.price import DRAWS, false_positive_share, traffic, unwanted_share
from flowsieve.scenario.read import Scenario, read_scenario


@pytest.fixture
def scenario(scene: Any) -> Scenario:
    return read_scenario(scene.scenario)


def wanted(scenario: Scenario, text: str) -> Filter:
    return Filter.parse(text, scenario.schema)


def sizes(stage: Stage) -> dict[str, int]:
    return {switch: len(table) for switch, table in stage.tables().items()}


@pytest.mark.parametrize(
    "text", ["price == 500", "100 <= price < 700 and side == 'sell'", "price < 100", "True"]
)
def test_a_quote_is_what_the_subscription_then_costs(scenario: Scenario, text: str) -> None:
    quoted = settled(scenario).plane.quote("dee", wanted(scenario, text))
    stage = settled(scenario)
    before = sizes(stage)
    outcome = stage.plane.controller.submit([Request(Op.SUBSCRIBE, "new", "dee", wanted(scenario, text))])
    after = sizes(stage)
    assert quoted.fits
    assert quoted.entries == {switch: after[switch] - before[switch] for switch in outcome.changes}
    assert quoted.operations == {switch: len(changes) for switch, changes in outcome.changes.items()}
    assert quoted.dz == stage.plane.state.subscriptions["new"].dz
    assert any(quoted.entries.values())


def test_a_subscription_like_one_that_is_there_costs_nothing(scenario: Scenario) -> None:
    quoted = settled(scenario).plane.quote("bob", wanted(scenario, "20 <= price < 100"))
    assert (quoted.entries, quoted.operations, quoted.fits) == ({}, {}, True)


def test_a_quote_needs_no_name_that_is_free(scene: Any) -> None:
    scene.replace("sub,cheap", "sub,0", "requests.csv")
    scenario = read_scenario(scene.scenario)
    assert settled(scenario).plane.quote("dee", wanted(scenario, "price < 9")).fits


def test_what_cannot_be_served_is_quoted_with_the_reason(scene: Any) -> None:
    scene.replace("[network]\n", "[network]\ntable_capacity = 0\n")
    scenario = read_scenario(scene.scenario)
    quoted = settled(scenario).plane.quote("dee", wanted(scenario, "price < 200"))
    assert not quoted.fits
    assert quoted.reason is not None
    assert "needs at least 1 entry and has room for 0" in quoted.reason
    assert quoted.entries == quoted.operations == {}
    assert len(quoted.dz) > 0


def test_unwanted_is_what_the_dz_bring_from_others_and_the_filter_does_not_match(scene: Any) -> None:
    scene.replace("bits = 11", "bits = 2")  # a bit of price, and the side
    scene.replace("e2,ann,150,buy", "e2,ann,400,buy", "events.csv")
    scenario = read_scenario(scene.scenario)
    state = settled(scenario).plane.state
    text = "price < 200 and side == 'buy'"
    dz = scenario.index.cover(wanted(scenario, text))
    assert unwanted_share(scenario, state, "dee", wanted(scenario, text), dz) == 0.5  # e1 and e2, of which e1
    assert unwanted_share(scenario, state, "ann", wanted(scenario, text), dz) == 0.0  # both are its own


def test_traffic_is_that_of_the_events_which_may_still_be_sent(scenario: Scenario) -> None:
    stage = settled(scenario)
    assert traffic(scenario, stage.plane.state.advertisements.values()).ids.tolist() == [
        "e1",
        "e2",
        "e3",
        "e6",
    ]
    stage.plane.controller.submit([Request(Op.UNADVERTISE, "half", "bob")])
    assert traffic(scenario, stage.plane.state.advertisements.values()).ids.tolist() == ["e1", "e2", "e6"]


def test_without_events_traffic_is_drawn_evenly_from_what_is_advertised(scene: Any) -> None:
    scene.replace('[[step]]\nevents = "events.csv"\n', "")
    scene.replace(
        "[schema]\n",
        "[schema]\nwide = { type = 'float', min = -1.7e308, max = 1.7e308 }\nword = { type = 'string' }\n",
    )
    scene.write("requests.csv", "op,id,host,filter\nadv,half,bob,price < 512\nsub,all,cy,True\n")
    scenario = read_scenario(scene.scenario)
    drawn = traffic(scenario, settled(scenario).plane.state.advertisements.values())
    assert set(drawn.hosts) == {"bob"}
    assert 0.45 * DRAWS < len(drawn) < 0.55 * DRAWS
    assert 230 < drawn.columns["price"].mean() < 280
    assert abs((drawn.columns["wide"] > 0).mean() - 0.5) < 0.03
    assert np.isfinite(drawn.columns["wide"]).all()
    assert not drawn.faults()[0].any()


def test_where_nobody_advertises_there_is_no_traffic_and_no_price(scene: Any) -> None:
    scene.write("requests.csv", "op,id,host,filter\nsub,all,cy,True\n")
    scenario = read_scenario(scene.scenario)
    stage = settled(scenario)
    assert len(traffic(scenario, stage.plane.state.advertisements.values())) == 0
    assert false_positive_share(scenario, stage.plane, stage.tables()) == 0.0


def flood(scenario: Scenario) -> dict[str, list[Flow]]:
    """Tables that send everything out of every port."""
    everything = PrefixMatch(Prefix.parse("ff0e::/16"))
    near = scenario.topology.neighbours
    return {
        switch: [Flow(everything, 1000, tuple(map(Output, range(1, len(near(switch)) + 1))))]
        for switch in scenario.topology.switches
    }


def test_the_share_of_unwanted_copies_is_that_of_the_tables_given(scene: Any, scenario: Scenario) -> None:
    stage = settled(scenario)
    assert false_positive_share(scenario, stage.plane, stage.tables()) == 0.0
    scene.replace('["s2", "s3"], ["s3", "s1"]', '["s2", "s3"]')
    line = read_scenario(scene.scenario)
    # Four events to three others each, of which one wants it.
    assert false_positive_share(line, settled(line).plane, flood(line)) == pytest.approx(8 / 12)


def test_no_share_can_be_told_where_packets_multiply(scene: Any) -> None:
    links = [[f"s{a}", f"s{b}"] for a in range(1, 6) for b in range(1, a)]
    scene.replace('[["s1", "s2"], ["s2", "s3"], ["s3", "s1"]]', str(links))
    scenario = read_scenario(scene.scenario)
    assert false_positive_share(scenario, settled(scenario).plane, flood(scenario)) is None
