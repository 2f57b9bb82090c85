"""Which configurator owns which partition: by past load, at random for comparison, or taken over from those that left.

By past load is for the start and for after long periods, since many partitions may move at once; in between
`monitor` moves single ones ([PLEROMA]).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from flowsieve.errors import BadInput
from flowsieve.index.dz import Dz


def by_load(loads: Mapping[Dz, float], configurators: Sequence[str]) -> dict[Dz, str]:
    """The heaviest partition first, each to whoever has least so far; what has no load is spread evenly by number.

    >>> loads = {Dz.parse("00"): 5.0, Dz.parse("01"): 4.0, Dz.parse("10"): 3.0, Dz.parse("11"): 0.0}
    >>> {str(dz): owner for dz, owner in by_load(loads, ["c1", "c2"]).items()}
    {'00': 'c1', '01': 'c2', '10': 'c2', '11': 'c1'}
    """
    return _given_out(loads, {}, loads, configurators)


def at_random(partitions: Sequence[Dz], configurators: Sequence[str], rng: random.Random) -> dict[Dz, str]:
    """The partitions shuffled and dealt out: all have equally many, whatever they weigh."""
    _check_configurators(configurators)
    shuffled = rng.sample(sorted(partitions), len(partitions))
    return {dz: configurators[i % len(configurators)] for i, dz in enumerate(shuffled)}


def taken_over(owners: Mapping[Dz, str], loads: Mapping[Dz, float], left: Sequence[str]) -> dict[Dz, str]:
    """Who owns what once only these configurators are left: what was theirs stays, all else is given out by load.

    >>> owners = {Dz.parse("0"): "c1", Dz.parse("10"): "c2", Dz.parse("11"): "c3"}
    >>> loads = {Dz.parse("0"): 1.0, Dz.parse("10"): 9.0, Dz.parse("11"): 5.0}
    >>> {str(dz): owner for dz, owner in taken_over(owners, loads, ["c1", "c2"]).items()}
    {'0': 'c1', '10': 'c2', '11': 'c1'}
    """
    there = set(left)
    kept = {dz: owner for dz, owner in owners.items() if owner in there}
    return _given_out(owners, kept, loads, left)


def _given_out(
    partitions: Mapping[Dz, object],
    kept: Mapping[Dz, str],
    loads: Mapping[Dz, float],
    configurators: Sequence[str],
) -> dict[Dz, str]:
    """An owner for each partition, given those that keep theirs."""
    _check_configurators(configurators)
    for dz in partitions:
        if not 0 <= loads.get(dz, 0.0) < math.inf:
            raise BadInput(f"partition {str(dz)!r} has a load of {loads[dz]}; right is 0 or more")
    load, idle = dict.fromkeys(configurators, 0.0), dict.fromkeys(configurators, 0)
    owners: dict[Dz, str] = {}
    moving = sorted(partitions.keys() - kept.keys(), key=lambda dz: (-loads.get(dz, 0.0), dz))
    for dz in [*sorted(kept), *moving]:
        weight = loads.get(dz, 0.0)
        owner = kept.get(dz) or min(configurators, key=(load if weight else idle).__getitem__)
        load[owner] += weight
        idle[owner] += not weight
        owners[dz] = owner
    return owners


def _check_configurators(configurators: Sequence[str]) -> None:
    if not configurators:
        raise BadInput("there is no configurator to own a partition; right is one or more")
