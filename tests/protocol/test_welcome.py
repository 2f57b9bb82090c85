"""The welcome: what was written down is read, and what cannot be right is refused."""

from __future__ import annotations

from typing import Any

import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage, OtherVersion
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.limits import LONGEST_LEASE
from flowsieve.protocol.welcome import Welcome

PLAN = RegularPlan.make(Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}}), bits=8)
WELCOME = Welcome("h1", PLAN, POOLS["ipv6"][0], "ff02::f10e:0:1", "eth0", LONGEST_LEASE)


def test_what_was_written_down_is_read() -> None:
    assert WELCOME.to_json()["version"] == 1
    assert Welcome.parse(WELCOME.to_json()) == WELCOME


def test_a_welcome_without_a_version_is_of_the_first() -> None:
    told = WELCOME.to_json()
    del told["version"]
    assert Welcome.parse(told) == WELCOME


def test_a_controller_of_another_version_is_told_with_both_and_what_to_do() -> None:
    wrong = r"the client speaks version 1 .* and the controller version 2; install the same release"
    with pytest.raises(OtherVersion, match=wrong):
        Welcome.parse({"version": 2, "whatever": "it says"})


@pytest.mark.parametrize(
    "change",
    [{"lease": lease} for lease in (0, -1, float("nan"), float("inf"), 2 * LONGEST_LEASE, "x", None)]
    + [{"tag": "here"}, {"plan": {}}, {"schema": 3}],
)
def test_what_cannot_be_right_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match="the controller's welcome cannot be read"):
        Welcome.parse(WELCOME.to_json() | change)
