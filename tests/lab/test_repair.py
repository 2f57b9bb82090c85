"""A controller over real switches: what it believes is what they hold, also after they lost or changed it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.control.controller import Controller
from flowsieve.control.request import Op, Request
from flowsieve.control.state import ControlState
from flowsieve.header.encoding import encoding_of
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.lab.lab import Lab, running
from flowsieve.network.generators import line
from flowsieve.southbound.openflow.fabric import OpenFlowFabric
from flowsieve.southbound.openflow.threaded_switches import OpenFlowSwitches

pytestmark = pytest.mark.real

SCHEMA = Schema.parse({"level": {"type": "int", "min": 0, "max": 255}})
REQUESTS = [
    Request(Op.ADVERTISE, "p", "h0", Filter.parse("True", SCHEMA)),
    Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("10 <= level < 77", SCHEMA)),
    Request(Op.SUBSCRIBE, "t", "h1", Filter.parse("level > 200", SCHEMA)),
]


@contextmanager
def controlled() -> Iterator[tuple[Lab, OpenFlowSwitches, Controller]]:
    """A lab of three switches in a line with a controller that has served some requests."""
    topology = line(3)
    with running(topology) as lab, OpenFlowSwitches(OpenFlowFabric(lab.switch_addresses)) as switches:
        switches.wait_connected()
        state = ControlState(topology, RegularPlan.make(SCHEMA))
        controller = Controller(state, switches, encoding_of("ipv6"))
        controller.submit(REQUESTS)
        yield lab, switches, controller


def test_what_the_switches_hold_is_proved_and_is_what_is_believed() -> None:
    with controlled() as (_, _, controller):
        assert controller.verify().holds
        assert controller.repair() == 0


def test_switches_that_lost_their_tables_get_them_back() -> None:
    with controlled() as (lab, switches, controller):
        flows = sum(map(len, controller.tables().values()))
        lab.kill_vswitchd()
        lab.restart_vswitchd()
        switches.wait_connected()
        assert controller.repair() == flows
        assert controller.verify().holds


def test_an_entry_deleted_behind_the_controllers_back_is_put_back() -> None:
    with controlled() as (lab, _, controller):
        gone = min(controller.tables()["s1"])
        target = ["ovs-ofctl", "-O", "OpenFlow14", "--strict", "del-flows", f"unix:{lab.management('s1')}"]
        match = f"priority={gone.priority},ipv6,ipv6_dst={gone.match}"
        subprocess.run([*target, match], check=True, timeout=10)
        assert not controller.verify().holds
        assert controller.repair() == 1
        assert controller.verify().holds
