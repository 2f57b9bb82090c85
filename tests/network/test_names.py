"""Names of switches by their identities, and of hosts by their addresses: as configured, and never twice the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadTopology
from flowsieve.network.names import Names, SwitchId

identities = st.text(min_size=1).map(SwitchId)
names = st.dictionaries(
    identities, st.one_of(st.sampled_from(["s0", "s1", "s2", "s7", "berlin"]), st.text(min_size=1))
)


@given(names, st.lists(identities))
def test_every_switch_has_a_name_of_its_own_which_tells_it(
    given: dict[SwitchId, str], others: list[SwitchId]
) -> None:
    try:
        known = Names(switches=given)
    except BadTopology:
        assert len(set(given.values())) < len(given)
        return
    assert len({known.switch(identity) for identity in given}) == len(given)
    for identity, name in given.items():
        assert known.identity(name) == identity
    assert all(known.switch(identity) is None for identity in others if identity not in given)


def test_a_name_that_nobody_gave_is_refused() -> None:
    with pytest.raises(BadTopology, match="nobody said which identity switch 'paris' has"):
        Names(switches={SwitchId("7"): "berlin"}).identity("paris")


def test_two_switches_of_one_name_are_refused() -> None:
    with pytest.raises(BadTopology, match="'x' is the name of the switches 1 and 2"):
        Names(switches={SwitchId("1"): "x", SwitchId("2"): "x"})


def test_hosts_are_called_as_configured_whatever_case_their_address_is_in() -> None:
    names = Names(hosts={"02:00:00:00:00:AB": "ann"})
    assert names.host("02:00:00:00:00:ab") == "ann"
    assert names.host("02:00:00:00:00:cd") == "h0200000000cd"
