"""What executors get of this package: a zip of the modules that they can import, and of nothing else.

What they compile is kept under the zip's name (`shipped_kernels`), which tells its content. So a change to a command,
the demo or the daemon does not make them compile everything again.
"""

from __future__ import annotations

import ast
import atexit
import shutil
import zipfile
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp

import flowsieve

SENT = (  # modules whose functions are sent to executors (others are imported by these), and what the package needs
    "pipeline.evaluation.covers",
    "pipeline.planning.spark_planning",
    "pipeline.receiver_sets.spark_sets",
    "pipeline.replay.replay",
    "pipeline.runtime.shipped_kernels",
    "pipeline.stream.micro_batch",
)


@cache
def package_zip() -> Path:
    """The zip that executors import from; its name tells its content."""
    return write_zip(Path(str(flowsieve.__file__)).parent)


def write_zip(root: Path) -> Path:
    """The zip of a package in a folder."""
    sources = {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in shipped_files(root)}
    digest = blake2b(digest_size=8)
    for name, source in sources.items():
        digest.update(f"{name} {len(source)} ".encode() + source)
    folder = Path(mkdtemp(prefix="flowsieve-"))  # Spark serves the file from there as long as we run
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / f"flowsieve-{digest.hexdigest()}.zip"
    with zipfile.ZipFile(target, "w") as archive:
        for name, source in sources.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), source, zipfile.ZIP_DEFLATED)
    return target


def shipped_files(root: Path) -> list[Path]:
    """The files of what is sent, and of all that it imports when it is imported, in order."""
    found: set[Path] = set()
    waiting = [f"flowsieve.{name}" for name in SENT]
    while waiting:
        name = waiting.pop()
        path = root.parent / Path(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if path in found or not path.exists():  # a name in a module is no module
            continue
        found.add(path)
        waiting += [name.rpartition(".")[0], *_imported(ast.parse(path.read_bytes()).body)]
    return sorted(found)


def _imported(statements: list[ast.stmt]) -> Iterator[str]:
    """What a module imports of this package by being imported: not for types alone, nor inside a function."""
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("flowsieve"):
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)
            yield str(statement.module)
