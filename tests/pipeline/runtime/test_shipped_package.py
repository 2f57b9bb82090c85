"""Executors get what they import, and nothing else: what they compiled stays good when other parts are edited."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import flowsieve
from flowsieve.pipeline.runtime.shipped_package import package_zip, write_zip

ROOT = Path(str(flowsieve.__file__)).parent
NEVER_SENT = {"cli", "control", "demo", "lab", "scenario", "serving", "testing", "warm.py"}
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print({name: module.__file__ for name, module in sys.modules.items() if name.startswith("flowsieve")})
"""


@pytest.fixture(scope="module")
def names() -> list[str]:
    with zipfile.ZipFile(package_zip()) as archive:
        return archive.namelist()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to be edited."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(ROOT, tmp_path / "flowsieve", ignore=ignored))


def test_parts_that_executors_do_not_need_stay_here(names: list[str]) -> None:
    parts = {name.split("/")[1] for name in names}
    assert parts >= {"__init__.py", "content", "index", "pipeline"}
    assert not parts & NEVER_SENT
    assert {name for name in names if "/southbound/" in name} == {
        "flowsieve/southbound/__init__.py",
        "flowsieve/southbound/embedded/__init__.py",
        "flowsieve/southbound/embedded/batch.py",
        "flowsieve/southbound/embedded/walk_kernel.py",
    }  # tables are walked there as here


def test_a_module_that_sends_functions_is_sent(names: list[str]) -> None:
    sends = re.compile(r"(\.mapInArrow|\.ask|\bsummed)\(")
    senders = [path for path in ROOT.glob("pipeline/**/*.py") if sends.search(path.read_text())]
    assert len(senders) > 4
    assert {path.relative_to(ROOT.parent).as_posix() for path in senders} <= set(names)


def test_all_that_is_sent_can_be_imported_from_the_zip_alone(names: list[str], tmp_path: Path) -> None:
    modules = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names]
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules],
        env={"PYTHONPATH": str(package_zip()), "NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    files = eval(done.stdout)
    assert set(files) == set(modules)
    assert all(file.startswith(str(package_zip())) for file in files.values())


def test_the_zip_is_named_after_what_is_sent(package: Path) -> None:
    assert write_zip(package).name == package_zip().name
    edited = [
        "demo/story.py",
        "cli/main.py",
        "serving/daemon.py",
        "control/state.py",
        "pipeline/report/plots.py",
    ]
    for name in edited:
        (package / name).write_text("changed = True\n")
    assert write_zip(package).name == package_zip().name
    kernel = package / "index" / "dzset_kernel.py"
    kernel.write_text(kernel.read_text() + "\n")
    assert write_zip(package).name != package_zip().name
