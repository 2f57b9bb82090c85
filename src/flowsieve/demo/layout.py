"""Where to draw the switches and hosts of a network: in layers if it has them, else by distance."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.network.topology import Topology

MARGIN = 32.0
NAME_MARGIN = 104.0  # on the left, where the names of layers stand
LAYER_NAMES = {1: ("edge",), 2: ("edge", "core"), 3: ("edge", "aggregation", "core")}
LAYER_HEIGHT = 128.0
HOST_DROP = 84.0  # from a switch down to its hosts
SWITCH_GAP, BLOCK_GAP = 0.7, 1.4  # extra room between the hosts of two switches and of two blocks, in hosts
ROUNDS = 120  # of making drawn distances alike to those in the network
HIGHEST = 0.55  # of the width, where there are no layers
HOST_REACH = 46.0  # from a switch to its hosts, where these stand around it

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in a picture of some size.

    `layers` are names and heights of the rows of switches, and `blocks` the groups of switches that only the
    top layer joins (the pods of a fat-tree); a network without layers has neither.
    """

    width: float
    height: float
    at: Mapping[str, Point]
    layers: tuple[tuple[str, float], ...] = ()
    blocks: tuple[tuple[str, ...], ...] = ()


def lay_out(topology: Topology, width: float = 1200.0) -> Layout:
    """Places for all switches and hosts."""
    layers = layers_of(topology)
    return _layered(topology, layers, width) if layers else _scattered(topology, width)


def layers_of(topology: Topology) -> tuple[tuple[str, ...], ...]:
    """The switches by their distance from the hosts, nearest first; nothing if the network has no layers.

    It has layers if every link joins two neighbouring ones.
    """
    depth = _hops(topology, dict.fromkeys(topology.hosts.values()))
    if len(depth) < len(topology.switches) or not any(depth.values()):
        return ()
    if any(depth[link.a] == depth[link.b] for link in topology.links):
        return ()
    rows: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for switch in topology.switches:
        rows[depth[switch]].append(switch)
    return tuple(map(tuple, rows))


def _hops(topology: Topology, starts: Iterable[str], among: Collection[str] | None = None) -> dict[str, int]:
    """How many links away the nearest start is, of all switches that can be reached, perhaps `among` some only."""
    found = dict.fromkeys(starts, 0)
    waiting = deque(found)
    while waiting:
        here = waiting.popleft()
        for near in topology.linked(here):
            if near not in found and (among is None or near in among):
                found[near] = found[here] + 1
                waiting.append(near)
    return found


def _layered(topology: Topology, layers: Sequence[Sequence[str]], width: float) -> Layout:
    """Hosts in a row at the bottom, and the layers above them."""
    blocks = _blocks(topology, layers)
    columns = _columns(topology, layers, blocks)
    step = (width - NAME_MARGIN - MARGIN) / (max(columns[host] for host in topology.hosts) + 1)
    floor = MARGIN + (len(layers) - 1) * LAYER_HEIGHT
    height = {switch: floor - depth * LAYER_HEIGHT for depth, row in enumerate(layers) for switch in row}
    names = LAYER_NAMES.get(len(layers), ("",) * len(layers))
    return Layout(
        width=width,
        height=floor + HOST_DROP + MARGIN,
        at={
            name: (NAME_MARGIN + (column + 0.5) * step, height.get(name, floor + HOST_DROP))
            for name, column in columns.items()
        },
        layers=tuple((name, height[row[0]]) for name, row in zip(names, layers, strict=True)),
        blocks=tuple(tuple(block) for block in blocks),
    )


def _columns(
    topology: Topology, layers: Sequence[Sequence[str]], blocks: Sequence[Collection[str]]
) -> dict[str, float]:
    """How far to the right all stand, in hosts: edge switches over theirs, others spread over their block."""
    columns: dict[str, float] = {}
    extents: list[tuple[float, float]] = []
    free = 0.0
    for block in blocks:
        first = free
        for switch in (each for each in layers[0] if each in block):
            hosts = topology.attached_at(switch)
            columns |= {host: free + i for i, host in enumerate(hosts)}
            columns[switch] = free + (len(hosts) - 1) / 2
            free += len(hosts) + SWITCH_GAP
        extents.append((first, free - SWITCH_GAP))
        free += BLOCK_GAP - SWITCH_GAP
    for row in layers[1:-1]:
        for block, (start, end) in zip(blocks, extents, strict=True):
            columns |= _spaced(topology, [switch for switch in row if switch in block], columns, start, end)
    return columns | _spaced(topology, layers[-1], columns, 0.0, extents[-1][1])


