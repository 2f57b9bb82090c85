"""Switches that connect, are gone and come back, in words."""

from __future__ import annotations

import pytest

from flowsieve.control.switches.switch_log import SwitchLog
from flowsieve.southbound.fabric import Connected, Disconnected, PortChanged


def test_a_switch_is_told_of_when_it_comes_goes_and_comes_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    now = [0.0]
    log = SwitchLog(lambda: now[0])
    for event in (
        Disconnected("s1", "nobody there"),
        Connected("s1"),
        PortChanged("s1", 1, True),
        Disconnected("s1", "no sign of life within 4 s"),
        Disconnected("s1", "nobody there"),
    ):
        log.heard(event)
    now[0] = 2.5
    log.heard(Connected("s1"))
    log.end()
    log.heard(Disconnected("s1", "the connection was closed"))
    assert caplog.messages == [
        "switch s1 cannot be reached: nobody there",
        "switch s1 is connected for the first time since the start",
        "switch s1 is gone: no sign of life within 4 s; it goes on forwarding by what it holds, if it runs",
        "switch s1 cannot be reached: nobody there",
        "switch s1 is connected again, after 2.5 s",
    ]
