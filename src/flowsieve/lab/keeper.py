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
from flowsieve.lab.blueprint import namespace_path
from flowsieve.lab.namespace import entered, new_namespace, send_whole_checksums, set_kernel
from flowsieve.lab.process import die_with_parent, end_all_inside

PATIENCE_SECONDS = 30.0
QUIET = ("-vconsole:off", "-vsyslog:off")


class Keeper:
    """The network of one lab, while this process lives."""

    def __init__(self, directory: Path, plan: dict[str, Any]) -> None:
        self._directory = directory
        self._plan = plan
        self._switches = -1  # the namespace
        self._hosts: list[int] = []
        self._database: subprocess.Popen[bytes] | None = None
        self._vswitchd: subprocess.Popen[bytes] | None = None

    def build(self) -> None:
        """Bring everything up, in an order that lets the machine do two things at once."""
        self._start_database()
        self._make_namespaces()
        with entered(self._switches):
            _finish([_ip(self._plan["switches"]["ip"])])
            send_whole_checksums(self._plan["switches"]["interfaces"])
        self.start_vswitchd()
        bridges = _started([*self._vsctl, *self._plan["vsctl"]])
        self._set_up_hosts()
        _finish([bridges], hint=self._last_words)
        self._check_ports()
        wait_for_switches(self._directory, self._plan["bridges"])

    def start_vswitchd(self) -> None:
        """Start the switches, unless they are running; a new process takes its bridges from the database."""
        if self._vswitchd is not None and self._vswitchd.poll() is None:
            return
        with entered(self._switches):
            self._vswitchd = self._daemon("ovs-vswitchd", f"unix:{self._directory}/db.sock")

    def reap(self) -> None:
        """Take note of daemons that died."""
        for daemon in (self._database, self._vswitchd):
            if daemon is not None:
                daemon.poll()

    def tear_down(self) -> None:
        """End what runs in the lab; the namespaces go when this process does."""
        for daemon in (self._vswitchd, self._database):
            if daemon is not None:
                daemon.kill()
        end_all_inside(self._hosts)
        for daemon in (self._vswitchd, self._database):
            if daemon is not None:
                daemon.wait(PATIENCE_SECONDS)
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start_database(self) -> None:
        file = self._directory / "conf.db"
        _finish([_started(["ovsdb-tool", "create", str(file), self._plan["database_schema"]])])
        socket_file = self._directory / "db.sock"
        self._database = self._daemon("ovsdb-server", str(file), f"--remote=punix:{socket_file}")

    def _daemon(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        files = [
            f"--{kind}={self._directory}/{program}.{end}"
            for kind, end in (("pidfile", "pid"), ("log-file", "log"), ("unixctl", "ctl"))
        ]
        return subprocess.Popen(
            [program, *arguments, *files, *QUIET],
            env=os.environ | {"OVS_RUNDIR": str(self._directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def _make_namespaces(self) -> None:
        """Make them, and links by which others find them: they are reached through this process alone."""
        folder = namespace_path(self._directory, "").parent / "net"
        folder.mkdir(exist_ok=True)
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
        _finish(running)

    @property
    def _vsctl(self) -> list[str]:
        return ["ovs-vsctl", f"--db=unix:{self._directory}/db.sock", f"--timeout={PATIENCE_SECONDS:.0f}"]

    def _check_ports(self) -> None:
        """Every port has the number that was asked for: the flows are made for these."""
        columns = ["--columns=name,ofport,error", "--format=csv", "list", "interface"]
        rows = csv.DictReader(_finish([_started([*self._vsctl, *columns])]).splitlines())
        found = {row["name"]: row for row in rows}
        for interface, port in self._plan["ports"].items():
            row = found.get(interface, {"ofport": "missing", "error": ""})
            if row["ofport"] != str(port):
                raise LabError(
                    f"Open vSwitch gave {interface} the port {row['ofport']}, not {port}: {row['error']}"
                )

    def _last_words(self) -> str:
        """How the switches' log ends, for an error."""
        try:
            lines = (self._directory / "ovs-vswitchd.log").read_text().splitlines()
        except OSError:
            lines = []
        return "; ".join(["ovs-vswitchd could not be told its bridges", *lines[-3:]])


def wait_for_switches(directory: Path, bridges: Iterable[str], seconds: float = PATIENCE_SECONDS) -> None:
    """Return when every bridge takes OpenFlow connections."""
    deadline = time.monotonic() + seconds
    for bridge in bridges:
        while not _answers(directory / f"{bridge}.mgmt"):
            if time.monotonic() > deadline:
                raise LabError(f"bridge {bridge} takes no connection after {seconds:.0f} s")
            time.sleep(0.002)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _started(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _ip(lines: list[str]) -> subprocess.Popen[str]:
    """One `ip` for many commands; they are few enough for the pipe."""
    with subprocess.Popen(["true"]):
        pass
    raise NotImplementedError


def _finish(running: list[subprocess.Popen[str]]) -> str:
    raise NotImplementedError
