from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadInput
from flowsieve.header.address import WIDTH, Prefix
from flowsieve.header.match import (
    Masked,
    MaskedMatch,
    Match,
    PrefixMatch,
    match_on,
    parse_match,
)

LABEL = MaskedMatch(Masked.parse("fd00::5/ffff::f"), Masked.parse("ff1e::40/ffff::40"))


def parts(family: int) -> st.SearchStrategy[Masked]:
    """Few bits, so that packets often hold them, at both ends of the address."""
    top = WIDTH[family] - 3
    few = st.integers(0, 7).flatmap(lambda n: st.sampled_from((n, n << top)))
    return st.builds(lambda value, mask: Masked(family, value & mask, mask), few, few)


@st.composite
def matches(draw: st.DrawFn) -> Match:
    family = draw(st.sampled_from((4, 6)))
    return match_on(draw(st.none() | parts(family)), draw(parts(family)))


@given(matches(), st.integers(0, 7), st.integers(0, 7), st.booleans())
def test_a_match_holds_the_packets_that_have_its_bits(match, source, destination, top):
    if top:
        source, destination = (number << (WIDTH[match.family] - 3) for number in (source, destination))
    asked = zip(match.parts, (source, destination), strict=True)
    assert match.holds(source, destination) == all(
        part is None or address & part.mask == part.value for part, address in asked
    )
    assert match.holds(source, destination) == (
        ((source & match.rank.source_mask) << 128 | destination & match.rank.destination_mask) == match.value
    )


@given(matches())
def test_a_match_is_made_of_its_parts_and_read_from_its_text(match):
    assert match_on(*match.parts) == match
    source, destination = match.parts
    assert parse_match(str(destination), str(source) if source else None) == match


@given(st.lists(matches()))
def test_equal_sort_keys_and_equal_bits_are_equal_matches(found):
    assert len({match.sort_key for match in found}) == len(set(found))
    assert len({(match.family, match.rank, match.value) for match in found}) == len(set(found))


@given(matches(), st.integers(0, 6), st.integers(0, 63))
def test_a_match_lies_within_a_group_if_all_its_destinations_do(match, length, bits):
    group = Prefix(match.family, bits & ((1 << length) - 1), length)
    least, mask = match.parts[1].value, match.parts[1].mask
    most = least | ~mask & ((1 << group.width) - 1)
    inside = PrefixMatch(group).holds
    assert match.within(group) == (inside(0, least) and inside(0, most))


def test_no_match_lies_within_a_group_of_another_family():
    assert not LABEL.within(Prefix.parse("0.0.0.0/0"))


def test_matches_are_told_in_addresses():
    assert str(PrefixMatch(Prefix.parse("ff0e:c000::/19"))) == "ff0e:c000::/19"
    assert str(LABEL) == "src fd00::5/ffff::f dst ff1e::40/ffff::40"


def test_a_match_of_more_bits_ranks_higher():
    narrow, wide = PrefixMatch(Prefix.parse("ff0e::/32")), PrefixMatch(Prefix.parse("ff0e::/16"))
    assert narrow.rank > wide.rank
    assert LABEL.rank > wide.rank


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Masked(6, 5, 4), "no bit outside its mask"),
        (lambda: Masked(5, 0, 0), "family 5"),
        (lambda: Masked(4, 0, 1 << 32), "no masked address"),
        (lambda: Masked.parse("ff1e::5"), "a value and a mask in two addresses"),
        (lambda: Masked.parse("ff1e::5/ffff::f/1"), "a value and a mask in two addresses"),
        (lambda: Masked.parse("10.0.0.0/ffff::"), "a value and a mask in two addresses"),
        (lambda: MaskedMatch(None, Masked.parse("ff0e::/ffff::")), "a PrefixMatch on ff0e::/16"),
        (lambda: MaskedMatch(Masked(6, 0, 0), Masked.parse("ff0e::5/ffff::f")), "no source where none"),
        (lambda: MaskedMatch(Masked(4, 1, 1), Masked.parse("ff0e::5/ffff::f")), "right is one family"),
        (lambda: parse_match("ff0e::/129"), "not an address prefix"),
        (lambda: parse_match("ff0e::/16", "fd00::1"), "a value and a mask"),
    ],
)
def test_what_matches_nothing_well_is_refused(make, what):
    with pytest.raises(BadInput, match=what):
        make()
