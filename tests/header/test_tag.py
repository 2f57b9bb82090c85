from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadPlan
from flowsieve.header.address import Prefix
from flowsieve.header.tag import POOLS, Tag
from flowsieve.index.dz import WHOLE_SPACE, Dz

IPV6 = POOLS["ipv6"][0]
IPV4 = POOLS["ipv4"][0]


def test_a_dz_in_an_ipv6_address_follows_the_group_prefix() -> None:
    assert str(IPV6.prefix(Dz.parse("110"))) == "ff0e:c000::/19"
    assert IPV6.address(Dz.parse("110010")) == "ff0e:c800::"


def test_a_dz_in_an_ipv4_address_follows_the_group_prefix() -> None:
    assert str(IPV4.prefix(Dz.parse("0101"))) == "225.168.0.0/13"


def test_the_whole_space_is_the_group_prefix() -> None:
    assert IPV6.prefix(WHOLE_SPACE) == IPV6.group
    assert IPV4.prefix(WHOLE_SPACE) == IPV4.group


def test_the_header_says_how_many_bits_it_has() -> None:
    assert {tag.room for tag in POOLS["ipv6"]} == {112}
    assert {tag.room for tag in POOLS["ipv4"]} == {23}


def test_the_longest_dz_fill_the_address() -> None:
    assert IPV6.address(Dz((1 << 112) - 1, 112)) == "ff0e:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
    assert IPV4.address(Dz((1 << 23) - 1, 23)) == "225.255.255.255"


def test_a_dz_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadPlan, match=r"24 bits does not fit the 23 bits behind 225\.128\.0\.0/9"):
        IPV4.prefix(Dz(0, 24))


def test_an_address_under_another_tag_is_no_dz_of_this_one() -> None:
    with pytest.raises(BadPlan, match=r"ff15::/20 does not lie in ff0e::/16"):
        IPV6.dz(Prefix.parse("ff15::/20"))


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_the_tags_of_a_pool_never_mix(pool: tuple[Tag, ...]) -> None:
    for one, other in combinations(pool, 2):
        assert not one.group.covers(other.group)
        assert not other.group.covers(one.group)


@given(st.sampled_from([tag for pool in POOLS.values() for tag in pool]), st.data())
def test_a_dz_comes_back_from_its_prefix(tag: Tag, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, tag.room))
    dz = Dz(data.draw(st.integers(0, 2**length - 1)), length)
    assert tag.dz(tag.prefix(dz)) == dz


@given(st.sampled_from([IPV6, IPV4]), st.data())
def test_prefixes_cover_each_other_as_their_dz_do(tag: Tag, data: st.DataObject) -> None:
    lengths = st.integers(0, 6)
    a, b = (Dz(data.draw(st.integers(0, 2**n - 1)), n) for n in (data.draw(lengths), data.draw(lengths)))
    assert tag.prefix(a).covers(tag.prefix(b)) == a.covers(b)
