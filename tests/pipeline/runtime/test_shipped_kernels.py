"""What executors compile is kept under the name of the zip that they have the package from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flowsieve.index.dzset_kernel import push
from flowsieve.pipeline.runtime.shipped_package import package_zip

ASK = "from flowsieve.index.dzset_kernel import push; print(push.__module__, push.stats.cache_path)"


def cache_path(archive: Path, **environment: str) -> Path:
    """Where a process keeps a compiled kernel that has the package from a zip."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env=kept | {"PYTHONPATH": str(archive)} | environment,
        cwd=archive.parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.split()[1])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "application").mkdir()
    return Path(shutil.copy(package_zip(), tmp_path / "application"))


def test_it_goes_with_the_application_unless_a_folder_that_lasts_is_named(
    archive: Path, tmp_path: Path
) -> None:
    assert cache_path(archive) == archive.parent / "kernels" / "flowsieve" / "index"
    lasting = tmp_path / "lasting"
    named = cache_path(archive, NUMBA_CACHE_DIR=str(lasting))
    assert named == lasting / package_zip().name / "flowsieve" / "index"


def test_a_package_that_is_no_zip_keeps_it_beside_its_sources() -> None:
    assert Path(push.stats.cache_path).name == "__pycache__"
