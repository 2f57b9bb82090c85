"""A port floods while it sends many frames in a second, and not for one burst long ago."""

from __future__ import annotations

from flowsieve.control.discovery.findings import SwitchPort
from flowsieve.control.discovery.frame_rates import FLOOD, KEPT_SECONDS, FrameRates

HOST, LINK = SwitchPort("s1", 3), SwitchPort("s1", 1)


def test_beacons_of_a_link_are_no_flood_and_a_hundred_frames_a_second_are() -> None:
    rates = FrameRates()
    for hundredth in range(500):
        rates.note(HOST, hundredth / 100)
        if hundredth % 100 == 0:
            rates.note(LINK, hundredth / 100)
    assert [(place, round(rate)) for place, rate in rates.floods(5.0).items()] == [(HOST, 100)]


def test_a_flood_is_over_some_seconds_after_its_end_or_when_its_port_is_down() -> None:
    rates = FrameRates()
    for n in range(4 * FLOOD):
        rates.note(HOST, n / (2 * FLOOD))
    rates.note(HOST, 2.0)
    assert rates.floods(2.0)
    assert not rates.floods(2.0 + KEPT_SECONDS)
    for n in range(4 * FLOOD):
        rates.note(HOST, 20 + n / (2 * FLOOD))
    rates.note(HOST, 22.0)
    assert rates.floods(22.0)
    rates.forget(HOST)
    assert not rates.floods(22.0)
