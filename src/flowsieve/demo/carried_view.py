"""The part of the page that shows what was carried, and what would have been: pictures and bars."""

from __future__ import annotations

from collections.abc import Callable

from flowsieve.demo.charts import bars
from flowsieve.demo.compare import Carried
from flowsieve.demo.layout import Layout
from flowsieve.demo.picture import Marks, Scale, draw, host_key, legend
from flowsieve.demo.telling import BROADCAST, BROKER, SIEVE, Telling
from flowsieve.markup import Markup, element, section

MEANING = {
    SIEVE: "switches drop what nobody behind a link wants",
    BROADCAST: "every event goes to every host, on the same trees",
    BROKER: "every event goes to one host, which sends a copy to each host that wants it",
}

FIGURES: tuple[tuple[str, Callable[[Carried], float], str], ...] = (
    ("Packets between switches", lambda way: way.between_switches, "{:,.0f}"),
    ("Bytes into hosts", lambda way: way.bytes_into_hosts / 1e6, "{:,.1f} MB"),
    ("Packets on the busiest link", lambda way: way.busiest[1], "{:,.0f}"),
    ("Links between switches from publisher to subscriber, on average", lambda way: way.hops, "{:.2f}"),
)


def networks(telling: Telling, layout: Layout) -> Markup:
    """The three ways: a small picture each to choose from, and the chosen one in full."""
    ways = telling.ways
    scale = Scale.over(*(way.packets for way in ways.values()))
    inputs, tabs, views = [], [], []
    for number, (name, way) in enumerate(ways.items()):
        checked = "checked" if number == 0 else None
        inputs.append(
            element("input", type="radio", name="way", id=f"way{number}", aria_label=name, checked=checked)
        )
        tabs.append(_tab(telling, name, way, number, scale, layout))
        views.append(_view(telling, name, way, number, scale, layout))
    return section(
        "The same readings, carried in three ways",
        element(
            "p",
            f"Each picture is the same network, {telling.story.topology}, and all have the same scale. "
            "Choose one to see it in full; point at a link, a switch or a host for its figures.",
            class_="note",
        ),
        element("div", *inputs, element("div", *tabs, class_="tabs"), *views, class_="ways"),
    )


def _marks(telling: Telling, name: str) -> Marks:
    roles = {each.host: "publisher" for each in telling.story.advertisements}
    return Marks(roles | ({telling.broker: "broker"} if name == BROKER else {}))


def _tab(telling: Telling, name: str, way: Carried, number: int, scale: Scale, layout: Layout) -> Markup:
    total = element("span", f"{way.between_switches:,}", class_="total")
    return element(
        "label",
        element("span", element("span", name), total, class_="title"),
        element("span", "packets between switches", class_="unit"),
        draw(
            telling.story.topology,
            way.packets,
            scale,
            title=name,
            marks=_marks(telling, name),
            layout=layout,
            small=True,
        ),
        for_=f"way{number}",
        class_=f"tab{number}",
    )


def _view(telling: Telling, name: str, way: Carried, number: int, scale: Scale, layout: Layout) -> Markup:
    keys = [
        element("span", "packets on a link and direction (keep right)"),
        host_key("publisher", "gateway"),
        host_key("", "subscriber"),
    ]
    if name == BROKER:
        keys.append(host_key("broker", f"the broker, on {telling.broker}"))
    if name == SIEVE:
        keys.append(element("span", "in a switch: its flows"))
    return element(
        "div",
        element("h3", f"{name[0].upper()}{name[1:]}: {MEANING[name]}"),
        draw(
            telling.story.topology,
            way.packets,
            scale,
            title=f"{name}: {MEANING[name]}",
            tables=telling.tables if name == SIEVE else None,
            marks=_marks(telling, name),
            layout=layout,
        ),
        element("div", legend(scale), *keys, class_="under"),
        class_=f"view view{number} panel",
    )


def comparison(telling: Telling) -> Markup:
    """The three ways in figures."""
    ways = telling.ways
    charts = [
        bars(title, {name: figure(way) for name, way in ways.items()}, own=SIEVE, form=form)
        for title, figure, form in FIGURES
    ]
    return section(
        "What the network did not carry",
        element("div", *(element("div", chart, class_="panel") for chart in charts), class_="charts"),
        element(
            "p",
            "The others are counted in their favour. Broadcast skips branches without hosts. The broker ",
            f"stands on the host where it makes for the fewest packets ({telling.broker}), uses shortest ",
            "paths, filters exactly, and sends nothing to itself. A packet is an event as JSON behind ",
            "Ethernet, IPv6 and UDP headers.",
            class_="note",
        ),
    )
