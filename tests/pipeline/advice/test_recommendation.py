"""The rule by which a way to address packets is recommended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flowsieve.pipeline.advice.recommendation import MARGIN, Circumstances, HeaderTrial, recommend

DZ = HeaderTrial(carried_per_wanted=2.0, operations_per_request=8.0, operations_busiest_switch=4.0)
RECEIVERS = HeaderTrial(carried_per_wanted=2.0, filters_held=300, sets=1)
BLOOM = HeaderTrial(carried_per_wanted=2.0, filters_held=300)


def taken(
    dz: HeaderTrial = DZ,
    receivers: HeaderTrial = RECEIVERS,
    bloom: HeaderTrial = BLOOM,
    about: Circumstances | None = None,
) -> tuple[str | None, str]:
    trials = {"dz": dz, "receivers": receivers, "bloom": bloom}
    advice = recommend(trials) if about is None else recommend(trials, about)
    return advice.recommended, "\n".join(advice.reasons)


def test_where_all_carry_the_same_dz_is_simplest() -> None:
    name, why = taken()
    assert name == "dz"
    assert "no publisher learns a filter" in why


@pytest.mark.parametrize(("more", "name"), [(MARGIN - 0.01, "dz"), (MARGIN + 0.01, "receivers")])
def test_dz_may_carry_a_little_more(more: float, name: str) -> None:
    wasteful = replace(DZ, carried_per_wanted=2.0 * more, unwanted_per_wanted=0.3)
    assert taken(wasteful)[0] == name


def test_narrow_filters_in_many_attributes_take_receivers() -> None:
    name, why = taken(replace(DZ, carried_per_wanted=20.0, unwanted_per_wanted=19.0))
    assert name == "receivers"
    assert "dz carries 10 times as many copies: 19 unwanted ones for each wanted" in why
    assert "publishers hold up to 300 filters" in why


def test_many_hosts_in_every_corner_take_dz_or_bloom() -> None:
    spread = replace(RECEIVERS, carried_per_wanted=4.0, packets_per_event=8.0, sets=10)
    name, why = taken(receivers=spread)
    assert name == "dz"
    assert "an event takes 8 packets, for hosts in 10 sets" in why
    assert taken(replace(DZ, carried_per_wanted=9.0), spread)[0] == "bloom"


def test_what_does_not_fit_is_out() -> None:
    name, why = taken(replace(DZ, refused=7))
    assert name == "receivers"
    assert "dz is out: 7 requests do not fit the tables" in why
    assert taken(replace(DZ, refused=7), HeaderTrial("too many ports"))[0] == "bloom"
    gone = HeaderTrial("no room")
    assert taken(gone, gone, gone) == (
        None,
        "dz is out: no room\nreceivers is out: no room\nbloom is out: no room",
    )


def test_private_filters_leave_dz_whatever_it_carries() -> None:
    wasteful = replace(DZ, carried_per_wanted=50.0)
    name, why = taken(wasteful, about=Circumstances(private=True))
    assert name == "dz"
    assert "receivers is out: publishers would be told filters, which are private" in why


def test_switches_that_cannot_follow_the_subscriptions_leave_labels() -> None:
    assert taken(about=Circumstances(churn=12.0))[0] == "dz"  # 48 entries a second at the busiest switch
    name, why = taken(about=Circumstances(churn=13.0))
    assert name == "receivers"
    assert "13 subscriptions a second change 52 entries a second" in why
