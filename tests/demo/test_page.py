from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from flowsieve.demo.page import render
from flowsieve.demo.telling import Telling
from flowsieve.flow.proof.verify import Verdict, Witness


@pytest.fixture(scope="module")
def page(told: Telling) -> str:
    return render(told)


def parsed(page: str) -> ET.Element:
    first, rest = page.split("\n", 1)
    assert first == "<!doctype html>"
    return ET.fromstring(rest)


def test_the_page_is_well_formed_and_its_ids_are_unique(page: str) -> None:
    root = parsed(page)
    assert root.tag == "html"
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert {label.get("for") for label in root.iter("label")} <= set(ids)


def test_the_page_needs_nothing_from_outside(page: str) -> None:
    assert not re.findall(r"https?://(?!www\.w3\.org/)", page)
    assert not re.findall(r"@import|url\(", page)
    root = parsed(page)
    assert not [each.tag for each in root.iter() if each.get("src") is not None]
    links = [value for each in root.iter() for name, value in each.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)
    assert not list(root.iter("link"))


def test_the_page_shows_every_switch_and_host_and_subscription(told: Telling, page: str) -> None:
    words = set(parsed(page).itertext())
    assert words >= {*told.story.topology.switches, *told.story.topology.hosts}
    assert words >= {word for each in told.story.subscriptions for word in (each.id, each.filter)}


def test_the_figures_on_the_page_are_those_that_were_counted(told: Telling, page: str) -> None:
    words = set(parsed(page).itertext())
    for way in told.ways.values():
        assert f"{way.between_switches:,}" in words
        for (a, b), packets in way.packets.items():
            assert not packets or f"{a} → {b}: {packets:,} packets" in words
    for switch, flows in told.tables.items():
        assert f"switch {switch}: {flows:,} flows" in words


def test_the_way_of_the_followed_event_is_drawn(told: Telling, page: str) -> None:
    found = told.followed
    steps = {(hop.came_from, hop.switch) for hop in found.hops}
    steps |= {(hop.switch, to) for hop in found.hops for to in hop.out}
    traced = [
        g for g in parsed(page).iter("g") if any(line.get("class") == "trace" for line in g.iter("line"))
    ]
    assert {g.find("title").text for g in traced} == {f"{a} → {b}" for a, b in steps}


def test_a_proof_that_fails_is_not_shown_as_one_that_holds(told: Telling) -> None:
    failed = Telling(told.story)
    failed.__dict__.update(
        {
            name: getattr(told, name)
            for name in ("pubsub", "delivered", "tables", "broker", "ways", "followed")
        }
    )
    failed.__dict__["verdict"] = Verdict(
        false_negatives=2, witness=Witness(None, "h0", "false negative", "h9 wants it and does not get it")
    )
    words = " ".join(parsed(render(failed)).itertext())
    assert "The tables do not hold." in words
    assert "h9 wants it and does not get it" in words
    assert "Proved" not in words
