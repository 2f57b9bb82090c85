"""The process behind a lab: it builds the network, holds it, and takes it down.

The namespaces are open files of the keeper and the daemons die with it, so that nothing stays behind even when
it is killed; only then its directory is left, unlocked, for the next `up` or `down` to clear away. It ends on
SIGTERM, or when the process that owns the lab ends; on SIGUSR1 it starts an ovs-vswitchd that was killed again.

`python -m flowsieve.lab.keeper DIRECTORY` reads what to build (see `Blueprint.build`) from standard input as
JSON, and answers with one line: `{"keeper": pid}` or `{"error": text}`.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flowsieve.errors import LabError
from flowsieve.lab.blueprint import SWITCHES, namespace_path
from flowsieve.lab.namespace import entered, new_namespace, send_whole_checksums, set_kernel
from flowsieve.lab.process import come_first, die_with_parent, end_all_inside

DESCRIPTION = "lab.json"
PATIENCE_SECONDS = 30.0
STEP_SECONDS = 0.002  # between two looks at what is awaited
VSWITCHD = "ovs-vswitchd"
QUIET = ("-vconsole:off", "-vsyslog:off")


class Keeper:
    """The network of one lab, while this process lives."""

    def __init__(self, directory: Path, plan: dict[str, Any]) -> None:
        self._directory = directory
        self._plan = plan
        self._switches = -1  # the namespace
        self._hosts: list[int] = []
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def build(self) -> None:
        """Bring everything up, in an order that lets the machine do two things at once."""
        self._start_database()
        self._make_namespaces()
        with entered(self._switches):
            _finished(_ip(self._plan["switches"]["ip"]))
            send_whole_checksums(self._plan["switches"]["interfaces"])
        _wait_for(self._directory / "db.sock", time.monotonic() + PATIENCE_SECONDS)
        self.start_vswitchd()
        bridges = _started([*self._vsctl, *self._plan["vsctl"]])
        self._set_up_hosts()
        self._await_bridges(bridges)
        self._check_ports()
        wait_for_switches(self._directory, self._plan["bridges"])
        description = self._plan["description"] | {"keeper": os.getpid()}
        (self._directory / DESCRIPTION).write_text(json.dumps(description))

    def start_vswitchd(self) -> None:
        """Start the switches, unless they are running; a new process takes its bridges from the database."""
        before = self._daemons.get(VSWITCHD)
        if before is None or before.poll() is not None:
            with entered(self._switches):
                self._start(VSWITCHD, f"unix:{self._directory}/db.sock")

    def reap(self) -> None:
        """Take note of daemons that died."""
        for daemon in self._daemons.values():
            daemon.poll()

    def tear_down(self) -> None:
        """End what runs in the lab; the namespaces go when this process does."""
        for daemon in self._daemons.values():
            daemon.kill()
        end_all_inside(self._hosts)
        for daemon in self._daemons.values():
            daemon.wait(PATIENCE_SECONDS)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start_database(self) -> None:
        file = self._directory / "conf.db"
        _finished(_started(["ovsdb-tool", "create", str(file), self._plan["database_schema"]]))
        self._start("ovsdb-server", str(file), f"--remote=punix:{self._directory}/db.sock")

    def _start(self, program: str, *arguments: str) -> None:
        files = [
            f"--{kind}={self._directory}/{program}.{end}"
            for kind, end in (("pidfile", "pid"), ("log-file", "log"), ("unixctl", "ctl"))
        ]
        self._daemons[program] = subprocess.Popen(
            [program, *arguments, *files, *QUIET],
            env=os.environ | {"OVS_RUNDIR": str(self._directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_forwarding if program == VSWITCHD else die_with_parent,
        )

    def _make_namespaces(self) -> None:
        """Make them, and links by which others find them: they are reached through this process alone."""
        namespace_path(self._directory, SWITCHES).parent.mkdir()
        for part in (self._plan["switches"], *self._plan["hosts"]):
            namespace = new_namespace()
            if self._switches < 0:
                self._switches = namespace
            else:
                self._hosts.append(namespace)
            with entered(namespace):
                set_kernel(part["settings"])
            namespace_path(self._directory, part["name"]).symlink_to(f"/proc/{os.getpid()}/fd/{namespace}")

    def _set_up_hosts(self) -> None:
        running = []
        for namespace, host in zip(self._hosts, self._plan["hosts"], strict=True):
            with entered(namespace):
                running.append(_ip(host["ip"]))
                send_whole_checksums(host["interfaces"])
        for setup in running:
            _finished(setup)

    def _await_bridges(self, transaction: subprocess.Popen[str]) -> None:
        """ovs-vsctl returns when the switches have done what they were told; they may also have died."""
        vswitchd = self._daemons[VSWITCHD]
        while transaction.poll() is None:
            if vswitchd.poll() is not None:
                transaction.kill()
                transaction.communicate()
                raise LabError(f"ovs-vswitchd ended with status {vswitchd.returncode}{self._last_words()}")
            time.sleep(STEP_SECONDS)
        _finished(transaction)

    def _last_words(self) -> str:
        """How the switches' log ends, for an error."""
        try:
            lines = (self._directory / "ovs-vswitchd.log").read_text().splitlines()
        except OSError:
            return " before it wrote a log"
        return "".join(f"\n    {line}" for line in lines[-3:])

    @property
    def _vsctl(self) -> list[str]:
        return ["ovs-vsctl", f"--db=unix:{self._directory}/db.sock", f"--timeout={PATIENCE_SECONDS:.0f}"]

    def _check_ports(self) -> None:
        """Every port has the number that was asked for: the flows are made for these."""
        columns = ["--columns=name,ofport,error", "--format=csv", "list", "interface"]
        rows = csv.DictReader(_finished(_started([*self._vsctl, *columns])).splitlines())
        found = {row["name"]: row for row in rows}
        for interface, port in self._plan["ports"].items():
            row = found.get(interface, {"ofport": "missing", "error": ""})
            if row["ofport"] != str(port):
                raise LabError(
                    f"Open vSwitch gave {interface} the port {row['ofport']}, not {port}: {row['error']}"
                )


