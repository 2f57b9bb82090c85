"""Notices: whatever comes, it is one or it is not."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.errors import BadMessage
from flowsieve.protocol.limits import MAX_NUMBER
from flowsieve.protocol.notice import NOTICE_BYTES, IndexNotice, decode, encode
from flowsieve.protocol.version import VERSION


@given(st.integers(0, MAX_NUMBER))
def test_what_was_written_down_is_read(version: int) -> None:
    packed = encode(IndexNotice(version))
    assert len(packed) <= NOTICE_BYTES
    assert decode(packed) == IndexNotice(version)


@given(st.binary(max_size=40))
def test_whatever_comes_is_a_notice_or_told_to_be_none(data: bytes) -> None:
    try:
        notice = decode(data)
    except BadMessage:
        return
    assert 0 <= notice.version <= MAX_NUMBER


@pytest.mark.parametrize(
    "items",
    [
        *((VERSION, 0, wrong) for wrong in (-1, MAX_NUMBER + 1, True, "1", 1.0, None)),
        *((VERSION + 1, 0, 1), (VERSION, 1, 1), (VERSION, [], 1), (VERSION, 0), (VERSION, 0, 1, 1), 7, {}),
    ],
)
def test_what_is_none_is_refused(items: object) -> None:
    with pytest.raises(BadMessage, match="a notice"):
        decode(msgpack.packb(items))
