"""The part of the page that says why: what is installed, the way of one event, and the proof."""

from __future__ import annotations

from collections.abc import Iterator

from flowsieve.demo.charts import columns, table
from flowsieve.demo.layout import Layout
from flowsieve.demo.picture import Marks, Scale, draw, host_key
from flowsieve.demo.telling import Telling
from flowsieve.markup import Markup, element, section


def installed(telling: Telling, layout: Layout) -> Markup:
    """The sizes of the tables, layer by layer."""
    tables, state = telling.tables, telling.pubsub.state
    rows = [[s for s in tables if layout.at[s][1] == y] for _, y in reversed(layout.layers)] or [list(tables)]
    return section(
        "What is installed",
        element(
            "p",
            f"{sum(tables.values()):,} flows in {len(tables)} switches, {max(tables.values()):,} in the ",
            f"fullest. A filter becomes at most {state.settings.budget} address prefixes; readings of the ",
            f"day before told where to spend these. {len(state.trees)} trees share the links.",
        ),
        element("div", columns([{switch: tables[switch] for switch in row} for row in rows]), class_="panel"),
    )


def followed(telling: Telling, layout: Layout) -> Markup:
    """One event on its way, as a picture and hop by hop."""
    story, found = telling.story, telling.followed
    wanted = {telling.interests[name].host for name in found.matches}
    roles = {host: "reader" if host in wanted else "unwanted" for host in found.delivered}
    roles[story.followed_host] = "publisher"
    way = {(hop.came_from, hop.switch) for hop in found.hops}
    way |= {(hop.switch, to) for hop in found.hops for to in hop.out}
    event = ", ".join(f"{name} = {value!r}" for name, value in story.followed.items())
    keys = [host_key("publisher", "publishes it"), host_key("reader", "receives it and wants it")]
    if "unwanted" in roles.values():
        keys.append(host_key("unwanted", "receives it and does not want it: the library drops it"))
    return section(
        "One reading, hop by hop",
        element(
            "p",
            f"{story.followed_host}, the {telling.speaker}, publishes ",
            element("code", event),
            f". It goes to {len(found.delivered)} hosts and matches {len(found.matches)} subscriptions; ",
            "every other link stays silent.",
        ),
        element(
            "div",
            draw(
                story.topology,
                {},
                Scale(0),
                title="the way of one event through the network",
                marks=Marks(roles, frozenset(way)),
                layout=layout,
            ),
            element("div", *keys, class_="under"),
            table(("at", "from", "flow that it meets", "sent to", "because of"), _hops(telling)),
            class_="panel",
        ),
    )


def _hops(telling: Telling) -> Iterator[tuple[Markup | str, ...]]:
    for hop in telling.followed.hops:
        flow = str(hop.flow.match) if hop.flow else "none: dropped"
        yield (
            element("b", hop.switch),
            hop.came_from,
            element("code", flow),
            ", ".join(hop.out) or "nobody",
            element("span", *(_chip(telling, name) for name in hop.subscriptions)),
        )


def _chip(telling: Telling, name: str) -> Markup:
    """A subscription, which says what it wants when one points at it."""
    wish = telling.interests[name]
    return element("span", name, class_="chip", title=f"{wish.host} wants {wish.filter}")


def proof(telling: Telling) -> Markup:
    """The verdict on the tables."""
    verdict = telling.verdict
    if verdict.holds:
        seal, words = (
            "✓",
            "Proved: every event that a gateway may publish reaches every host that wants it, once.",
        )
        found = "no loss, no duplicate and no loop"
    else:
        seal, words = "✗", "The tables do not hold."
        found = (
            f"{verdict.false_negatives} losses, {verdict.duplicates} duplicates, {verdict.loops} switches "
            f"on a loop and {verdict.strays} entries that lead nowhere"
        )
    how = element(
        "p",
        f"The proof cuts the whole address space where one of the {sum(telling.tables.values()):,} flows, ",
        "an advertisement or a subscription begins or ends, and follows every piece from every publisher ",
        f"and from every port. Nothing is sampled. It found {found}.",
        class_="note",
    )
    witness = [element("p", f"For example: {verdict.witness.where}.")] if verdict.witness else []
    return section(
        "The tables, proved",
        element(
            "div",
            element("div", seal, class_="seal", aria_hidden="true"),
            element("div", element("p", words, class_="words"), how, *witness),
            class_="panel verdict" if verdict.holds else "panel verdict broken",
        ),
    )
