"""The demo in the terminal, act by act; each fits a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from flowsieve.cli.view import Facts, facts, good
from flowsieve.demo.layout import LAYER_NAMES, layers_of
from flowsieve.demo.telling import SIEVE, Telling
from flowsieve.flow.proof.explain import Hop
from flowsieve.network.topology import Topology

SHOWN = 7  # subscriptions
NAMED = 2  # subscriptions that a hop serves; more are counted
LONGEST = 48  # characters of a bar


def open_act(out: Console, number: int, title: str) -> None:
    out.print()
    out.rule(Text(f"{number}  {title}", "bold"), align="left", style="dim")


def network(out: Console, telling: Telling) -> None:
    """Who is there, what they want, and what the controller made of it."""
    story = telling.story
    publishers, readers = (
        {each.host for each in side} for side in (story.advertisements, story.subscriptions)
    )
    out.print(f"The sensors of a building, on a fat-tree of {story.topology}.")
    out.print(
        f"{len(publishers)} gateways publish; on {len(readers)} hosts, {len(story.subscriptions)} "
        "subscriptions want some of what they read.\n"
    )
    listed = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("host", "wants", "for"):
        listed.add_column(column)
    for each in story.subscriptions[:SHOWN]:
        listed.add_row(each.host, Text(each.filter, style="cyan"), each.id)
    listed.add_row("", Text(f"… and {len(story.subscriptions) - SHOWN} more", style="dim"), "")
    out.print(listed)
    with out.status("the controller serves the requests"):
        tables, pubsub = telling.tables, telling.pubsub
    bits, budget = pubsub.state.plan.bits, pubsub.state.settings.budget
    requests = len(story.advertisements) + len(story.subscriptions)
    flows, fullest = sum(tables.values()), max(tables.values())
    out.print()
    about: Facts = {
        "a reading": ", ".join(f"{each.name} ({each.kind})" for each in story.schema),
        "its address": f"{bits} bits of dz; a filter becomes at most {budget} prefixes",
        "installed": f"{flows:,} flows in {len(tables)} switches, {fullest:,} in the fullest",
        "it took": f"{pubsub.controller.operations:,} flow operations for {requests} requests, "
        f"{telling.seconds['serving']:.1f} s",
    }
    out.print(facts(about))
    out.print(_table_sizes(story.topology, tables))


def _table_sizes(topology: Topology, tables: Mapping[str, int]) -> Table:
    """Flows per switch, a row per layer."""
    layers = layers_of(topology) or (topology.switches,)
    names = LAYER_NAMES.get(len(layers), ("",) * len(layers))
    grid = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    for name, row in reversed(list(zip(names, layers, strict=True))):
        grid.add_row(name, *(Text.assemble((switch, "bold"), f" {tables[switch]}") for switch in row))
    return grid


def arrivals(out: Console, telling: Telling) -> None:
    """What arrived, and whether it is what was wanted."""
    with out.status("the gateways publish"):
        found = telling.delivered
    sent, seconds = len(telling.story.events), telling.seconds["sending"]
    share = found.unwanted / max(1, found.copies)
    exact = sum(found.matched[name] == found.matching[name] for name in found.matching)
    seen = sum(found.matched.values())
    whole = good(
        not (found.lost or found.doubled),
        "nothing wanted lost, nothing doubled",
        f"{found.lost:,} lost, {found.doubled:,} doubled",
    )
    applications = good(
        exact == len(found.matching),
        f"all {exact} saw exactly what their filters match, {seen:,} readings",
        f"only {exact} of {len(found.matching)} saw what their filters match",
    )
    rejected = f"{found.rejected}"
    if found.rejected:
        rejected += f" at their gateways, such as {found.reasons[0]}"
    about: Facts = {
        "published": f"{sent:,} readings, sent through the tables in {seconds:.2f} s",
        "rejected": rejected,
        "wanted": f"{found.wanted:,} copies; {found.unheard:,} readings interest nobody",
        "arrived": Text.assemble(f"{found.copies:,} copies: ", whole),
        "unwanted": f"{found.unwanted:,} of these ({share:.1%}), which the client library drops",
        "applications": applications,
    }
    out.print(facts(about))


def savings(out: Console, telling: Telling) -> None:
    """What the network did not carry."""
    with out.status("what broadcast and a broker would have carried"):
        ways = telling.ways
    figures: tuple[tuple[str, Callable[[str], float], str], ...] = (
        ("packets between switches", lambda name: ways[name].between_switches, "{:,.0f}"),
        ("kB into hosts", lambda name: ways[name].bytes_into_hosts / 1000, "{:,.0f}"),
        ("on the busiest link", lambda name: ways[name].busiest[1], "{:,.0f}"),
        ("mean links to subscriber", lambda name: ways[name].hops, "{:.2f}"),
    )
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for name in ways:
        table.add_column(name, justify="right", style="green" if name == SIEVE else "")
        if name != SIEVE:
            table.add_column("", style="dim")
    for title, figure, form in figures:
        cells = [title]
        for name in ways:
            cells.append(form.format(figure(name)))
            if name != SIEVE:
                cells.append(f"× {figure(name) / figure(SIEVE):.1f}" if figure(SIEVE) else "")
        table.add_row(*cells)
    out.print(table)
    out.print()
    top = max(way.between_switches for way in ways.values()) or 1
    for name, way in ways.items():
        bar = "█" * max(1, round(LONGEST * way.between_switches / top))
        colour = "green" if name == SIEVE else "red"
        out.print(Text.assemble((f"{name:>16} ", "dim"), (bar, colour), f" {way.between_switches:,}"))
    out.print(
        "Counted in favour of the others: broadcast skips branches without hosts; the broker, "
        f"on {telling.broker}, stands where it costs least, takes shortest paths and filters exactly.",
        style="dim",
    )


def journey(out: Console, telling: Telling) -> None:
    """One event, hop by hop."""
    story, found = telling.story, telling.followed
    event = ", ".join(f"{name} = {value!r}" for name, value in story.followed.items())
    head = Text.assemble((story.followed_host, "bold"), f" ({telling.speaker}) publishes ", (event, "cyan"))
    root = Tree(head, guide_style="dim")
    hops = {(hop.came_from, hop.switch): hop for hop in found.hops}

    def grow(branch: Tree, came_from: str, to: str) -> None:
        if to in story.topology.hosts:
            branch.add(_host_text(telling, to))
            return
        hop = hops[came_from, to]
        onward = branch.add(_hop_text(hop))
        for following in hop.out:
            grow(onward, to, following)

    grow(root, story.followed_host, story.topology.hosts[story.followed_host])
    out.print(root)
    others = len(story.topology.hosts) - 1
    silent = len(story.topology.switches) - len({hop.switch for hop in found.hops})
    out.print(
        f"It reached {len(found.delivered)} of {others} other hosts, for {len(found.matches)} subscriptions; "
        f"{silent} switches never saw it."
    )
    for miss in found.missed:
        out.print(Text(f"{miss.host} misses it for {miss.subscription}: {miss.why}", style="bold red"))


def _hop_text(hop: Hop) -> Text:
    flow = str(hop.flow.match) if hop.flow else "no flow, dropped"
    names = hop.subscriptions
    for_whom = ", ".join(names) if len(names) <= NAMED else f"{len(names)} subscriptions"
    return Text.assemble((hop.switch, "bold"), f"  {flow}", (f"  for {for_whom}" if names else "", "dim"))


def _host_text(telling: Telling, host: str) -> Text:
    wishes = [
        each for each in map(telling.interests.__getitem__, telling.followed.matches) if each.host == host
    ]
    if not wishes:
        return Text.assemble((host, "bold yellow"), " does not want it; its library drops it")
    return Text.assemble(
        (host, "bold green"), " wants ", (" or ".join(each.filter for each in wishes), "cyan")
    )


def proof(out: Console, telling: Telling) -> None:
    """The tables, proved."""
    with out.status("the proof"):
        verdict, flows = telling.verdict, sum(telling.tables.values())
    out.print(
        good(
            verdict.holds,
            f"Proved in {telling.seconds['proving']:.2f} s: whatever the gateways may publish, these "
            f"{flows:,} flows bring it to every host that wants it, once, and no packet from any port loops.",
            f"The tables do not hold: {verdict.false_negatives} losses, {verdict.duplicates} duplicates, "
            f"{verdict.loops} switches on a loop, {verdict.strays} stray entries.",
        )
    )
    out.print("The whole space was followed piece by piece, not sampled.", style="dim")
    if (witness := verdict.witness) is not None:
        out.print(Text(f"{witness.kind}: {witness.event} of {witness.publisher}: {witness.where}", "yellow"))


def last_word(out: Console, page: Path | None, seconds: float) -> None:
    """Where the page is, and how long all of it took."""
    if page is not None:
        where = Text.assemble("The same as a page, with the network drawn: ", (str(page), "bold underline"))
        out.print(where, soft_wrap=True)
    out.print(f"All of it took {seconds:.1f} s.", style="dim")
