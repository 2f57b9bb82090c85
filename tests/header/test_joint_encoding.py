"""Two encodings as one: each cell has the address and the entry that it has alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadPlan
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.joint_encoding import JointEncoding
from flowsieve.header.match import parse_match
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz
from flowsieve.index.sides import on_side

HEADERS = st.sampled_from(["ipv6", "ipv4"])
CELLS = st.text("01", max_size=23).map(Dz.parse)


@given(HEADERS, st.sampled_from([0, 1]), CELLS)
def test_a_cell_of_either_side_is_what_it_is_alone(header: str, side: int, dz: Dz) -> None:
    tags = POOLS[header][:2]
    joint, alone = JointEncoding(*tags), PrefixEncoding(tags[side])
    cell = on_side(side, dz)
    assert joint.match_of(cell) == alone.match_of(dz)
    assert joint.priority_of(cell) == alone.priority_of(dz)
    assert joint.dz_of(alone.match_of(dz)) == cell
    assert (joint.text(cell), joint.address_of(cell)) == (alone.text(dz), alone.address_of(dz))
    assert joint.dz_at(joint.destination(cell), cell.length) == cell
    words = [np.array([number], np.uint64) for number in (cell.aligned >> 64, cell.aligned & (1 << 64) - 1)]
    own = [np.array([number], np.uint64) for number in (dz.aligned >> 64, dz.aligned & (1 << 64) - 1)]
    keys, right = joint.keys_of(*words), alone.keys_of(*own)
    assert [key.tolist() for key in keys] == [key.tolist() for key in right]
    begin = int(keys[0][0]) << 64 | int(keys[1][0])
    assert next(joint.cells_between(cell.length, begin, begin + 1)) == cell


def test_entries_under_both_tags_are_ours_and_those_under_a_former_one() -> None:
    old, new, former = POOLS["ipv6"]
    joint = JointEncoding(old, new)
    assert [joint.owns(parse_match(f"{tag.group}")) for tag in (old, new, former)] == [True, True, False]
    assert JointEncoding(old, new, [former]).owns(parse_match(str(former.group)))
    assert joint.dz_of(parse_match(str(former.group))) is None


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(BadPlan, match="beside each other"):
        JointEncoding(POOLS["ipv6"][0], POOLS["ipv6"][0])
    with pytest.raises(BadPlan, match="two indexes"):
        JointEncoding(*POOLS["ipv6"][:2]).match_of(Dz(0, 0))
