"""What switches call their ports, where that is not the order in which their neighbours are listed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from flowsieve.errors import BadTopology, nearest

MAX_NUMBER = 0xFFFFFF00  # beyond it are those that are no ports of a network, as the switch's own
Numbers = Mapping[str, Mapping[str, int]]  # of a switch and its neighbour


def own_numbers(numbers: Numbers, ports: Numbers) -> dict[str, Mapping[str, int]]:
    """The numbers of those switches that have others than their `ports`, in the order of these; each is checked.

    >>> own_numbers({"s1": {"h1": 7, "s2": 3}, "s2": {"s1": 1}}, {"s1": {"s2": 1, "h1": 2}, "s2": {"s1": 1}})
    {'s1': mappingproxy({'s2': 3, 'h1': 7})}
    """
    own: dict[str, Mapping[str, int]] = {}
    for switch, row in numbers.items():
        if switch not in ports:
            raise BadTopology(f"unknown switch {switch!r} is given port numbers{nearest(switch, ports)}")
        right = ports[switch]
        _check_row(switch, row, right)
        if dict(row) != dict(right):
            own[switch] = MappingProxyType({near: row[near] for near in right})
    return own


def _check_row(switch: str, row: Mapping[str, int], ports: Mapping[str, int]) -> None:
    for near, number in row.items():
        if near not in ports:
            there = ", ".join(ports) or "none"
            raise BadTopology(
                f"switch {switch!r} has a port to {near!r}, and that is no neighbour of it"
                f"{nearest(near, ports) or f'; there are {there}'}"
            )
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_NUMBER:
            raise BadTopology(
                f"the port of switch {switch!r} to {near!r} is {number!r}; "
                f"right is a whole number from 1 to {MAX_NUMBER}"
            )
    missing = [near for near in ports if near not in row]
    if missing:
        raise BadTopology(
            f"some ports of switch {switch!r} have numbers, and that to {missing[0]!r} has none; right is one for each"
        )
    taken: dict[int, str] = {}
    for near, number in row.items():
        if number in taken:
            raise BadTopology(
                f"port {number} of switch {switch!r} leads to {taken[number]!r} and to {near!r}; right is one of them"
            )
        taken[number] = near
