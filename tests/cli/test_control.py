"""`flowsieve control status` and `flowsieve configurator`: who decides, and who has nothing to decide."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from flowsieve.cli import control

Command = Callable[..., Any]

SHARING: dict[str, Any] = {
    "address": "127.0.0.1:7430",
    "configurators": {
        "rack1-1#1": {"partitions": 1, "waiting": 1234, "decided": 56789, "visits": 1000000},
        "rack1-2#2": {"partitions": 1, "waiting": 0, "decided": 7, "visits": 9},
    },
    "partitions": [
        {"dz": "0", "owner": "rack1-1#1", "number": 3, "ready": True, "interests": 4321, "waiting": 1234,
         "recently": 12.5},
        {"dz": "1", "owner": "rack1-2#2", "number": 1, "ready": True, "interests": 0, "waiting": 0,
         "recently": 0.0},
    ],
    "migrations": 2,
    "takeovers": 1,
    "trouble": None,
}  # fmt: skip
CONTROL = {
    "node": "rack1",
    "leads": True,
    "doubt": None,
    "nodes": [{"node": "rack1"}, {"node": "rack2"}],
    "sharing": SHARING,
}


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """Have a controller tell this as its status."""

    def answer(status: dict[str, Any]) -> None:
        async def asked_of(at: str | None, lab: str | None, path: str) -> dict[str, Any]:
            assert path == "/v1/status"
            return status

        monkeypatch.setattr(control, "asked_of", asked_of)

    return answer


def words(text: str) -> str:
    return " ".join(text.split())


def test_it_shows_who_leads_who_owns_what_and_what_waits(
    flowsieve: Command, answering: Callable[[dict[str, Any]], None]
) -> None:
    answering({"control": CONTROL})
    answer = flowsieve("control", "status")
    assert (answer.status, answer.err) == (0, "")
    told = words(answer.out)
    assert "rack1 leads" in told
    assert "rack2" in told
    assert "deciding yes" in told
    assert "2; takeovers 1" in told
    assert "rack1-1#1 1 1,234 56,789 1,000,000" in told
    assert "0 rack1-1#1 3 4,321 1,234 12.5" in told
    assert all(len(line) <= 80 for line in answer.out.splitlines()), answer.out


def test_machines_get_all_of_it(flowsieve: Command, answering: Callable[[dict[str, Any]], None]) -> None:
    answering({"control": CONTROL})
    answer = flowsieve("control", "status", "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json == CONTROL


def test_that_nobody_decides_is_told_by_the_exit_status(
    flowsieve: Command, answering: Callable[[dict[str, Any]], None]
) -> None:
    told = deepcopy(CONTROL)
    sharing: Any = told["sharing"]
    sharing["trouble"] = "no configurator is connected"
    sharing["configurators"] = {}
    for each in sharing["partitions"]:
        each["owner"], each["ready"] = None, False
    answering({"control": told})
    answer = flowsieve("control", "status")
    assert answer.status == 1
    assert "deciding no configurator is connected" in words(answer.out)
    assert answer.out.count("nobody (taking it up)") == 2
    assert flowsieve("control", "status", "--json").status == 1


def test_a_partition_that_is_the_whole_space_is_all_of_it(
    flowsieve: Command, answering: Callable[[dict[str, Any]], None]
) -> None:
    told = deepcopy(CONTROL)
    sharing: Any = told["sharing"]
    sharing["partitions"] = [{**sharing["partitions"][0], "dz": "", "ready": False}]
    answering({"control": told})
    assert "all rack1-1#1 (taking it up) 3" in words(flowsieve("control", "status").out)


def test_a_controller_that_shares_an_etcd_and_decides_alone_says_so(
    flowsieve: Command, answering: Callable[[dict[str, Any]], None]
) -> None:
    answering({"control": {**{key: CONTROL[key] for key in ("node", "leads", "doubt")}, "nodes": []}})
    answer = flowsieve("control", "status")
    assert answer.status == 0
    assert "none: the controller decides on all tables itself" in words(answer.out)
    assert "nobody stands by" in words(answer.out)


def test_one_that_may_not_lead_says_why(
    flowsieve: Command, answering: Callable[[dict[str, Any]], None]
) -> None:
    answering({"control": {**CONTROL, "leads": False, "doubt": "its lease has run out"}})
    assert "rack1 may not lead: its lease has run out" in words(flowsieve("control", "status").out)


def test_a_controller_without_the_section_shares_with_nobody(
    flowsieve: Command, answering: Callable[[dict[str, Any]], None]
) -> None:
    answering({"ready": True})
    answer = flowsieve("control", "status")
    assert answer.status == 2
    assert "this controller shares its work with nobody; right is [control]" in words(answer.err)


def test_where_no_controller_answers_that_is_said(flowsieve: Command, tmp_path: Path) -> None:
    answer = flowsieve("control", "status", "--control", f"unix:{tmp_path / 'nothing'}")
    assert answer.status != 0
    assert "Traceback" not in answer.err
    assert answer.err


SCHEMA = '[schema]\nprice = { type = "int", min = 0, max = 1023 }\n'


@pytest.mark.parametrize(
    "section", ["", "[control]\npartitions = 8\n", '[control]\netcd = ["127.0.0.1:2379"]\n']
)
def test_a_configuration_that_shares_nothing_out_has_no_use_for_a_configurator(
    flowsieve: Command, tmp_path: Path, section: str
) -> None:
    path = tmp_path / "market.toml"
    path.write_text(SCHEMA + section)
    answer = flowsieve("configurator", path)
    assert answer.status == 2
    assert "market.toml has no use for a configurator" in words(answer.err)
    assert "right is [control] with configurators = 2" in words(answer.err)


def test_a_configurator_is_told_by_its_name_and_decides_for_who_is_named_in_the_section(
    flowsieve: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flowsieve.serving import configuring

    found: list[tuple[Any, str, bool]] = []
    monkeypatch.setattr(configuring, "decide", lambda *told: found.append(told))
    path = tmp_path / "market.toml"
    path.write_text(SCHEMA + '[control]\netcd = ["127.0.0.1:2379"]\nconfigurators = 2\n')
    assert flowsieve("configurator", path, "--name", "rack2").status == 0
    ((settings, name, with_parent),) = found
    assert (settings.name, settings.etcd, settings.configurators) == ("market", ("127.0.0.1:2379",), 2)
    assert (name, with_parent) == ("rack2", False)


def test_a_configuration_that_is_wrong_is_told_with_its_line(flowsieve: Command, tmp_path: Path) -> None:
    path = tmp_path / "market.toml"
    path.write_text(SCHEMA + "[control]\nconfigurators = 2\n")
    answer = flowsieve("configurator", path)
    assert answer.status == 2
    assert "market.toml line 4" in words(answer.err)
