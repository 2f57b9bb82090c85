"""The rules of the tree, read off the sources: what may import what, and what a name must say."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "flowsieve"

# A part imports only those before it.
ORDER = (
    "errors",
    "markup",
    "content",
    "index",
    "network",
    "header",
    "flow",
    "config",
    "protocol",
    "tasks",
    "southbound",
    "control",
    "client",
    "matcher",
    "scenario",
    "pipeline",
    "serving",
    "lab",
    "loop",
    "cli",
    "demo",
    "testing",
    "warm",
)
PURE = ("content", "index", "network", "header", "flow", "protocol")
IMPURE = ("asyncio", "logging", "pyspark", "random", "socket", "time")

# Who may name a kind of plan: whoever makes one. All others are given an `IndexPlan`.
MAKERS = (
    "flowsieve",
    "client.pubsub",
    "demo.delivery",
    "demo.kernels",
    "pipeline.planning.",
    "pipeline.report.sweeps",
    "scenario.index_section",
    "warm",
)


@cache
def modules() -> dict[str, ast.Module]:
    """All modules by their names in the package, the package itself as `flowsieve`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        names = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(names[:-1] if names[-1] == "__init__" else names) or "flowsieve"
        found[name] = ast.parse(path.read_text(), str(path))
    return found


def part(name: str) -> str:
    return name.partition(".")[0]


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) of all that is imported, wherever and for whatever; no name: the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are written in full"
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def own_imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) of what is imported from this package, by the names of `modules`."""
    for module, name in imports(tree):
        if module == "flowsieve" or module.startswith("flowsieve."):
            inside = module.removeprefix("flowsieve").removeprefix(".")
            whole = f"{inside}.{name}".strip(".")
            yield (whole, "") if whole in modules() else (inside or "flowsieve", name)


def check(violations: set[str], what_to_do: str) -> None:
    assert not violations, "\n".join([f"{what_to_do}:", *sorted(violations)])


def test_imports_point_to_parts_before() -> None:
    violations = set()
    for name, tree in modules().items():
        if name == "flowsieve":  # its public names live anywhere
            continue
        assert part(name) in ORDER, f"{part(name)} is a new part: say in ORDER what it may import"
        for module, _ in own_imports(tree):
            if module != "flowsieve" and ORDER.index(part(module)) > ORDER.index(part(name)):
                violations.add(f"{name} imports {module}")
    check(violations, "move what both need to the earlier part, or hand it in as an argument")


def test_the_daemon_does_without_the_lab() -> None:
    violations = {
        f"{name} imports {module}"
        for name, tree in modules().items()
        for module, _ in own_imports(tree)
        if part(name) == "serving" and part(module) == "lab"
    }
    check(violations, "a daemon runs where no lab is: move it out of lab, or hand it in")


def test_only_the_pipeline_needs_spark() -> None:
    violations = {
        f"{name} imports {module}"
        for name, tree in modules().items()
        for module, _ in imports(tree)
        if part(module) == "pyspark" and part(name) != "pipeline" and name != "testing.spark_cluster"
    }
    check(violations, "everything else works without PySpark: put it into pipeline/")


def test_pure_parts_have_no_clock_no_socket_and_no_dice() -> None:
    violations = {
        f"{name} imports {module}"
        for name, tree in modules().items()
        for module, imported in imports(tree)
        # a Random has the seed that its maker gives it
        if part(name) in PURE and part(module) in IMPURE and (module, imported) != ("random", "Random")
    }
    check(violations, "time and randomness are arguments, and input and output is for others")


def plan_classes() -> set[str]:
    """The classes of plans: those in index/plans that others are made from, and those that have a kind."""
    return {
        node.name
        for name, tree in modules().items()
        if name.startswith("index.plans.")
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Plan")
    }


def test_nothing_outside_the_index_knows_the_kind_of_a_plan() -> None:
    classes = plan_classes()
    assert {"CellPlan", "KdPlan", "RegularPlan", "SelectivePlan"} <= classes
    violations = set()
    for name, tree in modules().items():
        if part(name) == "index":
            continue
        if not f"{name}.".startswith(MAKERS):
            violations |= {
                f"{name} imports {imported}" for _, imported in own_imports(tree) if imported in classes
            }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "isinstance"
            ):
                asked = {inner.id for inner in ast.walk(node.args[1]) if isinstance(inner, ast.Name)}
                violations |= {f"{name} asks for {one}" for one in asked & classes}
            if isinstance(node, ast.Compare) and re.search(r"\bplan\.kind\b", ast.unparse(node)):
                violations.add(f"{name} asks {ast.unparse(node)}")
    check(violations, "give `IndexPlan` what is needed here, and let each kind answer")


def kernels() -> list[str]:
    return [name for name in modules() if name.endswith("_kernel")]


def defined(name: str, bases: list[str]) -> bool:
    """Whether a dotted name is that of a module, or of something defined in one, seen from some package."""
    words = name.split(".")
    for base in bases:
        for cut in range(len(words), 0, -1):
            module = ".".join([*base.split("."), *words[:cut]] if base else words[:cut])
            if module not in modules():
                continue
            body: list[ast.stmt] = modules()[module].body
            for word in words[cut:]:
                here = [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
                inner = next((node for node in here if node.name == word), None)
                if inner is None:
                    break
                body = inner.body
            else:
                return True
    return False


@pytest.mark.parametrize("name", kernels())
def test_a_kernel_names_its_twin(name: str) -> None:
    right = (
        "the docstring says `its twin is …`, a dotted name in src or a test such as `tests/flow/test_flat.py`"
    )
    told = (ast.get_docstring(modules()[name]) or "").partition("twin")[2]
    twins = [twin for twin in re.findall(r"`([\w./]+)`", told) if "." in twin]
    assert twins, f"{name} does not name its plain twin; {right}"
    packages = name.split(".")[:-1]
    bases = [".".join(packages[:cut]) for cut in range(len(packages), -1, -1)]
    for twin in twins:
        known = (ROOT / twin).is_file() if twin.startswith("tests/") else defined(twin, bases)
        assert known, f"{name} names {twin} as its twin, and there is none; {right}"


def test_one_rule_tells_mypy_of_all_kernels() -> None:
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (listed,) = [rule["module"] for rule in overrides if "disallow_untyped_decorators" in rule]
    wanted = [f"flowsieve.{name}" for name in kernels()]
    assert listed == sorted(wanted), "list every *_kernel.py in pyproject.toml, sorted, and nothing else"
    for name in kernels():
        text = (PACKAGE / Path(*name.split("."))).with_suffix(".py").read_text()
        assert "# mypy:" not in text, f"{name} is in pyproject's list: it needs no rule of its own"


def test_no_two_public_classes_have_one_name() -> None:
    homes = defaultdict(list)
    for name, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name)
    twice = {f"{name}: {', '.join(where)}" for name, where in homes.items() if len(where) > 1}
    check(twice, "one word, one idea: rename one of them after what it is")
