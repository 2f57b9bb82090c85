"""Flow tables from a JSON dump, as `flowsieve run` writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from flowsieve.config.files import place, read_json
from flowsieve.config.mistakes import Mistakes
from flowsieve.content.schema import nearest_of, shown
from flowsieve.errors import BadScenario
from flowsieve.flow.entry import CONTENT_TABLE, LABEL_TABLES, Flow, FlowKey, Output
from flowsieve.header.match import Match, parse_match
from flowsieve.scenario.index_section import LabelSection
from flowsieve.scenario.read import Scenario

KEYS = ("switch", "priority", "dst", "out")
WITH_MASKS = ("table", "src")  # of entries whose dst is value/mask; src may be missing
FORM = "a list of {switch, priority, dst, out: [neighbour]}"
HIGHEST = 65535  # an OpenFlow priority has 16 bits
BETWEEN = re.compile(r"[\s,]*")


def read_flows(path: str | Path, scenario: Scenario) -> dict[str, tuple[Flow, ...]]:
    """The table of every switch of the scenario: those that the dump does not name are empty."""
    path = Path(path)
    entries, text = read_json(path, FORM)
    if not isinstance(entries, list):
        raise BadScenario(f"holds {shown(entries)}; right is {FORM}", place=str(path))
    tables: dict[str, dict[FlowKey, Flow]] = {switch: {} for switch in scenario.topology.switches}
    mistakes = Mistakes()
    for number, entry in enumerate(entries):
        with mistakes.kept(partial(_place, path, text, number)):
            switch, flow = _flow(entry, scenario)
            if flow.key in tables[switch]:
                key = f"dst {entry['dst']} and priority {flow.priority}"
                raise BadScenario(f"switch {shown(switch)} has a second entry with {key}; right is one")
            tables[switch][flow.key] = flow
        if mistakes.full:
            break
    mistakes.check()
    return {switch: tuple(_linked(list(table.values()))) for switch, table in tables.items()}


def _linked(flows: list[Flow]) -> Iterator[Flow]:
    """Entries with the tables that they let packets go on in: the next one that says something of such a packet.

    A dump does not name it, since a packet passes the tables in their order.
    """
    numbers = sorted({flow.table for flow in flows})
    for flow in flows:
        after = (
            table
            for table in numbers[numbers.index(flow.table) + 1 :]
            if any(each.table == table and _overlap(each.match, flow.match) for each in flows)
        )
        yield replace(flow, onward=next(after, None))


def _overlap(one: Match, other: Match) -> bool:
    """Whether some packet has what both ask for."""
    return one.family == other.family and not any(
        (a.value ^ b.value) & a.mask & b.mask
        for a, b in zip(one.parts, other.parts, strict=True)
        if a is not None and b is not None
    )


def _flow(entry: object, scenario: Scenario) -> tuple[str, Flow]:
    """An entry of the dump: its switch, and the flow with ports instead of neighbours."""
    topology = scenario.topology
    if not isinstance(entry, dict):
        raise BadScenario(f"an entry is {shown(entry)}; right is {{switch, priority, dst, out: [neighbour]}}")
    for key in KEYS:
        if key not in entry:
            raise BadScenario(f"an entry has no {key!r}{nearest_of(key, entry)}; right are {', '.join(KEYS)}")
    for key in entry:
        if key not in KEYS + WITH_MASKS:
            # Another field to match, say: a proof that passed over it would prove nothing.
            raise BadScenario(
                f"an entry has {shown(key)}{nearest_of(key, KEYS + WITH_MASKS)}; right are {', '.join(KEYS)} alone"
            )
    switch, priority, dst, out = (entry[key] for key in KEYS)
    if not isinstance(switch, str):
        raise BadScenario(f"switch is {shown(switch)}; right is a switch's name")
    topology.neighbours(switch)
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= HIGHEST:
        raise BadScenario(f"priority is {shown(priority)}; right is a whole number from 0 to {HIGHEST}")
    if not isinstance(dst, str):
        raise BadScenario(f"dst is {shown(dst)}; right is an address prefix, such as 'ff0e:c000::/19'")
    if not isinstance(out, list) or not all(isinstance(neighbour, str) for neighbour in out):
        raise BadScenario(f"out is {shown(out)}; right is a list of neighbours' names, such as ['s2', 'h1']")
    table, src = _table(entry.get("table", 0), scenario), entry.get("src")
    if src is not None and not isinstance(src, str):
        raise BadScenario(f"src is {shown(src)}; right is a value and a mask, such as 'fd00::1/ffff::f'")
    actions = tuple(Output(topology.port(switch, neighbour)) for neighbour in out)
    return switch, Flow(parse_match(dst, src), priority, actions, table=table)


def _table(number: object, scenario: Scenario) -> int:
    """The table of that number in a dump; that of the content is 0 there."""
    index = scenario.index
    labelled = isinstance(index, LabelSection) or index.label_hosts is not None
    if isinstance(number, int) and not isinstance(number, bool):
        if number == 0:
            return CONTENT_TABLE
        if labelled and number in LABEL_TABLES:
            return number
    right = (
        f"0, or {LABEL_TABLES[0]} to {LABEL_TABLES[-1]}, those for labels" if labelled else "0, the only one"
    )
    raise BadScenario(f"table is {shown(number)}; right is {right}")


def _place(path: Path, text: str, number: int) -> str:
    """On which line an entry of the dump begins."""
    decoder, at = json.JSONDecoder(), text.index("[") + 1
    for _ in range(number):
        _, at = decoder.raw_decode(text, _skipped(text, at))
    return place(path, text.count("\n", 0, _skipped(text, at)) + 1)


def _skipped(text: str, at: int) -> int:
    found = BETWEEN.match(text, at)
    assert found is not None
    return found.end()
