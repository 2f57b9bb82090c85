"""Flow-mods a second from difference to acknowledgement, against bytes packed beforehand, on one real switch."""

from __future__ import annotations

import random
import socket
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from os_ken.ofproto import ofproto_v1_4 as ofp

from benchmarks.bench import Result, at_least, rounded, seconds
from flowsieve.flow.diff import Change, FlowOp, OpKind, flow_op
from flowsieve.header.encoding import encoding_of
from flowsieve.index.dz import Dz
from flowsieve.lab.lab import running
from flowsieve.network.topology import Topology
from flowsieve.southbound.openflow import plain_flow_mods, wire
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.packed import Packer
from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

FLOWS, ROUNDS, PORTS = 10_000, 15, 8
ENCODING = encoding_of("ipv6")


def difference(seed: int = 0) -> list[Change]:
    """Entries for cells of 10 to 40 bits, one to three ports each, longest first."""
    draw = random.Random(seed)
    cells: set[Dz] = set()
    while len(cells) < FLOWS:
        length = draw.randrange(10, 41)
        cells.add(Dz(draw.getrandbits(length), length))
    return [
        Change(dz, None, tuple(sorted(draw.sample(range(1, PORTS + 1), draw.randrange(1, 4)))))
        for dz in sorted(cells, key=lambda dz: (-dz.length, dz.bits))
    ]


class RawSwitch:
    """A switch on a plain socket: bytes in, and a barrier."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._frames = wire.Frames()
        self._socket.sendall(wire.hello(1) + wire.features_request(2))
        self._until(ofp.OFPT_FEATURES_REPLY)

    def take(self, packed: bytes) -> None:
        """Send flow-mods and wait for the barrier behind them."""
        self._socket.sendall(packed)
        self._socket.sendall(wire.barrier(1))
        self._until(ofp.OFPT_BARRIER_REPLY)

    def close(self) -> None:
        self._socket.close()

    def _until(self, kind: int) -> None:
        while True:
            for frame in list(self._frames.feed(self._socket.recv(1 << 16))):
                if frame.type == ofp.OFPT_ERROR:
                    raise RuntimeError(f"the switch refused pre-packed bytes: {wire.decode(frame)}")
                if frame.type == kind:
                    return


def applied(switches: OpenFlowSwitches, ops: Sequence[FlowOp]) -> None:
    ticket = switches.apply("s1", ops)
    switches.settle()
    if ticket.done != len(ops):
        raise RuntimeError(f"the switch did {ticket.done} of {len(ops)} operations: {ticket.error}")


def run() -> Result:
    changes = difference()
    ops = [flow_op(change, ENCODING) for change in changes]
    packed = Packer().pack(10, ops)
    unpacked = Packer().pack(10, [FlowOp(OpKind.REMOVE, op.flow) for op in ops])
    topology = Topology.make([], {f"h{i}": "s1" for i in range(PORTS)}, switches=["s1"])
    with (
        running(topology) as lab,
        OpenFlowSwitches(
            OpenFlowFabric({"s1": f"unix:{lab.management('s1')}"}, timing=Timing(lag=0.0))
        ) as switches,
    ):
        switches.wait_connected()
        raw = RawSwitch(lab.management("s1"))
        arms = {
            "operations to acknowledgement": lambda: applied(switches, ops),
            "table difference to acknowledgement": lambda: applied(
                switches, [flow_op(change, ENCODING) for change in changes]
            ),
            "packed beforehand, with a barrier": lambda: raw.take(packed),
        }
        took: dict[str, list[float]] = {name: [] for name in arms}
        for round_number in range(ROUNDS + 1):
            for name, work in arms.items():
                spent = seconds(work)
                raw.take(unpacked)  # untimed: the next arm begins with an empty table again
                if round_number:  # the first round warms up
                    took[name].append(spent)
        if switches.read("s1"):
            raise RuntimeError("the switch was to be empty between the rounds")
        one = [seconds(partial(applied, switches, [op])) for op in ops[:200]]
        raw.close()
    first, whole, bare = took
    rates = {name: rounded(FLOWS / statistics.median(times)) for name, times in took.items()}
    ratios = {
        name: statistics.median(b / a for a, b in zip(took[name], took[bare], strict=True))
        for name in (first, whole)
    }
    packer = Packer()
    plain = (
        seconds(lambda: [plain_flow_mods.bundled_flow_mod(i, 1, op, True) for i, op in enumerate(ops[:1000])])
        * 10
    )
    fast = min(seconds(lambda: packer.pack(0, ops, 1)) for _ in range(10))
    return Result(
        "flowmods",
        {
            "flow_mods_per_second": {first: rates[first], whole: rates[whole]},
            "share_of_packed_beforehand": {name: rounded(ratio) for name, ratio in ratios.items()},
            "one_operation_ms": rounded(1e3 * statistics.median(one)),
            "packed_per_second": rounded(FLOWS / fast),
            "rounds": ROUNDS,
        },
        {
            bare: {"flow_mods_per_second": rates[bare]},
            "os-ken": {"packed_per_second": rounded(FLOWS / plain)},
        },
        {
            "table difference to acknowledgement, against bytes packed beforehand": at_least(
                ratios[whole], 0.5
            ),
            "packing against os-ken": at_least(plain / fast, 20),
        },
    )
