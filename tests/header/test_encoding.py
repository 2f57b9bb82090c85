from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadPlan
from flowsieve.flow.flat import key_of
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import PrefixEncoding, encoding_of
from flowsieve.header.match import PrefixMatch
from flowsieve.header.tag import POOLS, Tag
from flowsieve.index.dz import WHOLE_SPACE, Dz

IPV6, IPV4 = encoding_of("ipv6"), encoding_of("ipv4")
EVERYTHING = PrefixEncoding(Tag(Prefix.parse("::/0")))  # a tag of no bits: keys are dz
ENCODINGS = [PrefixEncoding(tag) for pool in POOLS.values() for tag in pool]


def key(text: str) -> int:
    return Dz.parse(text).bits << (128 - len(text))


def test_a_dz_in_an_ipv6_address_follows_the_group_prefix() -> None:
    assert str(IPV6.match_of(Dz.parse("110"))) == "ff0e:c000::/19"
    assert IPV6.text(Dz.parse("110010")) == "ff0e:c800::"


def test_a_dz_in_an_ipv4_address_follows_the_group_prefix() -> None:
    assert str(IPV4.match_of(Dz.parse("0101"))) == "225.168.0.0/13"


def test_the_whole_space_is_the_group_prefix() -> None:
    assert IPV6.match_of(WHOLE_SPACE) == PrefixMatch(IPV6.tag.group)
    assert IPV4.match_of(WHOLE_SPACE) == PrefixMatch(IPV4.tag.group)


def test_the_header_says_how_many_bits_it_has() -> None:
    assert {PrefixEncoding(tag).room for tag in POOLS["ipv6"]} == {112}
    assert {PrefixEncoding(tag).room for tag in POOLS["ipv4"]} == {23}


def test_the_longest_dz_fill_the_address() -> None:
    assert IPV6.text(Dz((1 << 112) - 1, 112)) == "ff0e:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
    assert IPV4.text(Dz((1 << 23) - 1, 23)) == "225.255.255.255"


def test_a_dz_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadPlan, match=r"24 bits does not fit the 23 bits behind 225\.128\.0\.0/9"):
        IPV4.match_of(Dz(0, 24))


def test_an_address_under_another_tag_is_no_dz_of_this_one() -> None:
    assert IPV6.dz_of(PrefixMatch(Prefix.parse("ff15::/20"))) is None
    assert IPV6.dz_at(PrefixEncoding(POOLS["ipv6"][1]).destination(Dz.parse("1")), 1) is None


@given(st.sampled_from(ENCODINGS), st.data())
def test_a_dz_comes_back_from_its_match_and_from_its_address(
    encoding: PrefixEncoding, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, encoding.room))
    dz = Dz(data.draw(st.integers(0, 2**length - 1)), length)
    assert encoding.dz_of(encoding.match_of(dz)) == dz
    assert encoding.owns(encoding.match_of(dz))
    assert encoding.dz_at(encoding.destination(dz), length) == dz
    assert int.from_bytes(encoding.destination(dz)) == encoding.address_of(dz)


@given(st.sampled_from([IPV6, IPV4]), st.data())
def test_prefixes_cover_each_other_as_their_dz_do(encoding: PrefixEncoding, data: st.DataObject) -> None:
    lengths = st.integers(0, 6)
    a, b = (Dz(data.draw(st.integers(0, 2**n - 1)), n) for n in (data.draw(lengths), data.draw(lengths)))
    wide, narrow = encoding.match_of(a), encoding.match_of(b)
    assert narrow.within(wide.destination) == a.covers(b)


def test_the_keys_of_dz_in_an_encoding_are_those_of_their_addresses() -> None:
    dzs = [Dz.parse(text) for text in ("", "1", "110010", "01" * 11, "10" * 56)]
    for encoding in (*ENCODINGS, EVERYTHING):
        fitting = [dz for dz in dzs if dz.length <= encoding.room]
        left = [dz.bits << (128 - dz.length) for dz in fitting]
        hi, lo = encoding.keys_of(
            np.array([x >> 64 for x in left], np.uint64), np.array([x % 2**64 for x in left], np.uint64)
        )
        keys = [key_of(encoding.family, encoding.address_of(dz)) for dz in fitting]
        assert list(zip(hi.tolist(), lo.tolist(), strict=True)) == keys


def test_the_cells_of_a_stretch_are_as_few_as_possible() -> None:
    def cells(begin: str, end: str, bits: int) -> list[str]:
        return [str(dz) for dz in EVERYTHING.cells_between(bits, key(begin), key(end) if end else 1 << 128)]

    assert cells("0", "", 4) == [""]
    assert cells("001", "11", 4) == ["001", "01", "10"]
    assert cells("0001", "0001", 4) == []


def test_a_stretch_between_the_first_addresses_of_two_cells_holds_no_events() -> None:
    assert list(EVERYTHING.cells_between(2, key("011"), key("1"))) == []
    assert [str(dz) for dz in EVERYTHING.cells_between(2, key("001"), key("011"))] == ["01"]


def test_the_cells_of_a_stretch_lie_behind_the_tag() -> None:
    group = IPV6.tag.group.first
    assert list(IPV6.cells_between(4, 0, group)) == []
    assert [str(dz) for dz in IPV6.cells_between(4, 0, 1 << 128)] == [""]
    assert [str(dz) for dz in IPV6.cells_between(4, group + (1 << 111), 1 << 128)] == ["1"]
