"""Without a capacity, a request changes only tables of switches that lie on its way: slices are waited for by that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from networks import topologies

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.request import Op, Request
from flowsieve.control.requests.dependencies import Dependencies
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

SCHEMA = Schema.parse({"a": {"type": "int", "min": 0, "max": 15}})
PLAN = RegularPlan.make(SCHEMA)


def drawn(data: st.DataObject, state: ControlState, number: int) -> Request:
    """An interest that comes, or one that ends."""
    there = [(side, each) for side in Op if side.adding for each in state.interests(side.side).values()]
    if there and data.draw(st.booleans()):
        op, interest = data.draw(st.sampled_from(there))
        end = Op.UNADVERTISE if op is Op.ADVERTISE else Op.UNSUBSCRIBE
        return Request(end, interest.id, interest.endpoint)
    low = data.draw(st.integers(0, 15))
    text = f"{low} <= a <= {data.draw(st.integers(low, 15))}"
    host = data.draw(st.sampled_from(sorted(state.topology.hosts)))
    op = data.draw(st.sampled_from([Op.ADVERTISE, Op.SUBSCRIBE]))
    return Request(op, str(number), host, Filter.parse(text, SCHEMA))


@given(topologies(), st.sampled_from(Tables), st.data())
def test_no_other_table_changes(topology: Topology, tables: Tables, data: st.DataObject) -> None:
    trees = TreeMap.spread(topology, 2) if data.draw(st.booleans()) else None
    state, ways = ControlState(topology, PLAN, trees, Settings(tables=tables)), Dependencies()
    if not any(topology.reachable(host) for host in topology.hosts):
        return
    for number in range(data.draw(st.integers(1, 12))):
        request = drawn(data, state, number)
        if not topology.reachable(request.endpoint):
            continue
        side, before = request.op.side, state.interests(request.op.side).get(request.id)
        way = set() if before is None else ways.of(state, side, before)
        changed = state.step([request]).changes
        after = state.interests(side).get(request.id)
        if after is not None:
            way = ways.of(state, side, after)
        assert changed.keys() <= way
