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
    """What a controller has to write down before all else: the sets of the file, where it has no past."""
    chosen = config.index.sets
    if chosen is None or past.snapshot is not None or past.entries:
        return []
    return [Placed(HostPlaces.chosen(chosen.sets, len(topology.hosts)))]


def other_sets(config: Config, state: ControlState, folder: Path, lease: float) -> str | None:
    """Why the sets of the file are not those in force, if that is so, and what to do about it."""
    chosen = config.index.sets
    if chosen is None or state.sets.begin_with(chosen.sets):
        return None
    return (
        f"the sets that {config.path} names are not those in force, which stay: publishers and switches use the hosts' "
        f"bits. To go over to them, stop this controller, wait {lease:g} seconds until no publisher uses the old ones, "
        f"and start with another state folder than {folder}; what applications have asked for is gone then"
    )
