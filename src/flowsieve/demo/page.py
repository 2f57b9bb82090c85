"""The demo as one page of HTML that needs nothing else: pictures of the network, the comparison, one event, the proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files

from flowsieve.demo.layout import Layout, lay_out
from flowsieve.demo.markup import Markup, element, joined
from flowsieve.demo.picture import Marks, Scale, draw, host_sign, legend
from flowsieve.demo.telling import BROADCAST, BROKER, SIEVE, Telling

MEANING = {
    SIEVE: "switches drop what nobody behind a link wants",
    BROADCAST: "every event goes to every host, on the same trees",
    BROKER: "every event goes to one host, which sends a copy to each host that wants it",
}


def render(telling: Telling) -> str:
    """The page."""
    layout = lay_out(telling.story.topology)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "flowsieve: what the network did not carry"),
        element("style", _resource("page.css")),
    )
    body = element(
        "body",
        _opening(telling),
        _networks(telling, layout),
        _comparison(telling),
        _tables(telling, layout),
        _followed(telling, layout),
        _proof(telling),
        _subscriptions(telling),
        _closing(),
        element("div", id="tip"),
        element("script", _resource("page.js")),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _resource(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _opening(telling: Telling) -> Markup:
    story, delivered, ways = telling.story, telling.delivered, telling.ways
    own = ways[SIEVE].between_switches
    share = delivered.unwanted / max(1, delivered.copies)
    tiles = (
        (f"{delivered.wanted - delivered.lost:,}", f"of {delivered.wanted:,} wanted copies arrived, each once", not delivered.lost),
        (f"{_saved(own, ways[BROADCAST].between_switches)} fewer", "packets between switches than by broadcast", True),
        (f"{_saved(own, ways[BROKER].between_switches)} fewer", "packets between switches than with a central broker", True),
        (f"{share:.1%}", "of what arrived was unwanted; the client library drops it", True),
    )
    readers = len({each.host for each in story.subscriptions})
    return element(
        "header",
        element("span", "flowsieve", class_="mark"),
        element("h1", "A network that carries what somebody wants"),
        element(
            "p",
            f"{len(story.advertisements)} gateways of a building publish what its sensors read. On {readers} hosts, "
            f"{len(story.subscriptions)} subscriptions say what is wanted, in filters such as ",
            element("code", story.subscriptions[1].filter),
            ". A controller has turned these filters into the flow tables of the switches, which now send each reading "
            f"where it is wanted. Of {delivered.events:,} readings, ",
            element("b", f"{delivered.unheard:,} interest nobody"),
            ".",
            class_="lead",
        ),
        element(
            "div",
            *(
                element(
                    "div",
                    element("span", figure, class_="figure good" if good else "figure bad"),
                    element("span", means, class_="means"),
                    class_="tile",
                )
                for figure, means, good in tiles
            ),
            class_="tiles",
        ),
    )


def _saved(own: int, other: int) -> str:
    return f"{1 - own / max(1, other):.0%}"


def _networks(telling: Telling, layout: Layout) -> Markup:
    """The three ways: a small picture each to choose from, and the chosen one in full."""
    story, ways = telling.story, telling.ways
    scale = Scale.over(*(way.packets for way in ways.values()))
    publishers = {each.host: "publisher" for each in story.advertisements}
    marks = {name: Marks(publishers | ({telling.broker: "broker"} if name == BROKER else {})) for name in ways}
    inputs, tabs, views = [], [], []
    for number, (name, way) in enumerate(ways.items()):
        title = f"{name}: {MEANING[name]}"
        inputs.append(
            element(
                "input",
                type="radio",
                name="way",
                id=f"way{number}",
                aria_label=name,
                checked="checked" if number == 0 else None,
            )
        )
        tabs.append(
            element(
                "label",
                element(
                    "span",
                    element("span", name),
                    element("span", f"{way.between_switches:,}", class_="total"),
                    class_="title",
                ),
                element("span", "packets between switches", class_="unit"),
                draw(story.topology, way.packets, scale, title=title, marks=marks[name], layout=layout, small=True),
                for_=f"way{number}",
                class_=f"tab{number}",
            )
        )
        tables = telling.tables if name == SIEVE else None
        views.append(
            element(
                "div",
                element("h3", f"{name[0].upper()}{name[1:]}: {MEANING[name]}"),
                draw(story.topology, way.packets, scale, title=title, tables=tables, marks=marks[name], layout=layout),
                _under_picture(scale, name, telling.broker),
                class_=f"view view{number} panel",
            )
        )
    return element(
        "section",
        element("h2", "The same readings, carried in three ways"),
        element(
            "p",
            f"Each picture is the same network, {story.topology}, and all have the same scale. "
            "Choose one to see it in full; point at a link, a switch or a host for its figures.",
            class_="note",
        ),
        element("div", *inputs, element("div", *tabs, class_="tabs"), *views, class_="ways"),
    )


def _under_picture(scale: Scale, name: str, broker: str) -> Markup:
    keys = [
        element("span", "packets on a link and direction (keep right)"),
        _key("publisher", "gateway"),
        _key("", "subscriber"),
    ]
    if name == BROKER:
        keys.append(_key("broker", f"the broker, on {broker}"))
    if name == SIEVE:
        keys.append(element("span", "in a switch: its flows"))
    return element("div", legend(scale), *keys, class_="under")


def _key(role: str, means: str) -> Markup:
    """A host's sign in the legend."""
    sign = element(
        "svg",
        element("g", host_sign(8, 8, role, radius=6), class_=f"host {role}".strip()),
        width=16,
        height=16,
        aria_hidden="true",
    )
    return element("span", sign, element("span", means), class_="key")


