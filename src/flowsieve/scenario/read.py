"""A scenario from its TOML file and the files that this names, read and checked whole before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, overload

from flowsieve.config.mistakes import Mistakes
from flowsieve.config.toml import Section
from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema, shown
from flowsieve.control.request import Request
from flowsieve.flow.tables.compiler import Side
from flowsieve.header.receivers import HEADER as RECEIVERS
from flowsieve.index.plan import IndexPlan
from flowsieve.network.topology import Topology
from flowsieve.scenario.control_section import CONTROL, KEYS, divided, parted, read_sharing
from flowsieve.scenario.index_section import (
    IndexSection,
    LabelSection,
    ReceiverSection,
    check_label_hosts,
    read_contents,
    read_plan,
    read_schema,
)
from flowsieve.scenario.network_section import Network, read_network
from flowsieve.scenario.request_files import RequestBook, parser_of, read_requests

PARTS = ("schema", "index", "network", "control", "step")
STEP_KEYS = ("requests", "events", "plan", "rate")
MOST_RATE = 1_000_000
DEFAULT_RATE = 1_000.0  # events a second, while a network goes over to another plan


@dataclass(frozen=True, slots=True)
class RequestStep:
    """Requests to serve, and the line of the file on which each stands."""

    source: Path
    requests: tuple[Request, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EventStep:
    """Events to publish."""

    source: Path
    events: EventBatch


@dataclass(frozen=True, slots=True, eq=False)
class PlanStep:
    """A plan to go over to, and events that are published while that happens, so many a second."""

    source: Path
    plan: IndexPlan
    events: EventStep | None = None
    rate: float = DEFAULT_RATE


Step = RequestStep | EventStep | PlanStep


@dataclass(frozen=True, slots=True)
class StepFiles:
    """What one step names: the file of its requests, or of its events, or of a plan and perhaps of events."""

    section: Section
    requests: Path | None = None
    events: Path | None = None
    plan: Path | None = None
    rate: float = DEFAULT_RATE


@dataclass(frozen=True, kw_only=True)
class Scenario(Network):
    """What to play: how packets are addressed, on which network, and what happens there."""

    index: IndexSection | LabelSection
    steps: tuple[Step, ...]

    @property
    def path(self) -> Path:
        return self.index.path

    @property
    def schema(self) -> Schema:
        return self.index.schema

    def asked(self, side: Side) -> dict[str, Request]:
        """What is advertised, or subscribed, after all steps, by id, if nothing is refused."""
        found: dict[str, Request] = {}
        for step in self.steps:
            for request in step.requests if isinstance(step, RequestStep) else ():
                if request.op.side is side:
                    found.pop(request.id, None)
                    if request.op.adding:
                        found[request.id] = request
        return found


@overload
def read_scenario(path: str | Path, *, network: Literal[True] = True) -> Scenario: ...
@overload
def read_scenario(path: str | Path, *, network: Literal[False]) -> IndexSection | LabelSection: ...
def read_scenario(path: str | Path, *, network: bool = True) -> Scenario | IndexSection | LabelSection:
    """A scenario; without `network` its schema and index alone, whatever the rest is like.

    Whatever is wrong, in any of its files, is raised as one BadScenario that tells the first few mistakes.
    """
    mistakes = Mistakes()
    top = Section.read(Path(path), mistakes)
    top.only(PARTS)
    index = read_contents(top)
    wires = read_network(top) if network else None
    files = list(_step_files(top)) if network else []
    top.section(CONTROL).only(KEYS)
    if isinstance(index, IndexSection) and wires is not None:
        check_trees(top, wires, index)
        wires = divided(top, wires, index)
        check_label_hosts(top, index, wires.topology)
        if index.labels is not None:
            check_label_room(top, wires, index.labels)
    elif isinstance(index, LabelSection) and wires is not None:
        wires = parted(top, wires, index)
        check_labels(top, wires, index)
    mistakes.check()
    assert index is not None
    if not network:
        return index
    assert wires is not None
    return _with_steps(wires, index, files, mistakes)


def read_workload(path: str | Path) -> Scenario:
    """Who is where, and sends and wants what, in a scenario: as if labels named receivers, whatever its index says."""
    mistakes = Mistakes()
    top = Section.read(Path(path), mistakes)
    top.only(PARTS)
    schema, wires, files = read_schema(top), read_network(top), list(_step_files(top))
    partitions, _ = read_sharing(top)
    mistakes.check()
    assert schema is not None and wires is not None
    wires = replace(wires, host_sets=partitions or 1)
    return _with_steps(wires, ReceiverSection(top.path, schema, RECEIVERS), files, mistakes)


def _with_steps(
    wires: Network, index: IndexSection | LabelSection, files: list[StepFiles], mistakes: Mistakes
) -> Scenario:
    """A scenario, its steps read from their files."""
    steps = tuple(_read_steps(files, index, wires.topology, mistakes))
    mistakes.check()
    return Scenario(
        **{each.name: getattr(wires, each.name) for each in fields(wires)}, index=index, steps=steps
    )


def _step_files(top: Section) -> Iterator[StepFiles]:
    """What each step has, and in which files."""
    for step in top.sections("step"):
        step.only(STEP_KEYS)
        given = [key for key in ("requests", "events", "plan") if key in step]
        if given not in (["requests"], ["events"], ["plan"], ["events", "plan"]):
            what = "both requests and " + " and ".join(given[1:]) if given else "neither requests nor events"
            top.mistakes.add(
                f"this step has {what}; right is one file, or a plan with events beside it", step.place()
            )
            continue
        rate = _rate(step) if "plan" in given else DEFAULT_RATE
        if "rate" in step and "plan" not in given:
            step.wrong(
                "rate", "rate is for events that are published while a plan changes; right is beside plan"
            )
        suffix = {"plan": "json"}
        paths = {key: step.file(key, f"{key}.{suffix.get(key, 'csv')}") for key in given}
        if all(path is not None for path in paths.values()):
            yield StepFiles(step, rate=rate, **paths)


def _rate(step: Section) -> float:
    """How many events a second are published while a plan changes."""
    value = step.table.get("rate", DEFAULT_RATE)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_RATE:
        right = f"right is a number of events a second up to {MOST_RATE:,}"
        step.wrong("rate", f"rate is {shown(value)}; {right}")
        return DEFAULT_RATE
    return float(value)


def check_trees(top: Section, wires: Network, index: IndexSection) -> None:
    """Each tree serves a part of the space that the first bits of a dz tell."""
    needed, bits = wires.trees.bit_length() - 1, index.plan.bits
    if needed > bits:
        right = f"right are {2**bits} trees or fewer"
        top.section("network").wrong(
            "trees", f"{wires.trees} trees need {needed} bits, and a dz has {bits}; {right}"
        )


def check_labels(top: Section, wires: Network, index: LabelSection) -> None:
    """Labels take one tree, or one for each set of hosts, and room for themselves."""
    section, named = top.section("network"), index.meaning
    if wires.trees > 1:
        right = (
            "right is 1, or partitions in [control]" if isinstance(index, ReceiverSection) else "right is 1"
        )
        section.wrong("trees", f"trees is {wires.trees}; {named} go along one tree; {right}")
    if wires.tables is not None:
        section.wrong("tables", f"tables means nothing with {named}; right is without it")
    check_label_room(top, wires, index)


def check_label_room(top: Section, wires: Network, index: LabelSection) -> None:
    """A switch has a table for each port that leads to hosts, and so many entries whatever is subscribed."""
    section, named = top.section("network"), index.meaning
    with top.section("index").kept("sets") if "sets" in top.section("index") else section.kept("hosts"):
        entries = index.fixed_entries(wires.topology, wires.host_sets)
        fullest = max(entries, key=lambda switch: entries[switch], default="")
        if wires.capacity is not None and entries and entries[fullest] > wires.capacity:
            fewer = "fewer partitions in [control], " if wires.host_sets > 1 else ""
            section.wrong(
                "table_capacity",
                f"table_capacity is {wires.capacity}; {named} take {entries[fullest]} entries at "
                f"switch {shown(fullest)}, whatever is subscribed; right is so many, {fewer}or header 'ipv6' in "
                "[index]",
            )


def _read_steps(
    files: list[StepFiles], index: IndexSection | LabelSection, topology: Topology, mistakes: Mistakes
) -> Iterator[Step]:
    """The steps in their order; ids are checked over all of them."""
    parse, book = parser_of(index.schema, index.check_cover), RequestBook()
    from flowsieve.scenario.event_files import EventFile, check_ids  # it takes a while to be imported

    event_files: list[EventFile] = []

    def events_in(path: Path) -> EventStep:
        file = EventFile.read(path, index.schema, topology)
        event_files.append(file)
        return EventStep(path, file.events)

    for step in files:
        if mistakes.full:
            return
        if step.requests is not None:
            yield RequestStep(step.requests, *read_requests(step.requests, parse, topology, book, mistakes))
            continue
        with mistakes.kept():
            events = None if step.events is None else events_in(step.events)
            if step.plan is None:
                assert events is not None
                yield events
            elif (plan := _other_plan(step.section, step.plan, index)) is not None:
                yield PlanStep(step.plan, plan, events, step.rate)
    with mistakes.kept():
        check_ids(event_files)


def _other_plan(section: Section, path: Path, index: IndexSection | LabelSection) -> IndexPlan | None:
    """The plan that a step goes over to; None after a mistake."""
    if not isinstance(index, IndexSection) or index.label_hosts is not None:
        why = "packets name their receivers, at least those of some hosts"
        section.wrong(
            "plan", f"there is no other plan to go over to where {why}; right is header 'ipv6' or 'ipv4'"
        )
        return None
    return read_plan(section, path, index.schema, index.encoding)