def _forwarding() -> None:
    """In the process of the switches: real ones share no processor with controllers and applications.

    Where they wait for one, queues of ports overflow, within a second at 200 packets a second.
    """
    die_with_parent()
    come_first()


def wait_for_switches(directory: Path, bridges: Iterable[str]) -> None:
    """Return when every bridge takes OpenFlow connections."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    for bridge in bridges:
        _wait_for(directory / f"{bridge}.mgmt", deadline)


def _wait_for(path: Path, deadline: float) -> None:
    while not _answers(path):
        if time.monotonic() > deadline:
            raise LabError(f"{path} takes no connection after {PATIENCE_SECONDS:.0f} s")
        time.sleep(STEP_SECONDS)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _ip(lines: list[str]) -> subprocess.Popen[str]:
    """One `ip` for many commands."""
    batch = os.memfd_create("ip")
    try:
        os.write(batch, "\n".join(lines).encode())
        os.lseek(batch, 0, os.SEEK_SET)
        return _started(["ip", "-batch", "-"], batch)
    finally:
        os.close(batch)


def _started(words: list[str], stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )


def _finished(process: subprocess.Popen[str]) -> str:
    """What a command printed; one that fails is an error with its own words."""
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    if process.returncode:
        command = " ".join(map(str, process.args))  # type: ignore[arg-type]
        raise LabError(f"{command[:60]} failed: {err.strip() or process.returncode}")
    return out


def serve(keeper: Keeper, requests: socket.socket, owner: int | None) -> None:
    """Hold the lab until somebody ends it, or its owner is gone."""
    watch = select.poll()
    watch.register(requests, select.POLLIN)
    if owner is not None:
        watch.register(owner, select.POLLIN)
    while True:
        for file, _ in watch.poll():
            if file == owner:
                return
            signals = requests.recv(64)
            if signal.SIGTERM in signals:
                return
            keeper.reap()
            if signal.SIGUSR1 in signals:
                keeper.start_vswitchd()


def _signals() -> socket.socket:
    """Where the numbers of signals arrive from now on."""
    end, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.detach())
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return end


def main() -> None:
    directory = Path(sys.argv[1])
    plan = json.load(sys.stdin)
    if os.fork():  # whoever called waits for this one; the keeper itself is nobody's child
        os._exit(0)
    os.chdir("/")
    requests = _signals()
    keeper = Keeper(directory, plan)
    try:
        owner = None if plan["owner"] is None else os.pidfd_open(plan["owner"])
        keeper.build()
        _answer({"keeper": os.getpid()})
    except Exception as error:
        keeper.tear_down()
        with contextlib.suppress(OSError):  # nobody may be listening any more
            _answer({"error": str(error) or repr(error)})
        return
    serve(keeper, requests, owner)
    keeper.tear_down()


def _answer(message: dict[str, object]) -> None:
    """One line, after which whoever asked has read all."""
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.close()


if __name__ == "__main__":
    main()
