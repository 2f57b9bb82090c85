"""Switches that nobody named are told of while they come, and forgotten after."""

from __future__ import annotations

import logging

import pytest

from flowsieve.control.discovery.differences import DifferenceKind
from flowsieve.network.names import SwitchId
from flowsieve.serving.site.unknown_switches import KEPT_SECONDS, MOST, UnknownSwitches


def test_a_stranger_is_logged_once_and_counted_until_it_stays_away(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    unknown_switches = UnknownSwitches(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            unknown_switches.met(SwitchId("00000000000000a1"))
            now[0] += KEPT_SECONDS / 2
    assert [record.getMessage() for record in caplog.records] == [
        "not as configured: a switch of the datapath id 00000000000000a1 connects, "
        "and [switches] has none of that id; it is not served"
    ]
    assert [each.kind for each in unknown_switches.differences] == [DifferenceKind.SWITCH_UNKNOWN]
    now[0] += KEPT_SECONDS
    assert unknown_switches.differences == ()


def test_many_strangers_take_no_more_memory_than_some() -> None:
    unknown_switches = UnknownSwitches(lambda: 0.0)
    for number in range(10 * MOST):
        unknown_switches.met(SwitchId(f"{number}"))
    assert len(unknown_switches.differences) == MOST
