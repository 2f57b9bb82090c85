from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDS = re.findall(r"(?m)^([\w-]+)==(\S+)$", (ROOT / "requirements-demo.txt").read_text())


# Nothing else can be imported: what is left is what the demo's own environment has.
ALONE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {known!r} | sys.stdlib_module_names:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from flowsieve.demo.__main__ import main
sys.exit(main(["--no-page"]))
"""


def test_the_demo_runs_with_nothing_but_what_its_requirements_list() -> None:
    known = {name.lower().replace("-", "_") for name, _ in NEEDS} | {"markdown_it", "flowsieve"}
    script = ALONE.format(known=known)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "Proved in" in done.stdout


def test_the_demo_is_pinned_to_the_same_versions_as_everything_else() -> None:
    everything = (ROOT / "requirements.txt").read_text().splitlines()
    assert len(NEEDS) >= 5
    assert all(f"{name}=={version}" in everything for name, version in NEEDS)


def test_kernels_count_as_compiled_when_an_earlier_run_has_left_them_on_disk(tmp_path: Path) -> None:
    ask = [sys.executable, "-c", "from flowsieve.demo.kernels import are_compiled; print(are_compiled())"]
    told = [
        subprocess.run(
            ask,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        ).stdout.strip()
        for _ in range(2)
    ]
    assert told == ["False", "True"]
