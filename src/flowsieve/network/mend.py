"""Trees mended after failures: a dead edge is exchanged for a live one, and nothing else changes.

A tree that is recomputed could meet packets and tables of the old one and loop. With single edges exchanged, and
those that leave fenced before new ones carry traffic, old and new tables mix freely (design: what keeps it correct, 2):
whatever a table sends over is an edge of its tree as it is now, or fenced. An edge that is dead and could not be fenced
therefore stays, and one that is fenced may leave, and does where a better one is at hand.
"""

from __future__ import annotations

from collections.abc import Collection

from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap

Edge = frozenset[str]  # the two switches at the ends of a link


def mended(
    trees: TreeMap, topology: Topology, down: Collection[Edge], fenced: Collection[Edge] | None = None
) -> TreeMap:
    """The trees without links that are down and fenced, joined by links that are up wherever they fell apart.

    `fenced` are the links that carry nothing, up or down; None for those that are down.
    """
    return TreeMap(tuple((dz, mended_tree(tree, topology, down, fenced)) for dz, tree in trees))


def tree_edges(trees: TreeMap) -> frozenset[Edge]:
    """The links that some tree has."""
    return frozenset(frozenset(edge) for tree in trees.trees for edge in tree.edges)


def edges_of(topology: Topology) -> frozenset[Edge]:
    """The links of a topology."""
    return frozenset(frozenset((link.a, link.b)) for link in topology.links)


def extended(trees: TreeMap, topology: Topology) -> TreeMap:
    """The trees with the switches of a topology and no others; where edges are missing then, they are to be mended."""

    def on_all(tree: SpanningTree) -> SpanningTree:
        if set(tree.switches) == set(topology.switches):
            return tree
        near: dict[str, list[str]] = {switch: [] for switch in topology.switches}
        for a, b in tree.edges:
            if a in near and b in near:
                near[a].append(b)
                near[b].append(a)
        order = [switch for switch in (tree.root, *tree.switches) if switch in near]
        return _rooted(near, [*order, *topology.switches])

    return TreeMap(tuple((dz, on_all(tree)) for dz, tree in trees))


def mended_tree(
    tree: SpanningTree, topology: Topology, down: Collection[Edge], fenced: Collection[Edge] | None = None
) -> SpanningTree:
    """The tree with its edges that are not fenced; of the links that could join its parts, the nearest to its root.

    A fenced one is taken only where no other joins them, and then rather one that the tree has.

    >>> from flowsieve.network.generators import ring
    >>> network = ring(4)
    >>> tree = SpanningTree.of(network, "s0")
    >>> tree.edges
    (('s0', 's1'), ('s0', 's3'), ('s1', 's2'))
    >>> mended_tree(tree, network, {frozenset(("s0", "s1"))}).edges
    (('s0', 's3'), ('s3', 's2'), ('s2', 's1'))
    >>> mended_tree(tree, network, {frozenset(("s0", "s1"))}, fenced=()) == tree
    True
    """
    fenced = down if fenced is None else fenced
    there = {frozenset(edge) for edge in tree.edges}
    kept = [edge for edge in tree.edges if frozenset(edge) not in fenced]
    near: dict[str, list[str]] = {switch: [] for switch in tree.switches}
    part = {switch: {switch} for switch in tree.switches}  # who hangs together with whom

    def join(a: str, b: str) -> None:
        near[a].append(b)
        near[b].append(a)
        both = part[a] | part[b]
        for switch in both:
            part[switch] = both

    for a, b in kept:
        join(a, b)
    spare = [
        (
            0 if edge not in fenced else 1 if edge in there else 2,
            tree.depth(link.a) + tree.depth(link.b),
            link.latency_ms,
            link.a,
            link.b,
        )
        for link in topology.links
        if link.a in tree and (edge := frozenset((link.a, link.b))) not in down
    ]
    for _, _, _, a, b in sorted(spare):
        if part[a] is not part[b]:
            join(a, b)
    return _rooted(near, (tree.root, *tree.switches))


def unmoved(old: SpanningTree, new: SpanningTree) -> frozenset[tuple[str, str]]:
    """The neighbours (a, b) on both trees such that the same switches lie behind b, as a sees it.

    After a few edges were exchanged these are all but those along the circles that the new edges close.

    >>> from flowsieve.network.generators import ring
    >>> tree = SpanningTree.of(ring(4), "s0")
    >>> other = mended_tree(tree, ring(4), {frozenset(("s0", "s1"))})
    >>> tree.edges, other.edges
    ((('s0', 's1'), ('s0', 's3'), ('s1', 's2')), (('s0', 's3'), ('s3', 's2'), ('s2', 's1')))
    >>> sorted(unmoved(tree, tree) - unmoved(tree, other))
    [('s0', 's1'), ('s0', 's3'), ('s1', 's0'), ('s1', 's2'), ('s2', 's1'), ('s3', 's0')]
    """
    before, after = _behind(old), _behind(new)
    return frozenset(pair for pair, switches in before.items() if after.get(pair) == switches)


def _behind(tree: SpanningTree) -> dict[tuple[str, str], int]:
    """The switches behind each neighbour, as a number with a bit for each of them, in the order of their names."""
    below = {switch: 1 << at for at, switch in enumerate(sorted(tree.switches))}
    whole: dict[str, int] = {}  # of the part of the network that a switch is in
    for switch in reversed(tree.switches):
        if switch in tree.parent:
            below[tree.parent[switch]] |= below[switch]
    behind: dict[tuple[str, str], int] = {}
    for switch in tree.switches:
        above = tree.parent.get(switch)
        whole[switch] = below[switch] if above is None else whole[above]
        if above is not None:
            behind[above, switch], behind[switch, above] = below[switch], whole[switch] ^ below[switch]
    return behind


def _rooted(near: dict[str, list[str]], order: Collection[str]) -> SpanningTree:
    """A tree from its edges; the first switch of each part, in the given order, is its root."""
    parent: dict[str, str] = {}
    roots: list[str] = []
    seen: set[str] = set()
    for root in order:
        if root in seen:
            continue
        roots.append(root)
        seen.add(root)
        waiting = [root]
        for switch in waiting:
            fresh = [other for other in near[switch] if other not in seen]
            seen.update(fresh)
            parent |= dict.fromkeys(fresh, switch)
            waiting += fresh
    return SpanningTree(roots[0], parent, tuple(roots[1:]))
