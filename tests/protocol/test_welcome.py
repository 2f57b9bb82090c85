"""The welcome: what was written down is read, and what cannot be right is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flowsieve.content.schema import Schema
from flowsieve.errors import BadMessage, OtherVersion
from flowsieve.header.tag import POOLS
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.protocol.event_keys import EventKeys
from flowsieve.protocol.limits import LONGEST_LEASE
from flowsieve.protocol.version import VERSION
from flowsieve.protocol.welcome import Welcome

PLAN = RegularPlan.make(Schema.parse({"price": {"type": "int", "min": 0, "max": 1023}}), bits=8)
KEYS = EventKeys(7, (4, b"k" * 16), ((3, b"a" * 16), (4, b"b" * 16)))
WELCOME = Welcome("h1", PLAN, POOLS["ipv6"][0], "ff02::f10e:0:1", "eth0", LONGEST_LEASE, b"publishr", KEYS)


def test_what_was_written_down_is_read() -> None:
    assert WELCOME.to_json()["version"] == VERSION
    assert Welcome.parse(WELCOME.to_json()) == WELCOME
    later = replace(WELCOME, index=3)
    assert Welcome.parse(later.to_json()) == later
    unsigned = replace(WELCOME, publisher=None, keys=None)
    assert Welcome.parse(unsigned.to_json()) == unsigned


def test_a_welcome_of_a_controller_that_knows_of_no_other_index_has_the_first() -> None:
    told = WELCOME.to_json()
    del told["index"]
    assert Welcome.parse(told) == WELCOME


def test_a_welcome_without_a_version_is_of_the_first() -> None:
    told = WELCOME.to_json()
    del told["version"]
    with pytest.raises(OtherVersion, match=r"the client speaks version 2 .* and the controller version 1"):
        Welcome.parse(told)


def test_a_controller_of_another_version_is_told_with_both_and_what_to_do() -> None:
    wrong = r"the client speaks version 2 .* and the controller version 3; install the same release"
    with pytest.raises(OtherVersion, match=wrong):
        Welcome.parse({"version": 3, "whatever": "it says"})


@pytest.mark.parametrize(
    "change",
    [{"lease": lease} for lease in (0, -1, float("nan"), float("inf"), 2 * LONGEST_LEASE, "x", None)]
    + [{"tag": "here"}, {"plan": {}}, {"schema": 3}, {"publisher": "0f"}, {"publisher": None}, {"keys": 3}]
    + [{"index": wrong} for wrong in (-1, True, "1", None, 1.0)],
)
def test_what_cannot_be_right_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match="the controller's welcome cannot be read"):
        Welcome.parse(WELCOME.to_json() | change)
