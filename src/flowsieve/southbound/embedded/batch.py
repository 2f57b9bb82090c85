"""Packets by the million, through all tables as they are at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError
from flowsieve.flow.flat import FlatTable, Words
from flowsieve.flow.wiring import Wiring
from flowsieve.southbound.embedded import walk_kernel

MAX_COPIES = 1_000_000  # of one packet under way; with more it is a storm
TRIAL = 4096  # packets that show how much room the deliveries of all will take


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What came of many packets: packet p reached hosts `host[rows[p] : rows[p + 1]]`, a row per copy.

    Hosts are counted from 0 in the topology's order. `expired` copies ran out of hops.
    """

    rows: NDArray[np.int64]
    host: NDArray[np.int32]
    expired: int

    @property
    def event(self) -> NDArray[np.int64]:
        """The packet of each row."""
        return np.repeat(np.arange(len(self.rows) - 1), np.diff(self.rows))


class Outputs(NamedTuple):
    """Where intervals send to, as lists.

    Interval i sends to hosts `hosts[hosts_of[i] : hosts_of[i + 1]]`, and to other switches out of the slots
    `links[links_of[i] : links_of[i + 1]]`.
    """

    hosts_of: NDArray[np.int64]
    hosts: NDArray[np.int32]
    links_of: NDArray[np.int64]
    links: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class JoinedTables:
    """The flat tables of all switches behind each other; entries are counted through in the same way.

    Those of switch s are the intervals from `begin[s]` and the entries from `rows[s]` up to the next switch.
    """

    tables: tuple[FlatTable, ...]
    wiring: Wiring
    begin: NDArray[np.int64]
    rows: NDArray[np.int64]
    hi: Words
    lo: Words
    entry: NDArray[np.int64]
    outputs: Outputs

    @classmethod
    def of(cls, wiring: Wiring, tables: Sequence[FlatTable], entries: Sequence[int]) -> JoinedTables:
        """Join the tables of the switches, of so many entries each."""
        begin, rows = np.cumsum([0, *map(len, tables)]), np.cumsum([0, *entries])
        width = max(table.ports.shape[1] for table in tables)
        ports = [np.pad(table.ports, ((0, 0), (0, width - table.ports.shape[1]))) for table in tables]
        entry = [
            np.where(each.entry < 0, -1, each.entry + row) for each, row in zip(tables, rows, strict=False)
        ]
        return cls(
            tables=tuple(tables),
            wiring=wiring,
            begin=begin,
            rows=rows,
            hi=np.concatenate([table.hi for table in tables]),
            lo=np.concatenate([table.lo for table in tables]),
            entry=np.concatenate(entry),
            outputs=Outputs(*walk_kernel.list_ports(begin, np.concatenate(ports), wiring.first, wiring.far)),
        )

    def walk(
        self,
        start: NDArray[np.int32],
        hi: Words,
        lo: Words,
        hop_limit: int,
        slot_packets: NDArray[np.int64],
    ) -> tuple[Batch, NDArray[np.int64]]:
        """Send packets from the slots that they come in on; also returns how many each entry matched.

        What goes from switch to switch is added to `slot_packets`.
        """
        packets, trial = len(start), min(TRIAL, len(start))
        entry_packets = np.zeros(self.rows[-1], np.int64)
        rows, host, expired = np.zeros(packets + 1, np.int64), np.empty(TRIAL, np.int32), 0
        for packet, stop in ((0, trial), (trial, packets)):
            if packet:
                host = _with_room(host, int(1.2 * packets * len(host) / packet))
            host, ran_out, storm = walk_kernel.walk(
                self.begin, self.hi, self.lo, self.entry, *self.outputs,
                self.wiring.at, self.wiring.far,
                start, hi, lo,
                packet, stop,
                hop_limit, MAX_COPIES,
                entry_packets, slot_packets,
                rows, host,
            )  # fmt: skip
            if storm >= 0:
                raise SwitchError(f"packet {storm} multiplies on a loop: {MAX_COPIES:,} copies are under way")
            host = host[: rows[stop]]
            expired += ran_out
        return Batch(rows, host, expired), entry_packets


def _with_room(host: NDArray[np.int32], room: int) -> NDArray[np.int32]:
    """The same numbers at the front of more room. What is never touched of it costs nothing; growing does."""
    wider = np.empty(max(room, len(host) + 1024), np.int32)
    wider[: len(host)] = host
    return wider