def _spaced(
    topology: Topology, row: Sequence[str], columns: Mapping[str, float], start: float, end: float
) -> dict[str, float]:
    """Evenly between two ends, in the order of what is below."""
    ordered = sorted(row, key=lambda each: _mean(columns[s] for s in topology.linked(each) if s in columns))
    return {
        switch: start - 0.5 + (i + 0.5) / len(ordered) * (end - start) for i, switch in enumerate(ordered)
    }


def _blocks(topology: Topology, layers: Sequence[Sequence[str]]) -> list[Collection[str]]:
    """What hangs together below the top layer, each block with its switches in order."""
    below = {switch: None for row in layers[:-1] for switch in row}
    blocks: list[Collection[str]] = []
    while below:
        blocks.append(_hops(topology, [next(iter(below))], below))
        for switch in blocks[-1]:
            del below[switch]
    return blocks


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _scattered(topology: Topology, width: float) -> Layout:
    """Switches as far apart as the network has them, hosts around their switch on its free side."""
    places = _spread_out(_distances(topology))
    low, high = places.min(axis=0), places.max(axis=0)
    room = 2 * (MARGIN + HOST_REACH)
    scale = min((width - room) / max(high[0] - low[0], 1e-9), HIGHEST * width / max(high[1] - low[1], 1e-9))
    height = float(high[1] - low[1]) * scale + room
    middle = (width / 2, height / 2)
    placed = (places - (low + high) / 2) * scale + middle
    at: dict[str, Point] = {
        s: (float(x), float(y)) for s, (x, y) in zip(topology.switches, placed, strict=True)
    }
    for switch in topology.switches:
        around = [at[near] for near in topology.linked(switch)] or [middle]
        at |= _fan(topology.attached_at(switch), at[switch], around)
    return Layout(width, height, at)


def _distances(topology: Topology) -> NDArray[np.float64]:
    """Hops between any two switches; parts that do not hang together lie a little further off."""
    number = {switch: i for i, switch in enumerate(topology.switches)}
    found = np.full((len(number), len(number)), np.nan)
    for switch, i in number.items():
        for other, hops in _hops(topology, [switch]).items():
            found[i, number[other]] = hops
    return np.where(np.isnan(found), np.nanmax(found) + 2, found)


def _spread_out(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places in the plane whose distances are near those given: stress majorisation.

    It begins with the plane in which the distances spread most, and a little circle that parts what coincides
    there. Near pairs weigh more (1/d²). Each round solves for the places that the present directions ask for,
    and never makes the stress larger.
    """
    n = len(distances)
    if n == 1:
        return np.zeros((1, 2))
    turn = 2 * math.pi * np.arange(n) / n
    centred = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-centred @ distances**2 @ centred / 2)
    places = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    places += 0.05 * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    weights = np.divide(1.0, distances**2, out=np.zeros_like(distances), where=distances > 0)
    solve = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    pull = weights * distances
    for _ in range(ROUNDS):
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = np.divide(pull, gaps, out=np.zeros_like(gaps), where=gaps > 1e-9)
        places = solve @ (np.diag(ratio.sum(axis=1)) - ratio) @ places
    places -= places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    return np.asarray(places @ axes.T)  # the long side lies flat


def _fan(hosts: Sequence[str], at: Point, around: Sequence[Point]) -> dict[str, Point]:
    """Hosts around a switch, beginning on the side away from its neighbours."""
    x, y = at
    outward = math.atan2(y - _mean(b for _, b in around), x - _mean(a for a, _ in around))
    places: dict[str, Point] = {}
    for i, host in enumerate(hosts):
        ring, spot = divmod(i, 7)
        side = (spot + 1) // 2 * (1 if spot % 2 else -1)
        angle, reach = outward + side * math.radians(36), HOST_REACH * (1 + 0.55 * ring)
        places[host] = (x + reach * math.cos(angle), y + reach * math.sin(angle))
    return places
