"""Content flows against one plain output flow: packets a second and delay through one real switch.

Both arms forward the same packets, to the same addresses, to the same host, on the same bridge; only the table is
replaced. One arm has the entries of 10,000 or more cells, as a host's subscriptions make them, and each takes one off
the hop limit; the other has one entry for the whole group prefix, and just outputs. Rates are counted by the far host's
interface. Before anything is measured, the addresses are sent to until no packet misses the switch's cache: looking
up a table is another matter (see `delay`), and a busy machine loses some of the first packets.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.bench import Result, at_least, at_most, rounded
from benchmarks.bridge import ENCODING, FROM, OUT, SETTLE_SECONDS, SWITCH, TO, TOPOLOGY, Bridge, bridge
from benchmarks.loads import Load, narrow
from benchmarks.wire import Sender, decisions, misses, switch_seconds
from flowsieve.client.batch_packets import packets_of
from flowsieve.content.filter import Filter
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.flow.entry import Flow, content_flow
from flowsieve.index.dz import Dz
from flowsieve.index.plans.regular import RegularPlan

FLOWS, SIZE, ADDRESSES = 10_000, 126, 30_000
OFFERED = 20_000  # packets a second
TIMED = 10_000  # packets whose delay is taken
ROUNDS = 10
WARM_RATE, WARM_PASSES = 25_000, 8
FLOODS, FLOOD_SECONDS = 5, 0.15
CONTENT, PLAIN = "content flows", "one plain flow"


@dataclass(frozen=True)
class Passed:
    """What one arm did in one round."""

    at_saturation: float  # packets a second
    at_offered: float
    delay_us: float  # median
    core_us: float  # of the switch, per packet at saturation
    decisions: int  # that the switch had cached
    misses: int  # packets for which it had none, while measured


def content_table(load: Load) -> list[Flow]:
    """The entries that make a host's subscriptions, as many as it takes to have enough of them."""
    plan = RegularPlan.make(load.schema, room=ENCODING.room)
    state = ControlState(TOPOLOGY, plan)
    state.step([Request(Op.ADVERTISE, "all", FROM, Filter.parse("True", load.schema))])
    for i, filter in enumerate(load.filters()):
        state.step([Request(Op.SUBSCRIBE, f"s{i}", TO, filter)])
        if i % 10 == 0 and len(state.table(SWITCH)) >= FLOWS:
            break
    return [content_flow(ENCODING, dz, ports) for dz, ports in state.table(SWITCH).items()]


def matching_addresses(load: Load, flows: Sequence[Flow]) -> list[int]:
    """Addresses of events that the entries forward, each once, in random order."""
    plan = RegularPlan.make(load.schema, room=ENCODING.room)
    packets = packets_of(load.events(), plan, ENCODING)
    by_length: dict[int, set[int]] = {}
    for flow in flows:
        by_length.setdefault(flow.match.destination.length, set()).add(flow.match.destination.bits)
    found = dict.fromkeys(
        hi << 64 | lo for hi, lo in zip(packets.hi.tolist(), packets.lo.tolist(), strict=True)
    )
    wanted = [
        address
        for address in found
        if any(address >> 128 - length in bits for length, bits in by_length.items())
    ]
    if len(wanted) < ADDRESSES:
        raise RuntimeError(f"the load has {len(wanted)} addresses that are wanted, not {ADDRESSES}")
    return wanted[:ADDRESSES]


def measured(on: Bridge, sender: Sender, addresses: int) -> Passed:
    """One arm, from the first packet to each address on."""
    warm_up(on, sender, addresses)
    cached, missed = decisions(on.lab), misses(on.lab)
    flooded, work = flood(on, sender)
    before = on.arrived()
    rate, delays = on.host_delays(sender, TIMED, OFFERED)
    share = (on.arrived() - before) / TIMED
    missed = misses(on.lab) - missed
    return Passed(flooded, rate * share, statistics.median(delays), work, cached, missed)


def warm_up(on: Bridge, sender: Sender, addresses: int) -> None:
    """Have the switch see every address, until it has cached what to do with all of them."""
    for _ in range(WARM_PASSES):
        arrived, missed = on.arrived(), misses(on.lab)
        sender.rewind()
        sender.send_paced(addresses, WARM_RATE)
        on.settle()
        if on.arrived() == arrived:
            raise RuntimeError("the switch does not forward what it is to be measured with")
        if misses(on.lab) == missed:
            return


def flood(on: Bridge, sender: Sender) -> tuple[float, float]:
    """Packets a second that arrive when more are sent than the switch can take, and its work on each.

    The rate is the median of several: now and then somebody else has the core.
    """
    rates = []
    with sender.flooding():
        time.sleep(SETTLE_SECONDS)
        first, worked = on.arrived(), switch_seconds(on.lab)
        for _ in range(FLOODS):
            before, begin = on.arrived(), time.perf_counter()
            time.sleep(FLOOD_SECONDS)
            rates.append((on.arrived() - before) / (time.perf_counter() - begin))
        arrived, worked = on.arrived() - first, switch_seconds(on.lab) - worked
    on.settle()
    return statistics.median(rates), 1e6 * worked / max(1, arrived)


def run() -> Result:
    load = narrow(800, 4 * ADDRESSES)
    flows = content_table(load)
    addresses = matching_addresses(load, flows)
    with bridge() as on, on.sending(on.frames(addresses, SIZE)) as sender:
        arms = {CONTENT: flows, PLAIN: [content_flow(ENCODING, Dz(0, 0), (OUT,))]}
        took: dict[str, list[Passed]] = {name: [] for name in arms}
        for round_number in range(ROUNDS + 1):
            for name, table in arms.items():
                with on.table(table, decrement=name == CONTENT):
                    passed = measured(on, sender, len(addresses))
                if round_number:  # the first round warms up
                    took[name].append(passed)
    return _result(took, flows)


def _result(took: dict[str, list[Passed]], flows: Sequence[Flow]) -> Result:
    def ratio(figure: str) -> float:
        pairs = zip(took[CONTENT], took[PLAIN], strict=True)
        ratios = [getattr(ours, figure) / getattr(plain, figure) for ours, plain in pairs]
        return float(statistics.median(ratios))

    def figures(name: str) -> dict[str, float]:
        return {
            figure: rounded(statistics.median(getattr(passed, figure) for passed in took[name]))
            for figure in ("at_saturation", "at_offered", "delay_us", "core_us", "decisions", "misses")
        }

    return Result(
        "forwarding",
        {
            "flows": len(flows),
            "prefix_lengths": len({flow.match.destination.length for flow in flows}),
            "addresses": ADDRESSES,
            "bytes": SIZE,
            "rounds": ROUNDS,
            "offered": OFFERED,
            **figures(CONTENT),
            "core_us_against_one_plain_flow": rounded(ratio("core_us")),
        },
        {PLAIN: figures(PLAIN)},
        {
            "packets a second at saturation, against one plain flow": at_least(ratio("at_saturation"), 0.9),
            "packets a second of 20,000 offered, against one plain flow": at_least(ratio("at_offered"), 0.9),
            "median delay at 20,000 a second, against one plain flow": at_most(ratio("delay_us"), 1.1),
        },
    )
