"""Switches that nobody named are told of while they come, and forgotten after."""

from __future__ import annotations

import logging

import pytest

from flowsieve.control.findings import Kind
from flowsieve.serving.strangers import KEPT_SECONDS, MOST, Strangers


def test_a_stranger_is_logged_once_and_counted_until_it_stays_away(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    strangers = Strangers(lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            strangers.met(0xA1)
            now[0] += KEPT_SECONDS / 2
    assert [record.getMessage() for record in caplog.records] == [
        "not as configured: a switch of the datapath id 00000000000000a1 connects, "
        "and [switches] has none of that id; it is not served"
    ]
    assert [each.kind for each in strangers.differences] == [Kind.SWITCH_UNKNOWN]
    now[0] += KEPT_SECONDS
    assert strangers.differences == ()


def test_many_strangers_take_no_more_memory_than_some() -> None:
    strangers = Strangers(lambda: 0.0)
    for datapath in range(10 * MOST):
        strangers.met(datapath)
    assert len(strangers.differences) == MOST
