"""Run the benchmarks named on the command line, or all, and print one JSON object each."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

import benchmarks

NOT_BENCHMARKS = {
    "__main__",
    "loads",
    "workloads",
    "bench",
    "network",
    "uncompiled",
    "frames",
    "wire",
    "bridge",
    "plot",
    "spread",
    "nats",
    "served",
    "seed_loads",
    "talk",
    "processes",
    "daemon",
    "churning",
    "campus",
}


def names() -> list[str]:
    return sorted(
        module.name
        for module in pkgutil.iter_modules(benchmarks.__path__)
        if module.name not in NOT_BENCHMARKS
    )


def main() -> int:
    wanted = sys.argv[1:] or names()
    unknown = set(wanted) - set(names())
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    holds = True
    for name in wanted:
        print(f"{name} ...", file=sys.stderr, flush=True)
        result = importlib.import_module(f"benchmarks.{name}").run()
        print(json.dumps(result.to_json(), indent=2), flush=True)
        holds = holds and result.holds
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
