"""An Open vSwitch of our own: its own daemons, database and run directory, and a datapath without the kernel."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from flowsieve.southbound.openflow.switch_session import Timing
from flowsieve.southbound.openflow.wire import CONTENT_TABLE

TOOLS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl", "ovs-ofctl", "setpriv")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PATIENCE_S = 120.0  # for what has to come about, also on a busy machine
PATIENT = Timing(answer=PATIENCE_S, connect=PATIENCE_S, silence=PATIENCE_S, first_retry=0.01, last_retry=0.05)
# For tests that wait for a deadline to pass, and need all else to be answered before it.
SOON = Timing(answer=2.0, connect=PATIENCE_S, echo=0.5, silence=2.0, first_retry=0.01, last_retry=0.05)


def missing() -> str | None:
    """What keeps us from having one, if anything does."""
    if os.geteuid() != 0:
        return "not root"
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    if lacking or not SCHEMA.exists():
        return f"Open vSwitch is not installed ({', '.join(lacking) or SCHEMA})"
    return None


class OpenVSwitch:
    """Bridges with ports 1, 2, … that are no interfaces of the machine."""

    def __init__(self) -> None:
        self.rundir = Path(tempfile.mkdtemp(prefix="ovs-"))
        self.control = f"unix:{self.rundir}/vswitchd.ctl"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._run("ovsdb-tool", "create", self.rundir / "conf.db", SCHEMA)
        database = f"punix:{self.rundir}/db.sock"
        self._start("ovsdb", "ovsdb-server", self.rundir / "conf.db", f"--remote={database}")
        wait_for(lambda: (self.rundir / "db.sock").exists(), "ovsdb-server")
        self.vsctl("--no-wait", "init")
        self.start_vswitchd()

    def start_vswitchd(self) -> None:
        self._start(
            "vswitchd", "ovs-vswitchd", f"unix:{self.rundir}/db.sock", "--disable-system", "--enable-dummy"
        )
        wait_for(lambda: (self.rundir / "vswitchd.ctl").exists(), "ovs-vswitchd")

    def add_bridge(self, name: str, ports: int, limit: int | None = None, table: int = CONTENT_TABLE) -> str:
        """A bridge, and where it can be dialled; with `limit` a table of it takes no more entries than that."""
        words = ["add-br", name, "--", "set", "bridge", name, "datapath_type=dummy", "fail_mode=secure"]
        for port in range(1, ports + 1):
            pcap = f"options:tx_pcap={self.rundir}/{name}-{port}.pcap"
            words += ["--", "add-port", name, f"{name}-{port}"]
            words += [
                "--",
                "set",
                "interface",
                f"{name}-{port}",
                "type=dummy",
                f"ofport_request={port}",
                pcap,
            ]
        if limit is not None:
            words += [
                "--",
                "--id=@table",
                "create",
                "flow_table",
                f"flow_limit={limit}",
                "overflow_policy=refuse",
            ]
            words += ["--", "set", "bridge", name, f"flow_tables:{table}=@table"]
        self.vsctl(*words)
        return f"unix:{self.rundir}/{name}.mgmt"

    def vsctl(self, *words: object) -> str:
        return self._run("ovs-vsctl", f"--db=unix:{self.rundir}/db.sock", "--timeout=20", *words)

    def ofctl(self, command: str, bridge: str, *words: object) -> str:
        return self._run(
            "ovs-ofctl", "-O", "OpenFlow14", command, f"unix:{self.rundir}/{bridge}.mgmt", *words
        )

    def appctl(self, *words: object) -> str:
        return self._run("ovs-appctl", "-t", f"{self.rundir}/vswitchd.ctl", *words)

    def sent(self, bridge: str, port: int) -> list[bytes]:
        """The packets that left by a port."""
        data, packets = (self.rundir / f"{bridge}-{port}.pcap").read_bytes(), []
        at = 24
        while at < len(data):
            size = int.from_bytes(data[at + 8 : at + 12], "little")
            packets.append(data[at + 16 : at + 16 + size])
            at += 16 + size
        return packets

    def signal(self, number: signal.Signals) -> None:
        """Do something to ovs-vswitchd; after it was killed it can be started again."""
        self._daemons["vswitchd"].send_signal(number)
        if number is signal.SIGKILL:
            self._daemons.pop("vswitchd").wait()
            (self.rundir / "vswitchd.ctl").unlink()

    def close(self) -> None:
        for daemon in self._daemons.values():
            daemon.kill()
            daemon.wait()
        shutil.rmtree(self.rundir)

    def _start(self, name: str, *command: object) -> None:
        words = [*command, f"--unixctl={self.rundir}/{name}.ctl", f"--log-file={self.rundir}/{name}.log"]
        self._daemons[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *map(str, words)],  # they go when we do, however we go
            env=os.environ | {"OVS_RUNDIR": str(self.rundir)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _run(self, *words: object) -> str:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout


def wait_for(condition: object, what: str) -> None:
    """Wait until something is so; it is an error if it never is."""
    assert callable(condition)
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not come about within {PATIENCE_S:g} s"
        time.sleep(0.002)
