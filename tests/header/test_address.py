from __future__ import annotations

import pytest

from flowsieve.errors import BadInput
from flowsieve.header.address import Prefix, address_text


@pytest.mark.parametrize("text", ["ff0e:c000::/19", "ff0e::/16", "225.168.0.0/13", "0.0.0.0/0", "::1/128"])
def test_a_prefix_is_shown_as_it_was_written(text: str) -> None:
    assert str(Prefix.parse(text)) == text


def test_a_prefix_knows_its_family_bits_and_length() -> None:
    assert Prefix.parse("225.128.0.0/9") == Prefix(4, 0b1110_0001_1, 9)
    assert Prefix.parse("ff0e::/16") == Prefix(6, 0xFF0E, 16)


def test_the_first_address_of_a_prefix_has_zeros_behind_it() -> None:
    assert address_text(6, Prefix.parse("ff0e:c000::/19").first) == "ff0e:c000::"
    assert address_text(4, Prefix.parse("225.168.0.0/13").first) == "225.168.0.0"


def test_a_prefix_covers_the_longer_ones_that_begin_with_it() -> None:
    group = Prefix.parse("ff0e::/16")
    assert group.covers(Prefix.parse("ff0e:c000::/19"))
    assert group.covers(group)
    assert not Prefix.parse("ff0e:c000::/19").covers(group)
    assert not group.covers(Prefix.parse("ff15::/19"))


def test_prefixes_of_different_families_have_nothing_in_common() -> None:
    assert not Prefix.parse("0.0.0.0/0").covers(Prefix.parse("::/0"))


@pytest.mark.parametrize("text", ["ff0e:c001::/19", "ff0e::/129", "somewhere", "", "225.128.0.0.0/9"])
def test_a_text_that_is_no_prefix_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="'ff0e:c000::/19'"):
        Prefix.parse(text)


@pytest.mark.parametrize(("family", "bits", "length"), [(5, 0, 0), (4, 0, 33), (6, 0, -1), (4, 4, 2)])
def test_bits_that_make_no_prefix_are_refused(family: int, bits: int, length: int) -> None:
    with pytest.raises(BadInput, match="no address prefix"):
        Prefix(family, bits, length)
