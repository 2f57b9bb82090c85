from __future__ import annotations

from itertools import combinations

import pytest

from flowsieve.header.tag import POOLS, Tag


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_the_tags_of_a_pool_never_mix(pool: tuple[Tag, ...]) -> None:
    for one, other in combinations(pool, 2):
        assert not one.group.covers(other.group)
        assert not other.group.covers(one.group)
