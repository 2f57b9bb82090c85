"""Spanning trees, on which events are disseminated, and the map from dz to tree.

Every dz has exactly one tree at a time: then whatever subsets of its ports the switches use, nothing loops
and nothing arrives twice (design: what keeps it correct, 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from flowsieve.errors import BadPlan, BadTopology, nearest
from flowsieve.index.dz import WHOLE_SPACE, Dz
from flowsieve.network.roots import Mesh, RootedTree, rank_roots, shortest_paths, spread_roots
from flowsieve.network.topology import Topology

MAX_TREES = 1024
ALIGNED_BITS = 128  # of Dz.aligned


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """A tree over switches: `parent` says for each but the root which one is a step nearer to the root.

    Where failures have cut a network into parts, each part has a tree of its own; `others` are the roots of
    those that the root does not reach.

    >>> tree = SpanningTree("s1", {"s2": "s1", "s3": "s1"})
    >>> tree.path("s2", "s3")
    ('s2', 's1', 's3')
    """

    root: str
    parent: Mapping[str, str]
    others: tuple[str, ...] = ()
    switches: tuple[str, ...] = field(init=False, compare=False, repr=False)  # parents before their children
    _near: Mapping[str, tuple[str, ...]] = field(init=False, compare=False, repr=False)
    _depth: Mapping[str, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parent, roots = dict(self.parent), (self.root, *self.others)
        for root in roots:
            if root in parent:
                raise BadTopology(f"switch {root!r} is the root of the tree, so it has no parent")
        children: dict[str, list[str]] = {switch: [] for switch in (*roots, *parent)}
        for child, above in parent.items():
            if above not in children:
                raise BadTopology(f"the parent {above!r} of switch {child!r} is not on the tree")
            children[above].append(child)
        depth = dict.fromkeys(roots, 0)
        order = list(roots)
        for switch in order:
            for child in children[switch]:
                depth[child] = depth[switch] + 1
                order.append(child)
        if len(order) < len(children):
            lost = next(switch for switch in parent if switch not in depth)
            raise BadTopology(
                f"the parents above switch {lost!r} go in a circle, not to the root {self.root!r}"
            )
        near = {root: tuple(children[root]) for root in roots}
        near |= {switch: (parent[switch], *children[switch]) for switch in order[len(roots) :]}
        derive = object.__setattr__
        derive(self, "parent", MappingProxyType(parent))
        derive(self, "switches", tuple(order))
        derive(self, "_near", near)
        derive(self, "_depth", depth)

    @classmethod
    def of(cls, topology: Topology, root: str) -> SpanningTree:
        """The shortest paths from a root to the rest of the main component, by latency, then hops."""
        mesh = Mesh.of(topology)
        if root not in mesh.names:
            topology.linked(root)
            raise BadTopology(
                f"switch {root!r} is cut off from the main part of the network, so no tree grows from it"
            )
        return named_tree(mesh, shortest_paths(mesh, mesh.names.index(root)))

    def neighbours(self, switch: str) -> tuple[str, ...]:
        """Those one step away on the tree: the parent first, then the children."""
        return self._near[self._known(switch)]

    def children(self, switch: str) -> tuple[str, ...]:
        return self.neighbours(switch)[1 if switch in self.parent else 0 :]

    def depth(self, switch: str) -> int:
        """How many links a switch is away from the root."""
        return self._depth[self._known(switch)]

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The links of the tree as (parent, child), from the root outwards."""
        return tuple((self.parent[switch], switch) for switch in self.switches if switch in self.parent)

    def path(self, a: str, b: str) -> tuple[str, ...]:
        """The switches from a to b, both included."""
        depth = self._depth
        start, end = [self._known(a)], [self._known(b)]
        while start[-1] != end[-1]:
            lower = start if depth[start[-1]] >= depth[end[-1]] else end
            if lower[-1] not in self.parent:
                raise BadTopology(f"switches {a!r} and {b!r} are cut off from each other")
            lower.append(self.parent[lower[-1]])
        return (*start, *reversed(end[:-1]))

    def __contains__(self, switch: object) -> bool:
        return switch in self._depth

    def __len__(self) -> int:
        return len(self.switches)

    def __hash__(self) -> int:
        return hash((self.root, frozenset(self.parent.items()), self.others))

    def __reduce__(self) -> tuple[type[SpanningTree], tuple[object, ...]]:
        return SpanningTree, (self.root, dict(self.parent), self.others)

    def _known(self, switch: str) -> str:
        if switch not in self._depth:
            raise BadTopology(f"switch {switch!r} is not on the tree{nearest(switch, self._depth)}")
        return switch


def center_tree(topology: Topology) -> SpanningTree:
    """The shortest-path tree with the shortest mean path between two hosts (or switches, without hosts)."""
    mesh = Mesh.of(topology)
    return named_tree(mesh, rank_roots(mesh)[0].tree)


