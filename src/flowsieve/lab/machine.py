"""What a machine must have for a lab."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from flowsieve.errors import LabError

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
DATABASE_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PROGRAMS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ovsdb-tool": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovs-vswitchd": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
}


def check_machine() -> None:
    """Raise unless this process may and can have a lab here."""
    if os.geteuid():
        raise LabError("a lab needs root, to make network namespaces and bridges; run it with sudo, say")
    missing = [program for program in PROGRAMS if shutil.which(program, path=_path()) is None]
    if not missing and not DATABASE_SCHEMA.exists():
        missing = ["ovsdb-server"]
    if missing:
        packages = sorted({PROGRAMS[program] for program in missing})
        raise LabError(
            f"a lab needs {', '.join(missing)}; on Debian or Ubuntu: apt-get install {' '.join(packages)}"
        )


def carry_out(words: Sequence[str], otherwise: str) -> None:
    """Run a program of the system; one that fails is an error that says what is so otherwise, and why."""
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise LabError(f"{otherwise}: {done.stderr.strip()}")


def environment() -> dict[str, str]:
    """What programs of the system are started with."""
    return os.environ | {"PATH": _path()}


def _path() -> str:
    """Where programs are looked for: in the system's own places too, which a user's path may lack."""
    return f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
