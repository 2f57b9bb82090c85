"""Filters as some of the bits of two addresses."""

from __future__ import annotations

from random import Random

import pytest

from flowsieve.errors import BadInput
from flowsieve.header.address import Prefix
from flowsieve.header.bloom import SOURCES, BloomLabels, best_k, false_positive_rate
from flowsieve.header.match import Masked, match_on
from flowsieve.header.tag import POOLS, Tag

TEXTS = [f"filter {n}" for n in range(400)]


def test_a_filter_has_k_bits_that_its_text_alone_tells() -> None:
    for k in (1, 2, 9, 40, 224):
        labels = BloomLabels(k)
        assert {labels.pattern(text).bit_count() for text in TEXTS[:50]} == {k}
        assert [labels.pattern(text) for text in TEXTS[:50]] == [labels.pattern(text) for text in TEXTS[:50]]
    assert len({BloomLabels(9).pattern(text) for text in TEXTS}) == len(TEXTS)
    assert BloomLabels(3).pattern("x") & ~BloomLabels(5).pattern("x") == 0


def test_an_entry_matches_the_packets_that_have_all_bits_of_its_filter() -> None:
    random, labels = Random(1), BloomLabels(4)
    for text in TEXTS[:50]:
        pattern = labels.pattern(text)
        match = labels.match_of(pattern)
        assert match.within(labels.tag.group)
        assert labels.pattern_of(match) == pattern
        for _ in range(20):
            bits = random.getrandbits(labels.m) | (pattern if random.random() < 0.5 else 0)
            assert match.holds(*labels.addresses(bits)) == (bits & pattern == pattern)
    assert labels.pattern_of(labels.any) == 0


def test_what_asks_for_other_bits_is_no_pattern() -> None:
    labels, group = BloomLabels(4), POOLS["bloom"][0].group
    leading = labels.any.parts[1].mask
    assert (
        labels.pattern_of(match_on(None, Masked(6, group.first, leading | 1))) is None
    )  # a bit that is not set
    assert (
        labels.pattern_of(match_on(Masked(6, SOURCES.first, SOURCES.first), Masked(6, group.first, leading)))
        is None
    )
    assert labels.pattern_of(match_on(None, Masked(6, 1, 1))) is None


def test_addresses_begin_with_the_tag_and_with_a_prefix_that_is_no_host_s() -> None:
    source, destination = BloomLabels(4).addresses((1 << 224) - 1)
    assert (source >> 112, destination >> 112) == (0xFD1D, 0xFF1D)
    assert BloomLabels(4).addresses(0) == (0xFD1D << 112, 0xFF1D << 112)


@pytest.mark.parametrize("filters", [1, 2, 5, 16, 31, 70, 155, 400])
def test_k_is_the_one_that_deceives_least(filters: int) -> None:
    m = BloomLabels(1).m
    best = min(range(1, m + 1), key=lambda k: (false_positive_rate(m, k, filters), k))
    assert best_k(m, filters) == BloomLabels.tuned(filters).k == best


@pytest.mark.parametrize(("filters", "k"), [(16, 9), (32, 5), (40, 3)])
def test_what_is_predicted_is_what_filters_give(filters: int, k: int) -> None:
    labels, random = BloomLabels(k), Random(filters)
    patterns = [labels.pattern(text) for text in TEXTS]
    hits = tried = 0
    for _ in range(600):
        chosen = set(random.sample(range(len(TEXTS)), filters))
        bits = labels.bits_of(patterns[at] for at in chosen)
        others = [pattern for at, pattern in enumerate(patterns) if at not in chosen]
        hits += sum(not pattern & ~bits for pattern in others)
        tried += len(others)
    assert hits / tried == pytest.approx(false_positive_rate(labels.m, labels.k, filters), rel=0.15)


def test_what_labels_cannot_be_is_told() -> None:
    with pytest.raises(BadInput, match="a filter has 225 bits; right are 1 to 224"):
        BloomLabels(225)
    with pytest.raises(BadInput, match="two families"):
        BloomLabels(1, Tag(Prefix.parse("225.128.0.0/9")))
    with pytest.raises(BadInput, match="packets are for 0 filters"):
        BloomLabels.tuned(0)
