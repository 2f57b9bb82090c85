"""Names of what is found: as configured, made from numbers otherwise, and never twice the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadTopology
from flowsieve.network.names import Names

datapaths = st.one_of(st.integers(0, 20), st.integers(0, (1 << 64) - 1))
names = st.dictionaries(
    datapaths, st.one_of(st.sampled_from(["s0", "s1", "s2", "s7", "berlin"]), st.text(min_size=1))
)


@given(names, st.lists(datapaths))
def test_every_datapath_has_a_name_of_its_own_which_tells_it(
    given: dict[int, str], others: list[int]
) -> None:
    try:
        known = Names(switches=given)
    except BadTopology:
        return
    numbers = {*given, *others}
    assert len({known.switch(number) for number in numbers}) == len(numbers)
    for number in numbers:
        assert known.datapath(known.switch(number)) == number


def test_a_name_that_is_taken_is_not_made_up_for_another() -> None:
    names = Names(switches={1: "s0", 2: "s1"})  # as labs number those of a line
    assert [names.switch(number) for number in (1, 2, 0)] == ["s0", "s1", "s" + "0" * 16]


@pytest.mark.parametrize("name", ["paris", "s", "s-1", "s01", "s7", "s99999999", "s٣"])
def test_a_name_that_tells_no_datapath_is_refused(name: str) -> None:
    with pytest.raises(BadTopology, match="nobody said which datapath id"):
        Names(switches={7: "berlin"}).datapath(name)


def test_two_datapaths_of_one_name_are_refused() -> None:
    with pytest.raises(BadTopology, match="'x' is the name of the datapaths 1 and 2"):
        Names(switches={1: "x", 2: "x"})
    with pytest.raises(BadTopology, match="says another datapath id"):
        Names(switches={1: "s00000000000000ff"})


def test_hosts_are_called_as_configured_whatever_case_their_address_is_in() -> None:
    names = Names(hosts={"02:00:00:00:00:AB": "ann"})
    assert names.host("02:00:00:00:00:ab") == "ann"
    assert names.host("02:00:00:00:00:cd") == "h0200000000cd"
