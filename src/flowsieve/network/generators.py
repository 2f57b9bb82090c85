"""Topologies made to measure: switches s0, s1, … (a fat-tree's have their own names) and hosts h0, h1, …

Hosts are dealt round robin to the switches at the edge; by default each of these gets one, in a fat-tree k/2.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from random import Random
from types import MappingProxyType

from flowsieve.errors import BadTopology, nearest
from flowsieve.network.topology import Topology

MAX_SWITCHES = 10_000
MAX_HOSTS = 100_000
Pair = tuple[str, str]


def fat_tree(k: int = 4, hosts: int | None = None) -> Topology:
    """A data centre of k-port switches in three layers, k = 4 making 20 switches.

    Each of the k pods has k/2 edge and k/2 aggregation switches (e30, e31, …, a30, a31, … in pod 3); the
    (k/2)² cores (c0, c1, …) join the pods.
    """
    _check("fat-tree", "k", k, 2)
    if k % 2:
        raise BadTopology(f"fat-tree: k is {k}; half of a switch's ports lead up, so right is an even number")
    _check_size("fat-tree", k * k + (k // 2) ** 2)
    half = k // 2
    digits = len(str(half - 1))
    links: list[Pair] = []
    edge = []
    for pod in range(k):
        names = [f"{pod}{i:0{digits}}" for i in range(half)]
        edge += [f"e{name}" for name in names]
        for i, name in enumerate(names):
            links += [(f"a{name}", f"e{other}") for other in names]
            links += [(f"a{name}", f"c{core}") for core in range(i * half, (i + 1) * half)]
    return _with_hosts(links, edge, k * half * half if hosts is None else hosts)


def line(n: int, hosts: int | None = None) -> Topology:
    """n switches in a row."""
    switches = _switches("line", n, 1)
    return _with_hosts(list(pairwise(switches)), switches, hosts, switches)


def ring(n: int, hosts: int | None = None) -> Topology:
    """n switches in a circle."""
    switches = _switches("ring", n, 3)
    return _with_hosts(list(pairwise([*switches, switches[0]])), switches, hosts, switches)


def star(n: int, hosts: int | None = None) -> Topology:
    """n switches, of which s0 is linked with all others."""
    switches = _switches("star", n, 2)
    return _with_hosts([("s0", leaf) for leaf in switches[1:]], switches[1:], hosts, switches)


def tree(depth: int, fanout: int = 2, hosts: int | None = None) -> Topology:
    """A root and `depth` levels below it, each switch with `fanout` children; the hosts are at the leaves."""
    _check("tree", "depth", depth, 1)
    _check("tree", "fanout", fanout, 1)
    size = leaves = 1
    for _ in range(depth):
        leaves *= fanout
        size += leaves
        _check_size("tree", size)
    switches = [f"s{i}" for i in range(size)]
    links = [(switches[(i - 1) // fanout], switches[i]) for i in range(1, size)]
    return _with_hosts(links, switches[-leaves:], hosts, switches)


def grid(width: int, height: int, hosts: int | None = None) -> Topology:
    """width × height switches, row by row, each linked with those beside, above and below it."""
    _check("grid", "width", width, 1)
    _check("grid", "height", height, 1)
    switches = _switches("grid", width * height, 1)
    links: list[Pair] = []
    for i, switch in enumerate(switches):
        if (i + 1) % width:
            links.append((switch, switches[i + 1]))
        if i + width < len(switches):
            links.append((switch, switches[i + width]))
    return _with_hosts(links, switches, hosts, switches)


def random_connected(n: int, extra: int = 0, seed: int = 0, hosts: int | None = None) -> Topology:
    """n switches on a random tree, and `extra` further links between random pairs; the seed decides."""
    switches = _switches("random", n, 1)
    _check("random", "extra", extra, 0)
    room = n * (n - 1) // 2 - (n - 1)
    if extra > room or extra > 10 * MAX_SWITCHES:
        most = min(room, 10 * MAX_SWITCHES)
        raise BadTopology(f"random: extra is {extra}; {n} switches take at most {most} links beyond a tree")
    dice = Random(seed)
    pairs = {(dice.randrange(i), i): None for i in range(1, n)}
    if 2 * extra > room:  # nearly all pairs are wanted, so trying at random would rarely meet a free one
        free = [(a, b) for b in range(n) for a in range(b) if (a, b) not in pairs]
        pairs |= dict.fromkeys(dice.sample(free, extra))
    while len(pairs) < n - 1 + extra:
        a, b = sorted(dice.sample(range(n), 2))
        pairs[a, b] = None
    return _with_hosts([(switches[a], switches[b]) for a, b in pairs], switches, hosts, switches)


GENERATORS: Mapping[str, Callable[..., Topology]] = MappingProxyType(
    {
        "fat-tree": fat_tree,
        "ring": ring,
        "line": line,
        "star": star,
        "tree": tree,
        "grid": grid,
        "random": random_connected,
    }
)


def generate(text: str) -> Topology:
    """A topology from one word, as command lines take it.

    >>> str(generate("fat-tree:4,hosts=64")), str(generate("tree:3,2"))
    ('20 switches, 32 links, 64 hosts', '15 switches, 14 links, 8 hosts')
    """
    kind, _, rest = text.partition(":")
    if kind not in GENERATORS:
        forms = ", ".join(_form(name) for name in GENERATORS)
        hint = nearest(kind[:100], GENERATORS)
        raise BadTopology(
            f"there is no topology {kind[:80]!r}{hint}; there are {forms}, each with hosts=N as well"
        )
    make = GENERATORS[kind]
    parameters = inspect.signature(make).parameters
    names = list(parameters)
    given: dict[str, int] = {}
    for position, part in enumerate(rest.split(",") if rest else ()):
        name, equals, number = part.rpartition("=")
        if not equals:
            if position >= len(names):
                raise BadTopology(f"{text[:80]!r} has too many numbers; right is {_form(kind)}")
            name = names[position]
        if name not in names or name in given:
            wrong = (
                "is given twice" if name in given else f"is no setting of {kind}{nearest(name[:100], names)}"
            )
            raise BadTopology(f"in {text[:80]!r}, {name[:80]!r} {wrong}; right is {_form(kind)}, hosts=N")
        given[name] = _whole(number, name, text)
    missing = [name for name, p in parameters.items() if p.default is p.empty and name not in given]
    if missing:
        raise BadTopology(f"{text[:80]!r} does not say {missing[0]}; right is {_form(kind)}")
    return make(**given)


def _form(kind: str) -> str:
    """How a kind is written on a command line: `tree:depth,fanout=2`."""
    parameters = inspect.signature(GENERATORS[kind]).parameters.values()
    shown = [
        p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parameters if p.name != "hosts"
    ]
    return f"{kind}:{','.join(shown)}"


def _whole(digits: str, name: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise BadTopology(f"in {text[:80]!r}, {name} is {digits[:80]!r}; right is a whole number")
    return int(digits)


def _check(kind: str, name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadTopology(f"{kind}: {name} is {value!r}; right is a whole number of at least {least}")


def _check_size(kind: str, size: int) -> None:
    if size > MAX_SWITCHES:
        raise BadTopology(f"{kind}: that makes {size:,} switches or more; right are at most {MAX_SWITCHES:,}")


def _switches(kind: str, n: int, least: int) -> list[str]:
    _check(kind, "n", n, least)
    _check_size(kind, n)
    return [f"s{i}" for i in range(n)]


def _with_hosts(
    links: Sequence[Pair], edge: Sequence[str], hosts: int | None, switches: Sequence[str] = ()
) -> Topology:
    count = len(edge) if hosts is None else hosts
    _check("hosts", "their number", count, 0)
    if count > MAX_HOSTS:
        raise BadTopology(f"hosts: their number is {count:,}; right are at most {MAX_HOSTS:,}")
    at = {f"h{i}": edge[i % len(edge)] for i in range(count)}
    return Topology.make(links, at, switches)
