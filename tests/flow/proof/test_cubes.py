"""Sets of addresses as cubes: what they share and what is left of one without another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.flow.proof import cubes
from flowsieve.flow.proof.cubes import Cube, TooManyCubes, shared, without

WIDTH = 5
some = st.tuples(st.integers(0, 31), st.integers(0, 31)).map(lambda pair: Cube(pair[0] & pair[1], pair[1]))


def members(region: list[Cube]) -> list[int]:
    return sorted(n for cube in region for n in range(1 << WIDTH) if n & cube.mask == cube.value)


@given(some, some)
def test_cubes_are_the_addresses_that_have_their_bits(one: Cube, other: Cube) -> None:
    mine, theirs = set(members([one])), set(members([other]))
    assert len(mine) << 128 - WIDTH == one.size()
    assert members(shared([one], other)) == sorted(mine & theirs)
    assert members(without([one], other)) == sorted(mine - theirs)  # each once


@given(some, st.integers(0, 31))
def test_a_cube_names_an_address_with_some_bits_if_it_has_one(cube: Cube, bits: int) -> None:
    right = [n for n in members([cube]) if n & bits]
    found = cube.with_some(bits)
    assert found in right if right else found is None


def test_what_falls_apart_too_far_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubes, "MOST_CUBES", 3)
    with pytest.raises(TooManyCubes):
        without([Cube(0, 0)], Cube(0, 15))
