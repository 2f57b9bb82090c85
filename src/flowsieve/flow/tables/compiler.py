"""From the interests of all hosts to the tables of all switches, maintained as interests come and go.

The tables are a function of the interests, not of the order in which they came. `change` takes what a host
newly wants or publishes, or no longer does; `update` gives the net difference of all tables since the last
update, so a slice of requests costs one difference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.flow.diff import Ports
from flowsieve.flow.tables import (
    interest_kernel,
    overlay_kernel,
    palette_kernel,
    spread_kernel,
    table_kernel,
    trie_kernel,
)
from flowsieve.flow.tables.table_update import TableUpdate, dz_of, ports_of
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet, union
from flowsieve.network.mend import unmoved
from flowsieve.network.topology import Topology
from flowsieve.network.tree import TreeMap

MOST_SETS = 1 << 20  # sets of labels, before the palette is cleared
ROOM = 1024  # rows, before an array has to grow


class Tables(Enum):
    """What kind of table to make of the port sets.

    OVERLAY: the sets of the ports laid over each other; changes stay local. SMALLEST: as few entries as can
    be (ORTC). FREE: as few as can be given what can arrive at the switch at all.
    """

    OVERLAY = "overlay"
    SMALLEST = "smallest"
    FREE = "free"


class Side(Enum):
    """Which side of an event a host is on."""

    SUBSCRIBER = trie_kernel.WANTED
    PUBLISHER = trie_kernel.ADVERTISED

    __hash__ = object.__hash__  # there is one of each


def words_for(topology: Topology) -> int:
    """How many words of bits hold a set of ports of any switch."""
    return max(1, *(-(-len(topology.neighbours(switch)) // 64) for switch in topology.switches))


class TrieView(NamedTuple):
    """What a kernel needs to read one trie."""

    nodes: NDArray[np.uint64]
    root: int
    start: int
    first: tuple[np.uint64, np.uint64]
    hosts: NDArray[np.uint64]
    scratch: tuple[NDArray[np.int64], ...]


class Compiler:
    """The port sets of every switch, and the tables they make.

    >>> from flowsieve.network.topology import Topology
    >>> from flowsieve.network.tree import TreeMap, center_tree
    >>> line = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    >>> compiler = Compiler(line, TreeMap.single(center_tree(line)))
    >>> compiler.change("h1", Side.PUBLISHER, DzSet.of(""), adding=True)
    >>> compiler.change("h2", Side.SUBSCRIBER, DzSet.of("01"), adding=True)
    >>> compiler.update().operations()
    {'s1': 1, 's2': 1}
    >>> compiler.table("s1")
    {Dz('01'): (1,)}
    """

    def __init__(self, topology: Topology, trees: TreeMap, tables: Tables = Tables.OVERLAY) -> None:
        self.topology = topology
        self.trees = trees
        self.tables = tables
        self._mode = list(Tables).index(tables)
        self._switch = {name: i for i, name in enumerate(topology.switches)}
        self._home = {
            name: (2 * i, self._switch[at], topology.port(at, name) - 1)
            for i, (name, at) in enumerate(topology.attached.items())
        }  # per endpoint: the first of its two tries of interests, its switch and its port there
        ports = max(len(topology.neighbours(switch)) for switch in topology.switches)
        self.words = words_for(topology)
        self._lay_out(ports)
        self._make_store(ports)

    def _lay_out(self, ports: int) -> None:
        """The network as arrays: a trie per switch and partition, and where the tree ports of each lead."""
        topology, parts = self.topology, list(self.trees)
        n, count = len(topology.switches), len(parts)
        self._partitions = np.zeros((count, 3), np.uint64)
        towards, back = np.full((n * count, ports), -1, np.int64), np.full((n * count, ports), -1, np.int64)
        self._hosts_at = np.zeros((n * count, self.words), np.uint64)
        self._loose = np.zeros((n * count, self.words), np.uint64)
        for part, (dz, tree) in enumerate(parts):
            self._partitions[part] = dz.aligned >> 64, dz.aligned & (2**64 - 1), dz.length
            for name, at in self._switch.items():
                trie = at * count + part
                for other in tree.neighbours(name) if name in tree else ():
                    port = topology.port(name, other) - 1
                    towards[trie, port] = self._switch[other] * count + part
                    back[trie, port] = topology.port(other, name) - 1
                for port, other in enumerate(topology.neighbours(name)):
                    if other in self._home:
                        self._hosts_at[trie, port >> 6] |= np.uint64(1 << (port & 63))
        self._shape = (towards, back)
        self._starts = np.tile(self._partitions[:, 2].astype(np.int64), n)
        self._firsts = np.ascontiguousarray(np.tile(self._partitions[:, :2], (n, 1)))

    def _make_store(self, ports: int) -> None:
        tries, hosts, words = len(self._starts), len(self._home), self.words
        self._nodes = np.zeros((ROOM + 2 * tries, 1 + trie_kernel.GROUPS * words), np.uint64)
        self._messages = np.zeros((ROOM, spread_kernel.M_COLUMNS), np.uint64)
        self._runs = np.zeros((ROOM // 4, spread_kernel.R_COLUMNS), np.int64)
        self._removed = np.zeros((ROOM // 4, 4 + words), np.uint64)
        self._changed = np.zeros((ROOM, table_kernel.C_PORTS + 2 * words), np.uint64)
        self._counts = np.zeros((ROOM + 4 * hosts, 2), np.int32)
        self._counters = np.zeros(trie_kernel.N_COUNTERS, np.int64)
        self._counters[trie_kernel.NODES] = tries + tries % 2  # a pair begins where a line of memory does
        self._counters[trie_kernel.TAIL] = 1
        self._host_counters = np.array([0, 2 * hosts], np.int64)
        self._roots = np.arange(tries, dtype=np.int64)
        deep = trie_kernel.MAX_DEPTH
        self._scratch = tuple(np.zeros(max(deep, ports), np.int64) for _ in range(4))
        self._dirty = np.zeros(2 * tries, np.int64)
        self._entries = np.zeros(tries, np.int64)
        self._palette = palette_kernel.Palette(self.words)
        for trie in range(tries if self._mode else 0):
            self._touch(trie)

    def _touch(self, trie: int) -> None:
        table_kernel.touch(self._nodes, self._counters, self._dirty, trie, self._roots[trie], self._scratch)

    def change(self, host: str, side: Side, dz: DzSet, *, adding: bool) -> None:
        """Count one more interest of a host, or one less that was counted before."""
        root, switch, port = self._home[host]
        kind = side.value
        self._counts, self._nodes, self._messages, self._runs, self._removed = (
            interest_kernel.change_interest(
                self._counts,
                self._host_counters,
                root + kind,
                dz.hi,
                dz.lo,
                dz.length,
                adding,
                switch,
                kind,
                port,
                self._partitions,
                *self._spreading(),
            )
        )

    def _spreading(self) -> tuple[Any, ...]:
        """What `spread_kernel.spread` takes."""
        return (
            self._nodes,
            self._messages,
            self._runs,
            self._removed,
            self._counters,
            self._shape,
            self._roots,
            self._starts,
            self._scratch,
            self._dirty,
        )

    def add(self, interests: Sequence[tuple[str, Side, DzSet]]) -> None:
        """Count many interests of hosts: what `change` does with one after the other, for half the price."""
        by_host: dict[tuple[str, Side], list[DzSet]] = {}
        for host, side, dz in sorted(
            interests, key=lambda each: -each[1].value
        ):  # publishers first: less is told
            by_host.setdefault((host, side), []).append(dz)
        sets = [dz for own in by_host.values() for dz in own]
        if not sets:
            return
        homes = [(*self._home[host], side.value) for host, side in by_host]
        unions = [union(own) for own in by_host.values()]
        self._counts, self._nodes, self._messages, self._runs, self._removed = interest_kernel.add_interests(
            self._counts,
            self._host_counters,
            np.repeat([root + kind for root, _, _, kind in homes], [len(own) for own in by_host.values()]),
            np.cumsum([len(dz) for dz in sets]),
            _all_rows(sets),
            np.array([(switch, kind, port) for _, switch, port, kind in homes]),
            np.cumsum([len(dz) for dz in unions]),
            _all_rows(unions),
            self._partitions,
            *self._spreading(),
        )

    def rewire(self, trees: TreeMap) -> None:
        """Go over to trees of the same partitions: what the edges given up brought is forgotten, then new ones tell.

        Who has the same switches behind a port as before is told nothing meanwhile: it would all be taken back.
        """
        assert [dz for dz, _ in trees] == [dz for dz, _ in self.trees], "partitions stay as they are"
        for part, ((_, old), (_, new)) in enumerate(zip(self.trees, trees, strict=True)):
            if old == new:
                continue
            before, after = set(map(frozenset, old.edges)), set(map(frozenset, new.edges))
            with self._hushed(part, unmoved(old, new)):
                for edge in old.edges:
                    if frozenset(edge) not in after:
                        self._cut(part, *edge)
                for edge in new.edges:
                    if frozenset(edge) not in before:
                        self._join(part, *edge)
        self.trees = trees

    @contextmanager
    def _hushed(self, part: int, pairs: Collection[tuple[str, str]]) -> Iterator[None]:
        """For the time of a block, of each of these (switch, neighbour) the first is told nothing by the second."""
        towards, _ = self._shape
        rows = [self._switch[far] * self.partitions + part for _, far in pairs]
        ports = [self.topology.port(far, near) - 1 for near, far in pairs]
        known = towards[rows, ports]
        towards[rows, ports] = -1
        try:
            yield
        finally:
            towards[rows, ports] = known

    def _cut(self, part: int, a: str, b: str) -> None:
        """Take an edge out of a tree: nothing is wanted or published behind it any more."""
        towards, back = self._shape
        hi, lo, length = self._partitions[part]
        for near, far in ((a, b), (b, a)):
            trie, port = self._switch[near] * self.partitions + part, self.topology.port(near, far) - 1
            towards[trie, port] = back[trie, port] = -1
            for kind in Side:
                self._messages, self._runs = spread_kernel.ask(
                    self._messages, self._runs, self._counters, trie, kind.value, port, 0, hi, lo, int(length)
                )
        self._spread()

    def _join(self, part: int, a: str, b: str) -> None:
        """Put an edge between two trees: each end tells the other what is wanted and published on its side."""
        towards, back = self._shape
        for near, far in ((a, b), (b, a)):
            trie, other = (self._switch[name] * self.partitions + part for name in (near, far))
            at, beyond = self.topology.port(near, far) - 1, self.topology.port(far, near) - 1
            towards[trie, at], back[trie, at] = other, beyond
            for kind in Side:
                self._messages, self._runs = spread_kernel.introduce(
                    self._nodes,
                    self._messages,
                    self._runs,
                    self._counters,
                    self._roots[trie],
                    self._starts[trie],
                    (self._firsts[trie, 0], self._firsts[trie, 1]),
                    kind.value,
                    other,
                    beyond,
                    self._scratch,
                )
        self._spread()

    def _spread(self) -> None:
        self._nodes, self._messages, self._runs, self._removed = spread_kernel.spread(*self._spreading())

    def update(self) -> TableUpdate:
        """The net difference of all tables since the last update."""
        first = len(self._dirty) // 2
        touched = self._dirty[first : first + self._counters[trie_kernel.DIRTY_TRIES]].copy()
        if self.tables is Tables.OVERLAY:
            self._changed, rows = overlay_kernel.refresh_overlay(
                self._nodes,
                self._changed,
                self._removed,
                self._counters,
                self._roots,
                self._starts,
                self._firsts,
                self._scratch,
                self._dirty,
                self._entries,
            )
            return TableUpdate(self.topology.switches, self.partitions, rows, touched)
        if self._palette.sizes[palette_kernel.SETS] > MOST_SETS:
            self.work_out_anew()
        self._changed, rows = table_kernel.refresh_tables(
            self._nodes,
            self._changed,
            self._removed,
            *self._palette.parts,
            self._mode,
            self._counters,
            self._roots,
            self._starts,
            self._firsts,
            self._hosts_at,
            self._loose,
            self._scratch,
            self._dirty,
            self._entries,
        )
        return TableUpdate(self.topology.switches, self.partitions, rows, touched)

    def work_out_anew(self) -> None:
        """Have the next update derive every table from the port sets, whatever it knows of them; that changes no table.

        Sets of labels that no node has any more are never freed one by one, so this also starts a new
        palette.
        """
        self._palette = palette_kernel.Palette(self.words)
        for trie in range(len(self._roots)):
            self._touch(trie)

    def entries(self, switch: str) -> int:
        """How many entries a switch's table has."""
        return int(self._entries[self.tries(switch)].sum())

    def table(self, switch: str) -> dict[Dz, Ports]:
        """A switch's whole table, as of the last update."""
        return self.named(np.concatenate([self._listed(trie) for trie in self.tries(switch)]))

    @staticmethod
    def named(rows: NDArray[np.uint64]) -> dict[Dz, Ports]:
        """A table from rows of hi, lo, length, ports."""
        known: dict[tuple[int, ...], Ports] = {}
        return {dz_of(row[0], row[1], row[2]): ports_of(row[3:], known) for row in rows.tolist()}

    @property
    def partitions(self) -> int:
        return len(self._partitions)

    def tries(self, switch: str) -> range:
        """The numbers of a switch's tries, one per partition."""
        at = self._switch[switch]
        return range(at * self.partitions, (at + 1) * self.partitions)

    def view(self, trie: int) -> TrieView:
        """One trie's storage, to read."""
        return TrieView(
            self._nodes,
            int(self._roots[trie]),
            int(self._starts[trie]),
            (self._firsts[trie, 0], self._firsts[trie, 1]),
            self._hosts_at[trie],
            self._scratch,
        )

    def loosen_around(self, switch: str) -> None:
        """From now on expect more from a switch than its neighbours asked it for, since its table is coarse."""
        towards, back = self._shape
        for trie in self.tries(switch):
            for port in np.flatnonzero(towards[trie] >= 0):
                other, at = int(towards[trie, port]), int(back[trie, port])
                self._loose[other, at >> 6] |= np.uint64(1 << (at & 63))
                self._touch(other)

    def loosen_only(self, switches: Iterable[str]) -> None:
        """Expect more than what was asked for from these switches, and from no other."""
        for trie in np.flatnonzero(self._loose.any(axis=1)):
            self._loose[trie] = 0
            self._touch(int(trie))
        for switch in switches:
            self.loosen_around(switch)

    def _listed(self, trie: int) -> NDArray[np.uint64]:
        out = np.zeros((int(self._entries[trie]), 3 + self.words), np.uint64)
        first = (self._firsts[trie, 0], self._firsts[trie, 1])
        n = table_kernel.list_entries(
            self._nodes,
            self._roots[trie],
            self._starts[trie],
            first,
            self._scratch,
            out,
        )
        assert n == len(out), "the count of entries went wrong"
        return out

    @property
    def visits(self) -> int:
        """How many (switch, region) pairs have been visited so far: a measure of work that no machine changes."""
        return int(self._counters[trie_kernel.VISITS])

    @property
    def memory_bytes(self) -> int:
        """What the tries hold now."""
        stores = (self._nodes, self._counts, self._messages, self._runs, self._removed, self._changed)
        return sum(array.nbytes for array in stores)


def _all_rows(sets: Sequence[DzSet]) -> NDArray[np.uint64]:
    rows = np.empty((sum(map(len, sets)), 3), np.uint64)
    for column, name in enumerate(("hi", "lo", "length")):
        rows[:, column] = np.concatenate([getattr(dz, name) for dz in sets])
    return rows
