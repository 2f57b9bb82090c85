"""Whether the hosts of a network are guarded, and how closely: as the configuration and the room in the tables say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from flowsieve.control.core import Guarding
from flowsieve.flow.guard import MOST_PREFIXES, GuardSettings, most_entries, prefixes_within, sets_within
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.header.address import Prefix
from flowsieve.network.topology import Topology

AUTO: Literal["auto"] = "auto"
Choice = bool | Literal["auto"]
SHARE = 10  # where tables have a capacity, one entry in so many may be the guard's
GUARD_RATE = 100_000  # events a second of each host


def prefixes_for(
    choice: Choice,
    topology: Topology,
    capacity: int | None,
    groups: int = 1,
    policy: SendPolicy = EVERYBODY,
) -> int:
    """How many prefixes a host's port is given; 0 where hosts are not guarded.

    As many as fit into the guard's share of the tables; one for each where the guard is wanted whatever it takes, and
    one for each set of receivers where a policy says which of them a host may address.
    """
    if not policy.open:
        return sets_within(topology)
    if choice is False:
        return 0
    if capacity is None:
        return MOST_PREFIXES
    fitting = prefixes_within(topology, capacity // SHARE, groups)
    return max(fitting, 1) if choice is True else fitting


def guard_entries(
    choice: Choice,
    topology: Topology,
    capacity: int | None,
    groups: int = 1,
    policy: SendPolicy = EVERYBODY,
) -> int:
    """How many entries that takes at most, at the switch where it takes most; an open guard has one for each group."""
    prefixes = prefixes_for(choice, topology, capacity, groups, policy)
    return most_entries(topology, prefixes, groups) if prefixes else groups


def guarding(
    choice: Choice,
    rate: int,
    capacity: int | None,
    sources: Callable[[Topology], Mapping[str, Prefix]],
    groups: int = 1,
    policy: SendPolicy = EVERYBODY,
) -> Guarding:
    """What says how the hosts of a network are guarded; it is asked often, and networks seldom grow.

    Where some hosts send labels and others dz, there are two `groups` to be guarded.
    """
    known: list[tuple[Topology, GuardSettings | None]] = []

    def settings(topology: Topology) -> GuardSettings | None:
        if not known or known[0][0] is not topology:
            prefixes = prefixes_for(choice, topology, capacity, groups, policy)
            made = GuardSettings(prefixes, rate, sources(topology)) if prefixes else None
            known[:] = [(topology, made)]
        return known[0][1]

    return settings
