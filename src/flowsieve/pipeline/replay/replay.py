"""Events replayed on Spark against a network's tables: what its links would carry, and what its hosts would get.

Each partition walks its events through a copy of the tables. All sums are of whole numbers, so that the result is the
same however the events are split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import functions as F

from flowsieve.content.schema import listed
from flowsieve.errors import BadInput, SwitchError, nearest
from flowsieve.flow.wiring import Wiring
from flowsieve.network.topology import Topology
from flowsieve.pipeline.reading.cell_values import BROKEN
from flowsieve.pipeline.reading.ingest import IngestedEvents
from flowsieve.pipeline.replay import replay_kernel as kernel
from flowsieve.pipeline.replay.network_snapshot import NetworkSnapshot, ReplayTraffic
from flowsieve.pipeline.runtime.batches import event_batch
from flowsieve.pipeline.runtime.sums import SumRow, summed, worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class Replayed:
    """What happened to the events, in total, per link, per switch and per host."""

    wiring: Wiring
    traffic: ReplayTraffic
    workers: tuple[str, ...] = ()  # the executors that took part

    def host_sums(self, name: str) -> NDArray[np.int64]:
        """One of the figures that are counted per host, in the topology's order; also `false_negatives`."""
        if name == "false_negatives":
            return self.host_sums("wanted") - self.host_sums("met")
        column: NDArray[np.int64] = self.traffic.hosts[:, kernel.COLUMNS.index(name)]
        return column

    def total(self, name: str) -> int:
        return int(self.host_sums(name).sum())

    @property
    def unadvertised(self) -> int:
        """Events that were not sent, since no advertisement of their publisher holds them."""
        return int(self.traffic.sent[:, 2].sum())

    @property
    def links(self) -> dict[tuple[str, str], int]:
        """How many packets went from one switch to another."""
        return {
            (self.wiring.near(slot), self.wiring.beyond(slot)): int(self.traffic.slots[slot])
            for slot in np.flatnonzero(self.wiring.far >= 0).tolist()
        }

    def to_json(self) -> dict[str, Any]:
        """The figures, under the names that `report.json` has for them."""
        names = ("deliveries", "wanted", "false_positives", "false_negatives", "duplicates", "repeats")
        totals = {name: self.total(name) for name in names}
        links, published = self.links, self.traffic.sent[:, 0]
        hosts = {"published": published} | {name: self.host_sums(name) for name in names}
        return {
            "published": int(published.sum()),
            **totals,
            "fpr": totals["false_positives"] / totals["deliveries"] if totals["deliveries"] else 0.0,
            "packets": int(self.traffic.sent[:, 1].sum()),
            "link_packets": sum(links.values()),
            "expired": int(self.traffic.expired[0]),
            "links": [{"from": a, "to": b, "packets": packets} for (a, b), packets in links.items()],
            "switches": self._switches(),
            "hosts": _by_row(self.wiring.hosts, hosts),
            "executors": len(self.workers),
        }

    def _switches(self) -> dict[str, dict[str, int]]:
        wiring, slots, sent = self.wiring, self.traffic.slots, self.traffic.sent[:, 1]
        links = np.flatnonzero(wiring.far >= 0)
        count = len(wiring.switches)
        home = wiring.at[wiring.home]

        def per_switch(at: NDArray[Any], what: NDArray[np.int64]) -> NDArray[np.int64]:
            sums = np.zeros(count, np.int64)
            np.add.at(sums, at, what)
            return sums

        received = per_switch(wiring.at[wiring.far[links]], slots[links])
        columns = {
            "received": received + per_switch(home, sent),
            "link_packets": per_switch(wiring.at[links], slots[links]),
            "deliveries": per_switch(home, self.host_sums("deliveries")),
            "false_positives": per_switch(home, self.host_sums("false_positives")),
        }
        columns["unmatched"] = columns["received"] - self.traffic.matched
        return _by_row(wiring.switches, columns)


def _by_row(names: Sequence[str], columns: Mapping[str, NDArray[np.int64]]) -> dict[str, dict[str, int]]:
    """Columns of figures as a table: of each name its row."""
    return {
        name: {figure: int(column[i]) for figure, column in columns.items()} for i, name in enumerate(names)
    }


def at_hosts(ingested: IngestedEvents, topology: Topology, host: str | None = None) -> IngestedEvents:
    """Events that come from hosts of a network: all from one if it is given, else each from its column `host`.

    A row whose host is not there is set aside as broken.
    """
    if host is not None:
        topology.endpoint(host)  # says which host would be right
        return replace(ingested, judged=ingested.judged.withColumn("host", F.lit(host)))
    if "host" not in ingested.judged.columns:
        raise BadInput(
            f"there is no column 'host' to say who publishes; give one{nearest('host', ingested.rows.names)}, "
            "or --host H for all events",
            place=ingested.path,
        )
    hosts = tuple(topology.hosts)
    reason = F.concat(F.lit("host '"), F.col("host"), F.lit(f"' is none of {listed(hosts)}"))
    stranger = F.when(
        ~F.col("host").isin(list(hosts)), F.struct(F.lit(BROKEN).alias("kind"), reason.alias("reason"))
    )
    return replace(
        ingested, judged=ingested.judged.withColumn("_fault", F.coalesce(F.col("_fault"), stranger))
    )


def replay(events: DataFrame, snapshot: NetworkSnapshot) -> Replayed:
    """Send events (as `IngestedEvents.events` has them, each with a host of the network) through the tables."""

    def send_all(batches: Iterator[pa.RecordBatch]) -> SumRow:
        traffic, storms, workers = ReplayTraffic.none(snapshot.wiring), set(), set()
        hosts = pa.array(snapshot.wiring.hosts, pa.string())
        for batch in batches:
            workers.add(worker())
            source = pc.index_in(batch.column("host"), value_set=hosts).to_numpy(zero_copy_only=False)
            try:
                snapshot.send(event_batch(snapshot.plan.schema, batch), source.astype(np.int64), traffic)
            except SwitchError as error:
                storms.add(str(error))
                break
        return vars(traffic) | {"storms": storms, "workers": workers}

    nothing = vars(ReplayTraffic.none(snapshot.wiring))
    sent = events.select("host", *snapshot.plan.schema.names)
    row = summed(sent, send_all, nothing, "storms", "workers")
    if row["storms"]:
        raise SwitchError(f"{row['storms'][0]}; `flowsieve verify` shows where")
    traffic = ReplayTraffic(**{name: row[name] for name in nothing})
    return Replayed(snapshot.wiring, traffic, tuple(row["workers"]))
