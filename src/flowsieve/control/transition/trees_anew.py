"""Trees for the network as it is now: those that it has were chosen when it began, and mended since, edge by edge."""

from __future__ import annotations

from flowsieve.control.state import ControlState
from flowsieve.network.mend import extended, mended
from flowsieve.network.tree import TreeMap, center_tree


def trees_anew(state: ControlState) -> TreeMap:
    """A tree for each part of the space, over links that carry something, as if nothing had been there before.

    Nothing is sent along them before a tag is theirs: so they need not be what the old ones became by mending.
    """
    topology, parts = state.topology, state.partitions
    trees = TreeMap.over(topology, parts) if len(parts) > 1 else TreeMap.single(center_tree(topology))
    dead = state.down | state.fenced
    return mended(extended(trees, topology), topology, dead, dead)
