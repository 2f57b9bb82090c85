"""Requests and filters from CSV files, checked against schema, network and the requests before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flowsieve.config.files import csv_table, place
from flowsieve.config.mistakes import Mistakes
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema, nearest_of, shown
from flowsieve.control.request import Op, Request
from flowsieve.errors import BadScenario
from flowsieve.flow.tables.compiler import Side
from flowsieve.network.topology import Topology

REQUEST_COLUMNS = ("op", "id", "host", "filter")
FILTER_COLUMNS = ("id", "filter")
OPS = {op.value: op for op in Op}
Check = Callable[[Filter], None]  # raises what is wrong with a filter
Parse = Callable[[str], Filter]
NAMES = {Side.PUBLISHER: "advertisement", Side.SUBSCRIBER: "subscription"}


def parser_of(schema: Schema, check: Check) -> Parse:
    """What parses and checks filters, each text once: thousands of subscriptions often share a few."""

    @cache
    def parse(text: str) -> Filter:
        parsed = Filter.parse(text, schema)
        check(parsed)
        return parsed

    return parse


class _Made(NamedTuple):
    """Who made an advertisement or subscription, and where it stands."""

    host: str
    place: str


@dataclass(slots=True)
class RequestBook:
    """What is advertised and subscribed after the requests so far; each side has its own ids."""

    active: dict[Side, dict[str, _Made]] = field(default_factory=lambda: {side: {} for side in Side})
    ended: dict[Side, dict[str, str]] = field(default_factory=lambda: {side: {} for side in Side})

    def note(self, op: Op, id: str, host: str, where: str) -> None:
        """Take a request into account, or say why it cannot be."""
        active, ended, name = self.active[op.side], self.ended[op.side], NAMES[op.side]
        if op.adding:
            if id in active:
                raise BadScenario(
                    f"{name} {shown(id)} is there already, from {active[id].place}; right is an id of its own"
                )
            active[id] = _Made(host, where)
            return
        made = active.pop(id, None)
        if made is None:
            if id in ended:
                raise BadScenario(
                    f"{name} {shown(id)} was ended already, at {ended[id]}; right is one that is active"
                )
            hint = nearest_of(id, active) or f"; right is one of the {len(active)} that are active"
            raise BadScenario(f"there is no {name} {shown(id)} to end{hint}")
        ended[id] = where
        if made.host != host:
            maker = f"of host {shown(made.host)} ({made.place})"
            raise BadScenario(f"{name} {shown(id)} is {maker}, not of {shown(host)}; right is its own host")


def read_requests(
    path: Path, parse: Parse, topology: Topology, book: RequestBook, mistakes: Mistakes
) -> tuple[tuple[Request, ...], tuple[int, ...]]:
    """The requests in a file and their lines; the book is carried on from file to file."""
    requests: list[Request] = []
    lines: list[int] = []
    for line, (op_name, id, host, text) in csv_table(path, REQUEST_COLUMNS, mistakes):
        where = place(path, line)
        with mistakes.kept(where):
            op = _op(op_name)
            if not id:
                raise BadScenario(f"the id of this {op_name} is empty; right is a name")
            book.note(op, id, host, where)
            if op.adding:
                _check_host(host, topology)
                requests.append(Request(op, id, host, parse(text)))
            else:
                requests.append(Request(op, id, host))
            lines.append(line)
        if mistakes.full:
            break
    return tuple(requests), tuple(lines)


def read_filters(
    path: str | Path, schema: Schema, check: Check = lambda wanted: None
) -> list[tuple[str, Filter]]:
    """The filters in a CSV file with columns id and filter, in its order; `check` may reject some of them."""
    path = Path(path)
    mistakes, parse = Mistakes(), parser_of(schema, check)
    found: list[tuple[str, Filter]] = []
    seen: dict[str, int] = {}
    for line, (id, text) in csv_table(path, FILTER_COLUMNS, mistakes):
        with mistakes.kept(place(path, line)):
            if not id:
                raise BadScenario("the id is empty; right is a name")
            if id in seen:
                raise BadScenario(
                    f"id {shown(id)} is there already, on line {seen[id]}; right is an id of its own"
                )
            seen[id] = line
            found.append((id, parse(text)))
        if mistakes.full:
            break
    mistakes.check()
    return found


def _op(name: str) -> Op:
    if name not in OPS:
        raise BadScenario(f"op is {shown(name)}; right is one of {', '.join(OPS)}{nearest_of(name, OPS)}")
    return OPS[name]


def _check_host(host: str, topology: Topology) -> None:
    """A host that can ask for something is known, and can be reached."""
    endpoint = topology.endpoint(host)
    if endpoint.switch not in topology.main:
        raise BadScenario(
            f"host {shown(host)} is at switch {shown(endpoint.switch)}, cut off from the main part of the "
            f"network; right is a host at one of its {len(topology.main)} switches, or a link to them"
        )
