"""What the service counts comes out in Prometheus' form, and the board in docs/ shows nothing that is not there."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from flowsieve.client.stats import Stats
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.discovery.differences import Difference, DifferenceKind
from flowsieve.control.dispatcher import Dispatcher
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.generators import line
from flowsieve.serving.metrics import metrics as module
from flowsieve.serving.metrics.gauges import Sources
from flowsieve.serving.metrics.metrics import Metrics
from flowsieve.serving.telemetry.intake import ReportIntake
from flowsieve.serving.telemetry.settings import TelemetrySettings
from flowsieve.southbound.embedded.network import EmbeddedNetwork
from flowsieve.testing.embedded_fabric import EmbeddedFabric

BOARD = Path(__file__).parents[3] / "docs" / "grafana" / "flowsieve.json"
SCHEMA = Schema.parse({"level": {"type": "int", "min": 0, "max": 255}})
NETWORK = line(3)


def samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every figure by its name and the values of its labels."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def value(metrics: Metrics, *name: str) -> float:
    return samples(metrics)[(f"flowsieve_{name[0]}", *name[1:])]


def test_requests_are_counted_by_kind_and_outcome_and_timed_when_served() -> None:
    metrics = Metrics()
    metrics.asked("sub", "ok", 0.004)
    metrics.asked("sub", "ok", 0.3)
    metrics.asked("sub", "refused", 9.0)
    metrics.asked("adv", "ok", 0.001)
    assert value(metrics, "requests_total", "sub", "ok") == 2
    assert value(metrics, "requests_total", "sub", "refused") == 1
    assert value(metrics, "acknowledgement_seconds_count", "sub") == 2
    assert value(metrics, "acknowledgement_seconds_sum", "sub") == pytest.approx(0.304)
    assert value(metrics, "acknowledgement_seconds_bucket", "0.005", "sub") == 1
    assert value(metrics, "acknowledgement_seconds_bucket", "+Inf", "sub") == 2


def test_what_clients_invent_makes_no_labels() -> None:
    metrics = Metrics()
    for n in range(1000):
        metrics.asked(f"op{n}", f"outcome{n}", 0.1)
    assert value(metrics, "requests_total", "other", "other") == 1000
    assert len([name for name, *_ in samples(metrics) if name == "flowsieve_requests_total"]) == 1


def test_reports_of_clients_add_up_whatever_their_order_and_number() -> None:
    metrics = Metrics()
    first, second = Stats(received=10, delivered=7, lost=1), Stats(received=25, delivered=20, lost=1)
    for stats in (first, second, first, second):
        metrics.client_reported("a", stats.to_json())
    metrics.client_reported("b", Stats(received=5, false_positives=2).to_json())
    assert value(metrics, "client_received_total") == 30
    assert value(metrics, "client_delivered_total") == 20
    assert value(metrics, "client_false_positives_total") == 2
    assert value(metrics, "client_lost_total") == 1


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.dictionaries(st.sampled_from(["sent", "lost"]), st.integers(0, 50))
        )
    )
)
def test_the_sum_is_that_of_the_highest_count_of_each_client(
    reports: list[tuple[str, dict[str, int]]],
) -> None:
    metrics = Metrics()
    highest: Counter[tuple[str, str]] = Counter()
    for session, stats in reports:
        metrics.client_reported(session, stats)
        for name, count in stats.items():
            highest[session, name] = max(highest[session, name], count)
    for name in ("sent", "lost"):
        expected = sum(count for (_, each), count in highest.items() if each == name)
        assert value(metrics, f"client_{name}_total") == expected


@pytest.mark.parametrize("wrong", [-1, 1.5, "7", True, None, 1 << 60])
def test_what_is_no_count_in_a_report_is_passed_over_and_counted(wrong: object) -> None:
    metrics = Metrics()
    metrics.client_reported("a", {"sent": 5, "lost": wrong, "first_events": wrong})
    assert value(metrics, "client_sent_total") == 5
    assert value(metrics, "client_lost_total") == 0
    assert value(metrics, "client_reports_strange_total") == 2


def test_what_a_report_says_beyond_counts_is_left_alone() -> None:
    metrics = Metrics()
    before = samples(metrics).keys()
    metrics.client_reported("a", {"sent": 5, "mood": "fine"})
    assert samples(metrics).keys() == before


def test_sessions_are_remembered_up_to_a_bound_until_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SESSIONS", 2)
    metrics = Metrics()
    metrics.client_reported("gone", {"sent": 1})
    metrics.client_left("gone")
    metrics.client_left("never there")
    for session in ("a", "b", "a", "c", "a"):  # b has reported longest ago when c comes
        metrics.client_reported(session, {"sent": 1})
    assert value(metrics, "client_sent_total") == 4
    assert value(metrics, "client_reports_forgotten_total") == 1
    assert len(metrics._reports) == 2


def test_times_to_first_events_are_observed_once_each() -> None:
    metrics = Metrics()
    for times, total in ((1, 3_000), (1, 3_000), (3, 403_000), (0, 0)):
        metrics.client_reported("a", {"first_events": times, "first_event_us": total})
    assert value(metrics, "first_event_seconds_count") == 3
    assert value(metrics, "first_event_seconds_sum") == pytest.approx(0.403)
    assert value(metrics, "first_event_seconds_bucket", "0.005") == 1
    metrics.client_reported("b", {"first_events": 1 << 50, "first_event_us": 1})
    assert value(metrics, "first_event_seconds_count") == 3 + module.MOST_FIRST


def test_two_services_count_each_for_itself() -> None:
    one, other = Metrics(), Metrics()
    one.asked("sub", "ok", 0.1)
    assert "flowsieve_requests_total{" in one.render().decode()
    assert "flowsieve_requests_total{" not in other.render().decode()


async def figures_of_a_service() -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], float]]:
    """All that a real dispatcher over three switches shows, with a link up and then down."""
    state = ControlState(NETWORK, RegularPlan.make(SCHEMA), settings=Settings(capacity=100))
    fabric = EmbeddedFabric(EmbeddedNetwork(NETWORK), lambda event: dispatcher.heard(event))
    dispatcher = Dispatcher(state, fabric, encoding_of("ipv6"), drain=0.0)
    metrics = Metrics()
    connected = set(NETWORK.switches)
    metrics.watch(
        Sources(
            dispatcher,
            connected=lambda: connected,
            suppressed=lambda: {frozenset(("s0", "s1"))},
            queues={"requests": lambda: 4},
            clients=lambda: 2,
            journal_bytes=lambda: 4096,
            inband=lambda: {"received": 9, "malformed": 1},
            differences=lambda: [Difference(DifferenceKind.LINK_MISSING, "…")],
            telemetry=ReportIntake(TelemetrySettings(share=0.25)),
        )
    )
    metrics.asked("sub", "ok", 0.01)
    metrics.repaired("s1", 3)
    metrics.mended(0.2)
    metrics.appended(2, 0.001)
    metrics.client_reported("a", {"first_events": 1, "first_event_us": 500_000})
    async with asyncio.timeout(30), dispatcher:
        for switch in NETWORK.switches:
            fabric.connect(switch)
        await dispatcher.submit(Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA)))
        await dispatcher.submit(Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("level < 100", SCHEMA)))
        before = samples(metrics)
        fabric.set_link("s1", "s2", up=False)
        connected.discard("s2")
        await dispatcher.settled()
        return before, samples(metrics)


@pytest.fixture(scope="module")
def figures() -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], float]]:
    return asyncio.run(figures_of_a_service())


def test_a_dispatcher_is_read_when_somebody_asks(figures: tuple[dict[Any, float], dict[Any, float]]) -> None:
    before, after = figures
    assert before["flowsieve_flows", "s1"] > 0
    assert before["flowsieve_flow_capacity", "s1"] == 100
    assert before["flowsieve_flow_operations_total",] > 0
    assert (
        before["flowsieve_interests", "subscription"] == before["flowsieve_interests", "advertisement"] == 1
    )
    assert before["flowsieve_switches_connected",] == before["flowsieve_switches",] == 3
    assert before["flowsieve_switch_settled", "s2"] == before["flowsieve_trees_whole",] == 1
    assert before["flowsieve_links_down",] == 0
    assert before["flowsieve_queue_length", "requests"] == 4
    assert before["flowsieve_differences", "link missing"] == 1
    assert before["flowsieve_differences", "host unknown"] == 0
    assert after["flowsieve_links_down",] == 1
    assert after["flowsieve_links_suppressed",] == 1
    assert after["flowsieve_switches_connected",] == 2
    assert after["flowsieve_switch_connected", "s2"] == 0
    assert after["flowsieve_journal_bytes",] == 4096
    assert after["flowsieve_inband_packets_total", "malformed"] == 1
    assert after["flowsieve_telemetry_share",] == 0.25
    assert after["flowsieve_telemetry_rows_total", "events"] == 0


def test_without_sources_there_is_nothing_of_the_network_and_no_error() -> None:
    assert not any(name == "flowsieve_flows" for name, *_ in samples(Metrics()))


# The board.


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", [])


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    loaded = json.loads(BOARD.read_text())
    assert isinstance(loaded, dict)
    return loaded


def queries(board: dict[str, Any]) -> set[str]:
    """The metrics that panels and variables ask for."""
    asked = [target["expr"] for panel in panels(board) for target in panel.get("targets", [])]
    asked += [variable["definition"] for variable in board["templating"]["list"] if "definition" in variable]
    return {name for expression in asked for name in re.findall(r"\bflowsieve_\w+", expression)}


def test_every_metric_on_the_board_is_exported(
    board: dict[str, Any], figures: tuple[dict[Any, float], dict[Any, float]]
) -> None:
    exported = {name for name, *_ in figures[1]}
    assert len(queries(board)) > 30
    assert queries(board) - exported == set()


def test_every_metric_that_is_exported_is_on_the_board(
    board: dict[str, Any], figures: tuple[dict[Any, float], dict[Any, float]]
) -> None:
    exported = {name for name, *_ in figures[1] if not name.endswith(("_created", "_sum", "_count"))}
    assert exported - queries(board) == set()


def test_labels_that_the_board_groups_by_or_shows_are_exported(board: dict[str, Any]) -> None:
    known = {"op", "outcome", "switch", "queue", "kind", "side", "what", "le", "job", "reason", "phase"}
    for panel in panels(board):
        for target in panel.get("targets", []):
            by = re.findall(r"by \(([^)]*)\)", target["expr"])
            groups = {label.strip() for group in by for label in group.split(",")}
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert groups | shown <= known, panel["title"]
            assert not by or shown <= groups, panel["title"]
            assert target["expr"].count("(") == target["expr"].count(")"), panel["title"]


def test_the_board_has_its_groups_and_its_panels_do_not_overlap(board: dict[str, Any]) -> None:
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert rows == ["Service", "Network", "Tables", "Clients", "Telemetry"]
    ids = [panel["id"] for panel in panels(board)]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or (panel["description"] and panel["targets"])