def _comparison(telling: Telling) -> Markup:
    ways = telling.ways
    charts = (
        ("Packets between switches", {name: float(way.between_switches) for name, way in ways.items()}, "{:,.0f}"),
        ("Bytes into hosts", {name: way.bytes_into_hosts / 1e6 for name, way in ways.items()}, "{:,.1f} MB"),
        ("Packets on the busiest link", {name: float(way.busiest[1]) for name, way in ways.items()}, "{:,.0f}"),
        ("Links between switches from publisher to subscriber, on average", {name: way.hops for name, way in ways.items()}, "{:.2f}"),
    )
    return element(
        "section",
        element("h2", "What the network did not carry"),
        element("div", *(_bars(*chart) for chart in charts), class_="charts"),
        element(
            "p",
            "The others are counted in their favour. Broadcast skips branches without hosts. The broker stands on the "
            f"host where it causes the fewest packets ({telling.broker}), uses shortest paths, filters exactly, and "
            "sends nothing to itself. A packet is an event as JSON behind Ethernet, IPv6 and UDP headers.",
            class_="note",
        ),
    )


def _bars(title: str, values: Mapping[str, float], form: str) -> Markup:
    """Bars of one figure, and how many times our own the others are."""
    top = max(values.values()) or 1.0
    own = values[SIEVE]
    rows = []
    for name, value in values.items():
        kind = " own" if name == SIEVE else ""
        ratio = [] if name == SIEVE else [element("span", f"× {value / own:.1f}" if own else "", class_="ratio")]
        rows += [
            element("span", name, class_=f"name{kind}"),
            element(
                "span",
                element("span", class_="bar", style=f"width:{72 * value / top:.2f}%"),
                element("span", form.format(value)),
                *ratio,
                class_=f"track{kind}",
            ),
        ]
    return element("div", element("h3", title), element("div", *rows, class_="bars"), class_="panel")


def _tables(telling: Telling, layout: Layout) -> Markup:
    tables = telling.tables
    top = max(tables.values()) or 1
    state = telling.pubsub.state
    rows = [[s for s in tables if layout.at[s][1] == y] for _, y in reversed(layout.layers)] or [list(tables)]
    columns: list[Markup] = []
    for row in rows:
        if columns:
            columns.append(element("div", class_="column gap"))
        columns += [
            element(
                "div",
                element("span", f"{tables[switch]:,}", class_="count"),
                element("span", class_="bar", style=f"height:{78 * tables[switch] / top:.2f}%"),
                element("span", switch, class_="name"),
                class_="column",
            )
            for switch in row
        ]
    return element(
        "section",
        element("h2", "What is installed"),
        element(
            "p",
            f"{sum(tables.values()):,} flows in {len(tables)} switches, {top:,} in the fullest. A filter takes at most "
            f"{state.settings.budget} of them per switch; the readings of the day before told where to spend these. "
            f"{len(state.trees)} trees share the links.",
        ),
        element("div", *columns, class_="columns panel"),
    )


