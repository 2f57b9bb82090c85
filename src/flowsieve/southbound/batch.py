"""Packets by the million, through all tables as they are at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.errors import SwitchError
from flowsieve.flow.flat import FlatTable, Words
from flowsieve.flow.wiring import Wiring
from flowsieve.southbound import walk_kernel

MAX_COPIES = 1_000_000  # of one packet under way; with more it is a storm


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """What came of many packets: `event[i]` reached host number `host[i]`; a row per copy, in order.

    Hosts are counted in the topology's order. `expired` copies ran out of hops.
    """

    event: NDArray[np.int64]
    host: NDArray[np.int32]
    expired: int


@dataclass(frozen=True, slots=True, eq=False)
class JoinedTables:
    """The flat tables of all switches behind each other; entries are counted through in the same way.

    Those of switch s are the intervals from `begin[s]` and the entries from `rows[s]` up to the next
    switch's.
    """

    tables: tuple[FlatTable, ...]
    begin: NDArray[np.int64]
    rows: NDArray[np.int64]
    hi: Words
    lo: Words
    entry: NDArray[np.int64]
    ports: Words

    @classmethod
    def of(cls, tables: Sequence[FlatTable], entries: Sequence[int]) -> JoinedTables:
        """Join tables of so many entries each."""
        rows = np.cumsum([0, *entries])
        width = max(table.ports.shape[1] for table in tables)
        return cls(
            tables=tuple(tables),
            begin=np.cumsum([0, *map(len, tables)]),
            rows=rows,
            hi=np.concatenate([table.hi for table in tables]),
            lo=np.concatenate([table.lo for table in tables]),
            entry=np.concatenate(
                [
                    np.where(table.entry < 0, -1, table.entry + row)
                    for table, row in zip(tables, rows, strict=False)
                ]
            ),
            ports=np.concatenate(
                [np.pad(table.ports, ((0, 0), (0, width - table.ports.shape[1]))) for table in tables]
            ),
        )

    def walk(
        self,
        wiring: Wiring,
        start: NDArray[np.int32],
        hi: Words,
        lo: Words,
        hop_limit: int,
        slot_packets: NDArray[np.int64],
    ) -> tuple[Batch, NDArray[np.int64]]:
        """Send packets from the slots that they come in on; also returns how many each entry matched.

        What leaves each slot is added to `slot_packets`.
        """
        entry_packets = np.zeros(self.rows[-1], np.int64)
        event, host, expired, storm = walk_kernel.walk(
            self.begin, self.hi, self.lo, self.entry, self.ports,
            wiring.first, wiring.at, wiring.far,
            start, hi, lo,
            hop_limit, MAX_COPIES,
            entry_packets, slot_packets,
        )  # fmt: skip
        if storm >= 0:
            raise SwitchError(
                f"packet {storm} multiplies on a loop: more than {MAX_COPIES:,} copies are under way"
            )
        return Batch(event, host, expired), entry_packets
