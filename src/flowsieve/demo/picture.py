"""A network as a picture: links as wide and as dark as their load, switches with the size of their tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from flowsieve.demo.layout import Layout, Point, lay_out
from flowsieve.markup import Markup, element
from flowsieve.network.topology import Topology

Way = tuple[str, str]  # from one end of a link to the other
STEPS = 7  # colours of the scale; a style sheet has .load1 to .load7
THINNEST, WIDEST = 1.2, 9.0
SWITCH_WIDTH, SWITCH_HEIGHT = 48.0, 34.0
HOST_RADIUS = 7.0
LEGEND_GAP = 0.14  # between two numbers, as a share of the legend
SQUARE_ROLES = frozenset({"publisher", "broker"})  # told by their shape as well as by their colour


@dataclass(frozen=True, slots=True)
class Scale:
    """From packets to width and colour; pictures that are to be compared share one.

    Both grow with the root of the load, so that small loads can still be told apart.
    """

    top: int

    @classmethod
    def over(cls, *loads: Mapping[Way, int]) -> Scale:
        return cls(max(chain.from_iterable(each.values() for each in loads), default=0))

    def share(self, packets: float) -> float:
        return math.sqrt(packets / self.top) if self.top else 0.0

    def width(self, packets: float) -> float:
        return THINNEST + (WIDEST - THINNEST) * self.share(packets)

    def step(self, packets: float) -> int:
        """The colour of a load, 1 to STEPS."""
        return min(STEPS, 1 + int(STEPS * self.share(packets)))

    def ticks(self) -> list[int]:
        """Round numbers at which a legend says what a colour means, and the top."""
        found = [0]
        for power in range(len(str(self.top))):
            for tick in (10**power, 2 * 10**power, 5 * 10**power):
                if min(self.share(tick) - self.share(found[-1]), 1 - self.share(tick)) > LEGEND_GAP:
                    found.append(tick)
        return [*found, self.top] if self.top else found


@dataclass(frozen=True, slots=True)
class Marks:
    """What a picture brings out: the roles of hosts (class names), and a way through the network."""

    roles: Mapping[str, str]
    way: frozenset[Way] = frozenset()


def draw(
    topology: Topology,
    loads: Mapping[Way, int],
    scale: Scale,
    *,
    title: str,
    tables: Mapping[str, int] | None = None,
    marks: Marks | None = None,
    layout: Layout | None = None,
    small: bool = False,
) -> Markup:
    """The network with packets per directed link, and entries per switch; a small one has no text."""
    layout = layout or lay_out(topology)
    marks = marks or Marks({})
    met = {end for step in marks.way for end in step}
    parts = [
        element("title", title),
        *_blocks(layout),
        *(() if small else _layer_names(topology, layout)),
        *_wires(topology, layout),
        *_lanes(topology, layout, loads, scale, small=small),
        *_highlights(layout, marks.way),
        *_switches(topology, layout, tables or {}, met, small=small),
        *_hosts(topology, layout, loads, marks.roles, met, small=small),
    ]
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {layout.width:.0f} {layout.height:.0f}",
        class_="network small" if small else "network tracing" if marks.way else "network",
        role="img",
        aria_label=title,
    )


def legend(scale: Scale, width: float = 360.0) -> Markup:
    """A wedge that grows and darkens as the links do, with the packets that it stands for."""
    start, end, middle = 8.0, width - 24, 12.0
    places = [start + (end - start) * step / STEPS for step in range(STEPS + 1)]
    halves = [0.8 * scale.width(scale.top * (step / STEPS) ** 2) for step in range(STEPS + 1)]
    wedge = [
        element(
            "polygon",
            points=" ".join(
                f"{x:.1f},{middle + y:.1f}"
                for x, y in ((left, -thin), (right, -thick), (right, thick), (left, thin))
            ),
            class_=f"load{step}",
        )
        for step, (left, right, thin, thick) in enumerate(
            zip(places, places[1:], halves, halves[1:], strict=False), 1
        )
    ]
    labels = [
        element("text", f"{tick:,}", x=start + (end - start) * scale.share(tick), y=37.0, class_="tick")
        for tick in scale.ticks()
    ]
    return element(
        "svg",
        *wedge,
        *labels,
        viewBox=f"0 0 {width:.0f} 42",
        width=width,
        height=42,
        class_="legend",
        role="img",
        aria_label=f"the scale of link loads, from 0 to {scale.top:,} packets",
    )


def _blocks(layout: Layout) -> Iterator[Markup]:
    """A ground under switches that belong together."""
    if len(layout.blocks) < 2:
        return
    for block in layout.blocks:
        if len(block) < 2:
            continue
        xs, ys = zip(*(layout.at[switch] for switch in block), strict=True)
        side, above = SWITCH_WIDTH / 2 + 16, SWITCH_HEIGHT / 2 + 14
        yield element(
            "rect",
            x=min(xs) - side,
            y=min(ys) - above,
            width=max(xs) - min(xs) + 2 * side,
            height=max(ys) - min(ys) + 2 * above,
            rx=14,
            class_="block",
        )


def _layer_names(topology: Topology, layout: Layout) -> Iterator[Markup]:
    """What the rows are, if there are rows."""
    rows = list(layout.layers)
    if rows:
        rows.append(("hosts", layout.at[next(iter(topology.hosts))][1]))
    for name, y in rows:
        yield element("text", name, x=0.0, y=y + 4, class_="layer")


def _links(topology: Topology) -> Iterable[Way]:
    return chain(((link.a, link.b) for link in topology.links), ((s, h) for h, s in topology.hosts.items()))


def _wires(topology: Topology, layout: Layout) -> Iterator[Markup]:
    """All links, whether they carry something or not."""
    for a, b in _links(topology):
        yield _line(layout.at[a], layout.at[b], class_="wire")


def _lanes(
    topology: Topology, layout: Layout, loads: Mapping[Way, int], scale: Scale, *, small: bool
) -> Iterator[Markup]:
    """The loads: each link has a lane per direction, and traffic keeps to the right. Busy ones lie on top."""
    ways = [way for a, b in _links(topology) for way in ((a, b), (b, a)) if loads.get(way)]
    for way in sorted(ways, key=lambda way: loads[way]):
        packets = loads[way]
        width = scale.width(packets)
        ends = _beside(layout.at[way[0]], layout.at[way[1]], width / 2 + 0.4)
        lane = _line(*ends, class_=f"lane load{scale.step(packets)}", stroke_width=width)
        if small:
            yield lane
            continue
        tip = element("title", f"{way[0]} → {way[1]}: {packets:,} packets")
        yield element("g", tip, lane, _line(*ends, class_="touch"), class_="way")


def _line(start: Point, end: Point, **attributes: object) -> Markup:
    (x, y), (x2, y2) = start, end
    return element("line", x1=x, y1=y, x2=x2, y2=y2, **attributes)


def _beside(start: Point, end: Point, offset: float) -> tuple[Point, Point]:
    """The same line, further to the right as one goes from its start to its end."""
    (x, y), (x2, y2) = start, end
    length = math.hypot(x2 - x, y2 - y) or 1.0
    dx, dy = -(y2 - y) / length * offset, (x2 - x) / length * offset
    return (x + dx, y + dy), (x2 + dx, y2 + dy)


def _highlights(layout: Layout, way: Collection[Way]) -> Iterator[Markup]:
    for a, b in sorted(way):
        tip, ends = element("title", f"{a} → {b}"), (layout.at[a], layout.at[b])
        yield element("g", tip, _line(*ends, class_="trace"), _line(*ends, class_="pulse"))


def _switches(
    topology: Topology, layout: Layout, tables: Mapping[str, int], met: Collection[str], *, small: bool
) -> Iterator[Markup]:
    fullest = max(tables.values(), default=0) or 1
    for switch in topology.switches:
        x, y = layout.at[switch]
        left, top = x - SWITCH_WIDTH / 2, y - SWITCH_HEIGHT / 2
        box = element("rect", x=left, y=top, width=SWITCH_WIDTH, height=SWITCH_HEIGHT, rx=6)
        if small:
            yield element("g", box, class_="switch")
            continue
        entries = tables.get(switch)
        tip = f"switch {switch}" if entries is None else f"switch {switch}: {entries:,} flows"
        inside = [element("title", tip), box]
        if entries is not None:
            full = (SWITCH_WIDTH - 12) * entries / fullest
            inside += [
                element("text", f"{entries:,}", x=x, y=y + 9, class_="entries"),
                element("rect", x=left + 6, y=top + SWITCH_HEIGHT - 5, width=full, height=2.5, class_="fill"),
            ]
        name = element("text", switch, x=x, y=y + 4 if entries is None else y - 3, class_="name")
        yield element("g", *inside, name, class_="switch met" if switch in met else "switch")


def _hosts(
    topology: Topology,
    layout: Layout,
    loads: Mapping[Way, int],
    roles: Mapping[str, str],
    met: Collection[str],
    *,
    small: bool,
) -> Iterator[Markup]:
    for host, switch in topology.hosts.items():
        x, y = layout.at[host]
        role = roles.get(host, "")
        kind = " ".join(filter(None, ("host", role, "met" if host in met else "")))
        if small:
            yield element("g", host_sign(x, y, role), class_=kind)
            continue
        tip = f"host {host}, {role}" if role else f"host {host}"
        if loads:
            tip += f": {loads.get((switch, host), 0):,} packets in, {loads.get((host, switch), 0):,} out"
        below = y >= layout.at[switch][1]
        label = element(
            "text", host, x=x, y=y + (HOST_RADIUS + 13 if below else -HOST_RADIUS - 5), class_="name"
        )
        yield element("g", element("title", tip), host_sign(x, y, role), label, class_=kind)


def host_sign(x: float, y: float, role: str, radius: float = HOST_RADIUS) -> Markup:
    """How a host is drawn: a circle, or a square for those that send."""
    if role in SQUARE_ROLES:
        return element("rect", x=x - radius, y=y - radius, width=2 * radius, height=2 * radius, rx=2.5)
    return element("circle", cx=x, cy=y, r=radius)


def host_key(role: str, means: str) -> Markup:
    """A host's sign for a legend, and what it means."""
    sign = element(
        "svg",
        element("g", host_sign(8.0, 8.0, role, radius=6.0), class_=f"host {role}".strip()),
        width=16,
        height=16,
        aria_hidden="true",
    )
    return element("span", sign, element("span", means), class_="key")
