"""Playing a scenario: who gets what is counted as the report's words say."""

from __future__ import annotations

from typing import Any

import pytest

from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.scenario import play as module
from flowsieve.scenario.play import Columns, Played, play, settled
from flowsieve.scenario.read import read_scenario


def rows(columns: Columns) -> list[tuple[str, ...]]:
    return list(zip(*(values.tolist() for values in columns.joined().values()), strict=True))


def played(scene: Any) -> Played:
    return play(read_scenario(scene.scenario))


def test_what_arrives_is_what_the_filters_say(scene: Any) -> None:
    run = played(scene)
    assert [(event, host) for event, host, _ in rows(run.deliveries)] == [
        ("e1", "bob"),
        ("e2", "cy"),
        ("e3", "ann"),
        ("e6", "cy"),
    ]
    assert rows(run.matches) == [("e1", "cheap"), ("e2", "some"), ("e6", "dear"), ("e3", "sale")]
    assert [(event, host) for event, host, _ in rows(run.packets)] == [
        ("e1", "ann"),
        ("e2", "ann"),
        ("e3", "bob"),
        ("e6", "ann"),
    ]
    sent = {event: dst for event, _, dst in rows(run.packets)}
    assert all(sent[event] == dst for event, _, dst in rows(run.deliveries))


def test_the_report_counts_all_of_it(scene: Any) -> None:
    report = played(scene).report()
    counted = {
        key: report[key] for key in ("requests", "refused", "events", "rejected", "deliveries", "wanted")
    }
    assert counted == {"requests": 6, "refused": 0, "events": 6, "rejected": 2, "deliveries": 4, "wanted": 4}
    wrong = ("false_positives", "false_negatives", "duplicates", "repeats", "fpr")
    assert [report[key] for key in wrong] == [0, 0, 0, 0, 0.0]
    assert report["link_packets"] == 6  # s3 with its two hosts is in the middle: e1 and e3 take two links
    assert report["bits"] == 11
    assert report["flow_ops"] == report["flows"]
    assert report["first_rejected"] == [
        "e4: price = 1024 is above 1023",
        "e5: outside the advertisements of bob",
    ]


def test_false_positives_are_pairs_delivered_and_not_wanted(scene: Any) -> None:
    scene.replace("bits = 11", "bits = 0")
    report = played(scene).report()
    # Without bits every event sent goes to every other host with a subscription.
    assert (report["deliveries"], report["wanted"], report["false_positives"]) == (8, 4, 4)
    assert report["fpr"] == 0.5


def test_a_host_does_not_receive_what_it_publishes(scene: Any) -> None:
    scene.write("events.csv", "id,host,price,side\ne1,bob,60,buy\n")  # which bob's own subscription matches
    run = played(scene)
    assert run.report()["wanted"] == 0
    assert rows(run.matches) == []
    assert rows(run.deliveries) == []


def test_steps_take_effect_in_their_order(scene: Any) -> None:
    scene.write(
        "more.csv", "op,id,host,filter\nunsub,cheap,bob,\nsub,late,dee,price < 100\nunadv,half,bob,\n"
    )
    scene.write("later.csv", "id,host,price,side\nx1,ann,60,buy\nx2,bob,60,buy\n")
    scene.write(
        "scenario.toml",
        scene.scenario.read_text() + '[[step]]\nrequests = "more.csv"\n[[step]]\nevents = "later.csv"\n',
    )
    run = played(scene)
    assert [(event, host) for event, host, _ in rows(run.deliveries)][-1] == ("x1", "dee")
    assert run.report()["rejected"] == 3
    assert run.report()["false_negatives"] == 0


def test_events_without_requests_are_all_rejected_and_nothing_fails(scene: Any) -> None:
    scene.replace('[[step]]\nrequests = "requests.csv"\n', "")
    report = played(scene).report()
    assert (report["events"], report["rejected"], report["flows"], report["fpr"]) == (6, 6, 0, 0.0)


def test_batches_are_joined_as_if_they_were_one(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = played(scene)
    monkeypatch.setattr(module, "BATCH", 2)
    parts = played(scene)
    assert parts.counts == whole.counts
    for name in ("deliveries", "packets"):
        assert rows(getattr(parts, name)) == rows(getattr(whole, name))
    assert sorted(rows(parts.matches)) == sorted(rows(whole.matches))


@pytest.mark.parametrize("slice", [500, 1])
def test_what_was_refused_needs_no_end_and_what_comes_later_is_served(
    scene: Any, monkeypatch: pytest.MonkeyPatch, slice: int
) -> None:
    monkeypatch.setattr(module, "SLICE", slice)
    scene.replace("[network]\n", "[network]\ntrees = 4\ntable_capacity = 3\n")
    scene.write(
        "requests.csv",
        "op,id,host,filter\n"
        "adv,all,ann,True\n"
        "sub,wide,bob,True\n"
        "sub,cheap,bob,price < 100\n"
        "unsub,wide,bob,\n"
        "sub,wide,cy,price < 50\n"
        "unsub,wide,cy,\n",
    )
    run = played(scene)
    report = run.report()
    whole = slice > 1  # then it never comes to a difference that does not fit
    assert report["refused"] == (0 if whole else 1)
    if not whole:
        (reason,) = report["first_refused"]  # type: ignore[misc]
        assert "sub wide of bob: switch" in reason
    assert list(run.stage.plane.state.subscriptions) == ["cheap"]
    assert [(event, host) for event, host, _ in rows(run.deliveries)] == [("e1", "bob")]


def test_a_network_can_be_settled_without_sending_events(scene: Any) -> None:
    scenario = read_scenario(scene.scenario)
    stage, run = settled(scenario), play(scenario)
    assert stage.tables() == run.stage.tables()
    state = stage.plane.state
    offers, wants = list(state.advertisements.values()), list(state.subscriptions.values())
    assert verify(
        NetworkView(
            scenario.topology, scenario.index.plan, scenario.index.encoding, stage.tables(), offers, wants
        )
    ).holds


@pytest.mark.parametrize(
    "setting", ['tables = "free"', 'tables = "smallest"', "trees = 4", "table_capacity = 3"]
)
def test_every_setting_of_the_network_delivers_what_is_wanted(scene: Any, setting: str) -> None:
    scene.replace("[network]\n", f"[network]\n{setting}\n")
    report = played(scene).report()
    assert (report["wanted"], report["false_negatives"], report["duplicates"]) == (4, 0, 0)
    if "capacity" in setting:
        assert report["flows_max"] <= 3  # type: ignore[operator]
        assert report["coarsened"]


def test_work_is_watched_as_it_goes_on(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE", 4)
    seen: list[tuple[str, int, int]] = []
    play(read_scenario(scene.scenario), lambda what, done, of: seen.append((what, done, of)))
    assert seen == [("requests", 4, 6), ("requests", 6, 6), ("events", 6, 6)]
