"""A call says what it said, and one of another version of the protocol is told so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.request import Op
from flowsieve.errors import OtherVersion
from flowsieve.protocol.call import HELLO, OPS, Call
from flowsieve.protocol.limits import LONGEST_DEADLINE, LONGEST_NAME, MAX_NUMBER
from flowsieve.protocol.version import VERSION

names = st.text(min_size=1, max_size=LONGEST_NAME)
calls = st.builds(
    Call,
    session=st.binary(min_size=16, max_size=16).map(bytes.hex),
    number=st.integers(1, MAX_NUMBER),
    host=names,
    token=st.text(max_size=LONGEST_NAME),
    op=st.sampled_from(OPS),
    id=st.none() | names,
    filter=st.none() | st.text(min_size=1),
    answered=st.integers(0, MAX_NUMBER),
    deadline=st.none() | st.floats(0, LONGEST_DEADLINE, exclude_min=True),
    index=st.none() | st.integers(0, MAX_NUMBER),
    stats=st.none() | st.dictionaries(st.text(), st.integers(0, MAX_NUMBER)),
)
HELLO_CALL = {"session": "0f" * 16, "n": 1, "host": "h1", "op": HELLO}


@given(calls)
def test_what_was_written_down_is_read(call: Call) -> None:
    assert Call.parse(call.to_json()) == call


def test_every_request_is_an_op() -> None:
    assert {op.value for op in Op} < set(OPS)


def test_hello_tells_the_version_and_no_other_call_does() -> None:
    for op in OPS:
        said = Call("0f" * 16, 1, "h1", "t", op).to_json()
        assert said.get("version") == (VERSION if op == HELLO else None)


def test_a_hello_without_a_version_is_of_the_first() -> None:
    with pytest.raises(OtherVersion, match=r"the client speaks version 1 .* and the controller version 2"):
        Call.parse(HELLO_CALL)


@pytest.mark.parametrize("version", [0, 1, 3, -1, True, 2.0, "2", None, [2]])
def test_another_version_is_told_with_both_and_what_to_do(version: object) -> None:
    wrong = rf"the client speaks version {version!r}".replace("[", r"\[")
    with pytest.raises(
        OtherVersion, match=f"{wrong}.* and the controller version 2; install the same release"
    ):
        Call.parse(HELLO_CALL | {"version": version})
