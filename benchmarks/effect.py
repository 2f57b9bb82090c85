"""How soon a subscription takes effect on slow switches, against one operation on the busiest of them."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.bench import Result, rounded
from benchmarks.loads import LOADS
from benchmarks.network import BUDGET, small_fat_tree
from flowsieve.content.filter import Filter
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState, Settings
from flowsieve.flow.compiler import Tables
from flowsieve.header.tag import POOLS
from flowsieve.index.regular import RegularPlan
from flowsieve.southbound.embedded import EmbeddedNetwork

UPDATES_PER_SECOND = 50
THERE, NEW = 1_000, 200


def run() -> Result:
    figures: dict[str, Any] = {"one operation, seconds": 1 / UPDATES_PER_SECOND}
    for name, make in LOADS.items():
        load = make(THERE + NEW, 0)
        filters = load.filters()
        for tables in Tables:
            topology, tag = small_fat_tree(16), POOLS["ipv6"][0]
            plan = RegularPlan.make(load.schema, room=tag.room)
            network = EmbeddedNetwork(topology, updates_per_second=UPDATES_PER_SECOND)
            controller = Controller(
                ControlState(topology, plan, settings=Settings(BUDGET, tables=tables)), network, tag
            )
            hosts = list(topology.hosts)
            first = [
                Request(Op.ADVERTISE, f"a{i}", hosts[4 * i], Filter.parse("True", load.schema))
                for i in range(4)
            ]
            first += [Request(Op.SUBSCRIBE, f"s{i}", hosts[i * 7 % 16], filters[i]) for i in range(THERE)]
            controller.submit(first)
            spent, busiest = [], []
            for i in range(THERE, THERE + NEW):
                start = network.now
                outcome = controller.submit([Request(Op.SUBSCRIBE, f"s{i}", hosts[i * 7 % 16], filters[i])])
                if outcome.changes:
                    spent.append(network.now - start)
                    busiest.append(max(map(len, outcome.changes.values())))
            one = 1 / UPDATES_PER_SECOND
            figures[f"{name}, {tables.value}"] = {
                "share_in_effect_at_once": rounded(1 - len(spent) / NEW),
                "seconds_median": rounded(statistics.median(spent)),
                "seconds_worst": rounded(max(spent)),
                "times_one_operation_median": rounded(statistics.median(spent) / one),
                "times_the_operations_on_the_busiest_median": rounded(
                    statistics.median(time / one / n for time, n in zip(spent, busiest, strict=True))
                ),
            }
    return Result("effect", figures)
