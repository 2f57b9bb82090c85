"""Sets of hosts from a file, where packets name their receivers: in force from a controller's first start on.

A host's bit stays what it is while publishers and switches may use it. So another file changes nothing for a controller
that remembers the hosts' places: it goes on with those, and says so.
"""

from __future__ import annotations

from pathlib import Path

from flowsieve.control.memory.journal import Entry, Past, Placed
from flowsieve.control.state import ControlState
from flowsieve.network.host_places import HostPlaces
from flowsieve.network.topology import Topology
from flowsieve.serving.config import Config


def first_entries(config: Config, past: Past, topology: Topology) -> list[Entry]:
    """What a controller has to write down before all else, where it has no past: the sets of the file, and how many
    sets hosts are spread over. What it wrote then counts, whatever the file says later."""
    if past.snapshot is not None or past.entries:
        return []
    chosen, spread = config.index.sets, config.host_sets
    if chosen is not None:
        return [Placed(HostPlaces.chosen(chosen.sets, len(topology.hosts), spread=spread))]
    return [Placed(HostPlaces(spread=spread))] if spread > 1 else []


def other_sets(config: Config, state: ControlState, folder: Path, lease: float) -> str | None:
    """Why the sets of the file are not those in force, if that is so, and what to do about it."""
    chosen, names = config.index.sets, "the sets that {} names are"
    if chosen is None or state.sets.begin_with(chosen.sets):
        if state.sets.spread == config.host_sets:
            return None
        names = f"{{}} has receivers in {config.host_sets} sets with trees of their own, which are"
    return (
        f"{names.format(config.path)} not those in force, which stay: publishers and switches use the hosts' "
        f"bits. To go over to them, stop this controller, wait {lease:g} seconds until no publisher uses the old ones, "
        f"and start with another state folder than {folder}; what applications have asked for is gone then"
    )
