"""How the work of control is divided, from `[control]`: partitions of the space, and configurators that own them.

Where packets name their receivers, a partition is a set of hosts.
"""

from __future__ import annotations

from dataclasses import replace

from flowsieve.config.toml import Section
from flowsieve.control.partitions.division import MOST_PARTITIONS, Division
from flowsieve.scenario.index_section import IndexSection, LabelSection, ReceiverSection
from flowsieve.scenario.network_section import Network

CONTROL = "control"
KEYS = ("partitions", "configurators")
MOST_CONFIGURATORS = 64
EACH = 8  # partitions of a configurator, unless told otherwise


def read_sharing(top: Section) -> tuple[int | None, int]:
    """Into how many partitions the space is divided, if that is said, and how many configurators own them."""
    section = top.section(CONTROL)
    partitions = section.whole("partitions", MOST_PARTITIONS)
    configurators = section.whole("configurators", MOST_CONFIGURATORS)
    for key, found, most in (
        ("partitions", partitions, MOST_PARTITIONS),
        ("configurators", configurators, MOST_CONFIGURATORS),
    ):
        if found == 0:
            section.wrong(key, f"{key} is 0; right is a whole number from 1 to {most}")
    configurators = configurators or 1
    if partitions and configurators > partitions:
        section.wrong(
            "configurators",
            f"{configurators} configurators cannot share {partitions} partitions; right are so many or fewer",
        )
    return partitions or None, configurators


def divided(top: Section, network: Network, index: IndexSection) -> Network:
    """The network with its space divided as the section says, and the hosts of labels beside dz in as many sets."""
    partitions, configurators = read_sharing(top)
    if "trees" in top.section("network") and partitions is not None:
        top.section(CONTROL).wrong(
            "partitions", "every partition has a tree of its own, so right is without trees in [network]"
        )
    check_division(top, partitions or configurators, index)
    check_room(top, partitions, configurators, network.capacity)
    trees = partition_count(partitions, configurators, network.trees, index.plan.bits, network.capacity)
    return replace(network, trees=trees, configurators=configurators, host_sets=partitions or 1)


def parted(top: Section, network: Network, index: LabelSection) -> Network:
    """The network with its hosts in as many sets as the section says, where packets say for which set they are.

    Whoever decides on them decides nothing more: no request changes a table, so that one process will do.
    """
    partitions, _ = read_sharing(top)
    return replace(network, host_sets=partitions or 1) if isinstance(index, ReceiverSection) else network


def check_division(top: Section, partitions: int, index: IndexSection) -> None:
    """Partitions are told apart by the first bits of a dz."""
    bits = index.plan.bits
    if Division.even(partitions).depth > bits:
        key = "partitions" if "partitions" in top.section(CONTROL) else "configurators"
        right = f"right are {2**bits} or fewer"
        top.section(CONTROL).wrong(
            key, f"{partitions} partitions need more bits than the {bits} of a dz; {right}"
        )


def check_room(top: Section, partitions: int | None, configurators: int, capacity: int | None) -> None:
    """A table takes an entry for each partition in which something is wanted, however coarse it is."""
    needed = (partitions or 0) + configurators
    if partitions is not None and capacity is not None and needed > capacity:
        top.section(CONTROL).wrong(
            "partitions",
            f"{partitions} partitions of {configurators} configurators need {needed} entries of a switch that has "
            f"room for {capacity} (table_capacity); right are fewer",
        )


def partition_count(said: int | None, configurators: int, trees: int, bits: int, capacity: int | None) -> int:
    """How many partitions there are, where that is not said: several for each configurator, so that some can move."""
    if said is not None:
        return said
    if trees > 1 or configurators == 1:
        return trees
    fitting = MOST_PARTITIONS if capacity is None else max(configurators, capacity - configurators)
    return min(EACH * configurators, 1 << bits, MOST_PARTITIONS, fitting)