def _followed(telling: Telling, layout: Layout) -> Markup:
    story, found = telling.story, telling.followed
    wanted = {telling.interests[name].host for name in found.matches}
    roles = {host: "reader" if host in wanted else "unwanted" for host in found.delivered}
    roles[story.followed_host] = "publisher"
    way = {(hop.came_from, hop.switch) for hop in found.hops} | {(hop.switch, to) for hop in found.hops for to in hop.out}
    event = ", ".join(f"{name} = {value!r}" for name, value in story.followed.items())
    picture = draw(
        story.topology,
        {},
        Scale(0),
        title="the way of one event through the network",
        marks=Marks(roles, frozenset(way)),
        layout=layout,
    )
    keys = [_key("publisher", "publishes it"), _key("reader", "receives it and wants it")]
    if "unwanted" in roles.values():
        keys.append(_key("unwanted", "receives it and does not want it: the library drops it"))
    head = element("tr", *(element("th", text) for text in ("at", "from", "flow that it meets", "sent to", "because of")))
    return element(
        "section",
        element("h2", "One reading, hop by hop"),
        element(
            "p",
            f"{story.followed_host}, the {_speaker(telling)}, publishes ",
            element("code", event),
            f". It goes to {_counted(len(found.delivered), 'host')} and matches {_counted(len(found.matches), 'subscription')}; "
            "every other link stays silent.",
        ),
        element(
            "div",
            picture,
            element("div", *keys, class_="under"),
            element("table", element("thead", head), element("tbody", *_hop_rows(telling)), class_="hops"),
            class_="panel",
        ),
    )


def _hop_rows(telling: Telling) -> Iterator[Markup]:
    for hop in telling.followed.hops:
        flow = str(hop.flow.match.destination) if hop.flow else "none: dropped"
        chips = [
            element("span", name, class_="chip", title=f"{telling.interests[name].host}: {telling.interests[name].filter}")
            for name in hop.subscriptions
        ]
        yield element(
            "tr",
            element("td", element("b", hop.switch)),
            element("td", hop.came_from),
            element("td", element("code", flow)),
            element("td", ", ".join(hop.out) or "nobody"),
            element("td", *chips),
        )


def _speaker(telling: Telling) -> str:
    return next(each.who for each in telling.story.advertisements if each.host == telling.story.followed_host)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _proof(telling: Telling) -> Markup:
    verdict = telling.verdict
    flows = sum(telling.tables.values())
    words = (
        "Proved: every event that any gateway may publish reaches every host that wants it, once."
        if verdict.holds
        else "The tables do not hold."
    )
    how = (
        f"The proof cuts the whole address space where any of the {flows:,} flows, the advertisements or the subscriptions "
        "changes, and follows every piece from every publisher and from every port. Nothing is sampled. It found "
        f"{_counted(verdict.false_negatives, 'pair')} of hosts with a loss, {_counted(verdict.duplicates, 'pair')} with a "
        f"duplicate, and {_counted(verdict.loops, 'switch')[: None if verdict.loops == 1 else -1]}{'' if verdict.loops == 1 else 'es'} on a loop."
    )
    witness = [element("p", f"For example: {verdict.witness.where}.")] if verdict.witness else []
    return element(
        "section",
        element("h2", "The tables, proved"),
        element(
            "div",
            element("div", "✓" if verdict.holds else "✗", class_="seal", aria_hidden="true"),
            element("div", element("p", words, class_="words"), element("p", how, class_="note"), *witness),
            class_="panel verdict" if verdict.holds else "panel verdict broken",
        ),
    )


def _subscriptions(telling: Telling) -> Markup:
    delivered = telling.delivered
    head = element("tr", *(element("th", text) for text in ("subscription", "host", "filter", "readings received")))
    rows = [
        element(
            "tr",
            element("td", each.id),
            element("td", each.host),
            element("td", element("code", each.filter)),
            element("td", f"{delivered.matched[each.id]:,}", class_="number"),
        )
        for each in telling.story.subscriptions
    ]
    return element(
        "section",
        element("h2", "Who wants what"),
        element(
            "details",
            element("summary", f"All {len(rows)} subscriptions, and what each application received"),
            element("table", element("thead", head), element("tbody", *rows), class_="hops"),
        ),
    )


def _closing() -> Markup:
    return element(
        "footer",
        joined(
            "Made by ",
            element("code", "python -m flowsieve.demo"),
            ". The network runs in one process; every figure here was computed from what it did.",
        ),
    )