def endpoints_behind(topology: Topology, tree: SpanningTree, switch: str, port: int) -> frozenset[str]:
    """The endpoints that a packet sent out of a port can reach on the tree without coming back."""
    start = topology.neighbour(switch, port)
    if start in topology.attached:
        return frozenset([start])
    if start not in tree.neighbours(switch):
        return frozenset()
    steps = [(switch, start)]  # from where to where; it grows as it is gone through
    for back, here in steps:
        steps += [(here, near) for near in tree.neighbours(here) if near != back]
    return frozenset(name for _, here in steps for name in topology.attached_at(here))


@dataclass(frozen=True, slots=True)
class TreeMap:
    """Which tree serves which part of the space: dz that partition it, each with its tree."""

    parts: tuple[tuple[Dz, SpanningTree], ...]
    _tree: Mapping[Dz, SpanningTree] = field(init=False, compare=False, repr=False)
    _lengths: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = tuple(sorted(self.parts, key=lambda part: part[0]))
        check_partition([dz for dz, _ in parts])
        switches = set(parts[0][1].switches)
        for dz, tree in parts:
            if set(tree.switches) != switches:
                raise BadTopology(
                    f"the tree of dz {str(dz)!r} spans other switches than that of {str(parts[0][0])!r}"
                )
        derive = object.__setattr__
        derive(self, "parts", parts)
        derive(self, "_tree", dict(parts))
        derive(self, "_lengths", tuple(sorted({dz.length for dz, _ in parts})))

    @classmethod
    def single(cls, tree: SpanningTree) -> TreeMap:
        """One tree for the whole space."""
        return cls(((WHOLE_SPACE, tree),))

    @classmethod
    def spread(cls, topology: Topology, n: int) -> TreeMap:
        """n equal parts, on trees that share the load of the links without making paths much longer."""
        if not 1 <= n <= MAX_TREES or n & (n - 1):
            raise BadTopology(
                f"the space cannot be spread over {n} trees; right are 1, 2, 4, 8, … up to {MAX_TREES}"
            )
        length = n.bit_length() - 1
        return cls.over(topology, [Dz(bits, length) for bits in range(n)])

    @classmethod
    def over(cls, topology: Topology, parts: Sequence[Dz], traffic: Sequence[float] | None = None) -> TreeMap:
        """A tree for each of these parts of the space; together they share the load of the links.

        `traffic` is what to expect in each part, the same in all unless it is given.
        """
        mesh = Mesh.of(topology)
        rooted = spread_roots(mesh, traffic or [1.0] * len(parts))
        named = {tree.root: named_tree(mesh, tree) for tree in rooted}
        return cls(tuple((dz, named[tree.root]) for dz, tree in zip(parts, rooted, strict=True)))

    def tree_of(self, dz: Dz) -> SpanningTree:
        """The tree of a dz that lies within one part."""
        part = self._part_of(dz)
        if part is None:
            raise BadPlan(f"dz {str(dz)!r} is served by several trees; ask for the tree of a part of it")
        return self._tree[part]

    def split(self, dz: Dz) -> Iterator[tuple[Dz, SpanningTree]]:
        """The parts of a dz that have one tree each: the dz itself, or the map's parts that it covers."""
        part = self._part_of(dz)
        if part is not None:
            yield dz, self._tree[part]
        else:
            yield from ((inner, tree) for inner, tree in self.parts if dz.covers(inner))

    def divided(self, parts: Sequence[Dz]) -> TreeMap:
        """Other parts on the same trees; one that several parts become has to find them all on one tree."""
        found = []
        for part in parts:
            trees = {tree for _, tree in self.split(part)}
            if len(trees) != 1:
                raise BadPlan(f"dz {str(part)!r} cannot be one part: it is served by several trees")
            found.append((part, trees.pop()))
        return TreeMap(tuple(found))

    @property
    def trees(self) -> tuple[SpanningTree, ...]:
        """The trees, each once."""
        return tuple(dict.fromkeys(tree for _, tree in self.parts))

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[tuple[Dz, SpanningTree]]:
        return iter(self.parts)

    def _part_of(self, dz: Dz) -> Dz | None:
        for length in self._lengths:
            if length > dz.length:
                break
            part = Dz(dz.bits >> (dz.length - length), length)
            if part in self._tree:
                return part
        return None


def check_partition(ordered: list[Dz]) -> None:
    """Reject dz, given in their order, that leave out a part of the space or take one twice."""
    wrong = "the dz of a tree map partition the space, but"
    start = 0
    for dz in ordered:
        if dz.aligned != start:
            fault = "overlaps the one before it" if dz.aligned < start else "leaves a gap before it"
            raise BadPlan(f"{wrong} {str(dz)!r} {fault}")
        start += 1 << (ALIGNED_BITS - dz.length)
    if start != 1 << ALIGNED_BITS:
        raise BadPlan(f"{wrong} these leave a gap at its end" if ordered else f"{wrong} there are none")


def named_tree(mesh: Mesh, tree: RootedTree) -> SpanningTree:
    """A tree by the names of its switches."""
    names = mesh.names
    return SpanningTree(
        names[tree.root], {names[at]: names[tree.parent[at]] for at in tree.order if at != tree.root}
    )
