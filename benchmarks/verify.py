"""How long the proof of 20 switches with 5,000 flows each takes, warm."""

from __future__ import annotations

import statistics

from benchmarks.bench import Result, at_least, at_most, rounded, seconds
from benchmarks.loads import narrow
from benchmarks.network import BUDGET, small_fat_tree
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.verify import verify
from flowsieve.header.tag import POOLS
from flowsieve.index.regular import RegularPlan
from flowsieve.southbound.embedded import EmbeddedNetwork

SUBSCRIPTIONS, ROUNDS = 750, 5


def run() -> Result:
    load = narrow(SUBSCRIPTIONS, 0)
    topology, tag = small_fat_tree(), POOLS["ipv6"][0]
    plan = RegularPlan.make(load.schema, room=tag.room)
    network = EmbeddedNetwork(topology)
    controller = Controller(ControlState(topology, plan, settings=Settings(BUDGET)), network, tag)
    hosts, everything = list(topology.hosts), Filter.parse("True", load.schema)
    requests = [Request(Op.ADVERTISE, f"a{i}", hosts[4 * i], everything) for i in range(16)]
    requests += [
        Request(Op.SUBSCRIBE, f"s{i}", hosts[i * 7 % 64], filter) for i, filter in enumerate(load.filters())
    ]
    controller.submit(requests)
    state = controller.state
    tables = {switch: network.read(switch) for switch in topology.switches}
    flows = sum(map(len, tables.values()))
    advertisements, subscriptions = list(state.advertisements.values()), list(state.subscriptions.values())

    def prove() -> None:
        verdict = verify(topology, plan, tag, tables, advertisements, subscriptions)
        assert verdict.holds, verdict

    cold = seconds(prove)
    spent = statistics.median(seconds(prove) for _ in range(ROUNDS))
    figures = {
        "switches": len(tables),
        "flows": flows,
        "seconds": rounded(spent),
        "seconds_first": rounded(cold),
    }
    goals = {"flows": at_least(flows, 100_000), "seconds": at_most(spent, 0.5)}
    return Result("verify", figures, goals=goals)
