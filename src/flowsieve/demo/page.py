"""The demo as one page of HTML that needs nothing else, neither files nor a network."""

from __future__ import annotations

from importlib.resources import files

from flowsieve.demo.carried_view import comparison, networks
from flowsieve.demo.charts import table
from flowsieve.demo.layout import lay_out
from flowsieve.demo.reason_view import followed, installed, proof
from flowsieve.demo.telling import BROADCAST, BROKER, SIEVE, Telling
from flowsieve.markup import Markup, element, section


def render(telling: Telling) -> str:
    """The page."""
    layout = lay_out(telling.story.topology)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "flowsieve: what the network did not carry"),
        element("style", resource("page.css")),
    )
    body = element(
        "body",
        _opening(telling),
        networks(telling, layout),
        comparison(telling),
        installed(telling, layout),
        followed(telling, layout),
        proof(telling),
        _subscriptions(telling),
        _closing(),
        element("div", id="tip"),
        element("script", resource("page.js")),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def resource(name: str) -> Markup:
    """A style sheet or script that stands beside this module, as a part of a page."""
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _opening(telling: Telling) -> Markup:
    story, delivered = telling.story, telling.delivered
    readers = len({each.host for each in story.subscriptions})
    return element(
        "header",
        element("span", "flowsieve", class_="mark"),
        element("h1", "A network that carries what somebody wants"),
        element(
            "p",
            f"{len(story.advertisements)} gateways of a building publish what its sensors read. ",
            f"On {readers} hosts, {len(story.subscriptions)} subscriptions say what is wanted, in filters ",
            "such as ",
            element("code", story.subscriptions[1].filter),
            ". A controller has turned these filters into the flow tables of the switches, which now send ",
            f"each reading where it is wanted. Of {delivered.events:,} readings, ",
            element("b", f"{delivered.unheard:,} interest nobody"),
            ".",
            class_="lead",
        ),
        _tiles(telling),
    )


def _tiles(telling: Telling) -> Markup:
    """The four figures that matter most."""
    delivered, ways = telling.delivered, telling.ways
    whole = not (delivered.lost or delivered.doubled)
    arrived, wanted = delivered.wanted - delivered.lost, delivered.wanted
    unwanted = delivered.unwanted / max(1, delivered.copies)
    fewer = {
        name: f"{1 - ways[SIEVE].between_switches / max(1, way.between_switches):.0%} fewer"
        for name, way in ways.items()
    }
    return element(
        "div",
        _tile(f"{arrived:,}", f"of {wanted:,} wanted copies arrived{', each once' if whole else ''}", whole),
        _tile(fewer[BROADCAST], "packets between switches than by broadcast"),
        _tile(fewer[BROKER], "packets between switches than with a central broker"),
        _tile(f"{unwanted:.1%}", "of what arrived was unwanted; the client library drops it"),
        class_="tiles",
    )


def _tile(figure: str, means: str, good: bool = True) -> Markup:
    return element(
        "div",
        element("span", figure, class_="figure good" if good else "figure bad"),
        element("span", means, class_="means"),
        class_="tile",
    )


def _subscriptions(telling: Telling) -> Markup:
    matched = telling.delivered.matched
    rows = [
        (each.id, each.host, element("code", each.filter), f"{matched[each.id]:,}")
        for each in telling.story.subscriptions
    ]
    return section(
        "Who wants what",
        element(
            "details",
            element("summary", f"All {len(rows)} subscriptions, and what each application received"),
            table(("subscription", "host", "filter", "readings received"), rows),
        ),
    )


def _closing() -> Markup:
    return element(
        "footer",
        "Made by ",
        element("code", "python -m flowsieve.demo"),
        ". The network runs in one process; every figure here was computed from what it did.",
    )
