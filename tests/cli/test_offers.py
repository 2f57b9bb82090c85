"""The commands offers list and offers approve, and the operator's token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Flowsieve = Callable[..., Any]
CONFIG = """\
[schema]
price = { type = "int", min = 0, max = 1023 }
[controller]
http = ["tcp:127.0.0.1:0"]
listen = "tcp:127.0.0.1:0"
[offers]
auto = %s
[switches.s1]
datapath_id = 161
[switches.s2]
datapath_id = 162
[network]
links = [["s1", "s2"]]
[network.hosts]
ann = "s1"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "market.toml"
    path.write_text(CONFIG % "true")
    return path


def test_an_operator_has_a_token_that_no_host_has(config: Path, flowsieve: Flowsieve) -> None:
    operator = flowsieve("token", config, "--operator")
    host = flowsieve("token", config, "ann")
    assert (operator.status, host.status) == (0, 0), operator.err + host.err
    assert len(operator.out.strip()) == len(host.out.strip()) == 32
    assert operator.out != host.out
    assert flowsieve("token", config, "--operator").out == operator.out
    for wrong in (["token", config], ["token", config, "ann", "--operator"]):
        answer = flowsieve(*wrong)
        assert answer.status == 2
        assert "right is one of them" in answer.err


def test_who_approves_is_said_in_the_configuration(config: Path, flowsieve: Flowsieve) -> None:
    assert flowsieve("controller", config, "--check").status == 0
    config.write_text(CONFIG % '"always"')
    answer = flowsieve("controller", config, "--check")
    assert answer.status == 2
    assert "auto is 'always'; right is true or false" in " ".join(answer.err.split())


def test_offers_are_named_by_query_and_batch(flowsieve: Flowsieve) -> None:
    for wrong in ("42", "q/", "q/x", "/4"):
        answer = flowsieve("offers", "approve", wrong, "--control", "http://127.0.0.1:9")
        assert answer.status == 2
        assert "right is QUERY/BATCH" in answer.err
    assert flowsieve("offers", "list", "--control", "http://127.0.0.1:9").status == 1
