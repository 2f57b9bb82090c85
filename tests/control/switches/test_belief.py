"""What is believed of a table that was read: our entries and no others."""

from __future__ import annotations

import random

import pytest

from flowsieve.control.switches.belief import Belief
from flowsieve.flow.diff import OpKind
from flowsieve.flow.entry import Action, Deliver, Flow, Output, content_flow
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.match import parse_match
from flowsieve.header.tag import POOLS
from flowsieve.index.dz import Dz

ENCODING, OTHER = map(PrefixEncoding, POOLS["ipv6"][:2])
DELIVERIES = {port: Deliver(port, port, Prefix(6, port, 128)) for port in (2, 4)}


@pytest.mark.parametrize("deliveries", [{}, DELIVERIES])
def test_a_table_of_our_own_entries_is_believed(deliveries: dict[int, Deliver]) -> None:
    dice = random.Random(1)
    table = {
        Dz(dice.getrandbits(9), 9): tuple(sorted(dice.sample(range(1, 6), dice.randint(0, 5))))
        for _ in range(99)
    }
    belief = Belief(ENCODING, deliveries)
    assert belief.read([content_flow(ENCODING, dz, ports, deliveries) for dz, ports in table.items()]) == []
    assert belief.held == table


@pytest.mark.parametrize(
    ("priority", "actions"),
    [
        (1002, (Output(1),)),  # not that of its length
        (1003, (Output(3), Output(1))),  # in another order
        (1003, (Output(2),)),  # a copy for a host that is not readdressed
        (1003, (DELIVERIES[2], Output(1))),
        (1003, (Deliver(2, 9, Prefix(6, 2, 128)),)),
        (1003, (Output(1), Output(2))),
    ],
)
def test_an_entry_in_our_group_that_is_not_ours_is_to_be_removed(
    priority: int, actions: tuple[Action, ...]
) -> None:
    belief, dz = Belief(ENCODING, DELIVERIES), Dz.parse("011")
    stray = Flow(ENCODING.match_of(dz), priority, actions)
    ours = content_flow(ENCODING, Dz.parse("11"), (1, 2), DELIVERIES)
    elsewhere = Flow(OTHER.match_of(dz), priority, actions)
    (op,) = belief.read([stray, ours, elsewhere])
    assert (op.kind, op.flow) == (OpKind.REMOVE, stray)
    assert belief.held == {Dz.parse("11"): (1, 2)}


def test_an_entry_with_masks_in_our_group_is_to_be_removed_and_others_are_left() -> None:
    strays = [
        Flow(parse_match(dst, src), 1003, (Output(1),))
        for dst, src in (("ff0e::5/ffff::f", None), ("ff0e::/ffff::", "fd00::1/ffff::1"))
    ]
    others = [Flow(parse_match(dst), 1003, (Output(1),)) for dst in ("ff15::5/ffff::f", "0e::5/ff::f")]
    belief = Belief(ENCODING)
    assert [op.flow for op in belief.read([*others, *strays])] == strays
    assert belief.held == {}


def test_an_entry_of_our_group_in_another_table_or_that_goes_on_is_to_be_removed() -> None:
    match = ENCODING.match_of(Dz.parse("011"))
    strays = [
        Flow(match, 1003, (Output(1),), table=16),
        Flow(match, 1003, (Output(1),), onward=16),
    ]
    belief = Belief(ENCODING)
    assert [op.flow for op in belief.read(strays)] == strays
    assert belief.held == {}
