"""A switch working off its operations."""

import pytest

from flowsieve.errors import TableFull
from flowsieve.flow.diff import FlowOp, OpKind
from flowsieve.flow.entry import Flow, Output
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch
from flowsieve.southbound.embedded.clock import VirtualClock
from flowsieve.southbound.embedded.switch import Switch
from flowsieve.southbound.embedded.worker import Worker


def installs(*prefixes: str) -> list[FlowOp]:
    return [FlowOp(OpKind.INSTALL, Flow(PrefixMatch(Prefix.parse(p)), 1000, (Output(1),))) for p in prefixes]


def test_a_fast_switch_is_done_at_once():
    clock = VirtualClock()
    clock.advance(3.0)
    ticket = Worker(Switch("s1", 2), clock).take(installs("ff0e::/16", "ff0e::/17"))
    assert (ticket.done, ticket.done_at, ticket.error) == (2, 3.0, None)


def test_a_slow_switch_takes_its_time_for_each_operation():
    clock, switch = VirtualClock(), Switch("s1", 2)
    ticket = Worker(switch, clock, 0.02).take(installs("ff0e::/16", "ff0e::/17", "ff0e::/18"))
    clock.advance(0.045)
    assert (len(switch.flows), ticket.done, ticket.done_at) == (2, 2, None)
    clock.settle()
    assert ticket.done_at == pytest.approx(0.06)


def test_a_later_batch_waits_for_the_one_before():
    clock = VirtualClock()
    worker = Worker(Switch("s1", 2), clock, 0.02)
    first, nothing, last = (
        worker.take(installs("ff0e::/16")),
        worker.take([]),
        worker.take(installs("ff0e::/17")),
    )
    clock.settle()
    assert [ticket.done_at for ticket in (first, nothing, last)] == pytest.approx([0.02, 0.02, 0.04])


def test_an_idle_switch_does_an_empty_batch_at_once():
    assert Worker(Switch("s1", 2), VirtualClock(), 0.02).take([]).done_at == 0.0


@pytest.mark.parametrize("seconds_per_op", [0.0, 0.02])
def test_after_a_refusal_the_rest_of_the_batch_is_not_tried_but_the_next_batch_is(seconds_per_op):
    clock, switch = VirtualClock(), Switch("s1", 2, capacity=1)
    worker = Worker(switch, clock, seconds_per_op)
    ops = installs("ff0e::/16", "ff0e::/17")
    refused = worker.take([*ops, FlowOp(OpKind.REMOVE, ops[0].flow)])
    served = worker.take([FlowOp(OpKind.REMOVE, ops[0].flow), ops[1]])
    clock.settle()
    assert isinstance(refused.error, TableFull)
    assert (refused.done, refused.done_at) == (1, pytest.approx(2 * seconds_per_op))
    assert (served.done, served.error) == (2, None)
    assert switch.flows == (ops[1].flow,)
