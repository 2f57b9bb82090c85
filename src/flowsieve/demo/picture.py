"""A network as a picture: links as wide and as dark as their load, switches with the size of their tables."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from flowsieve.demo.layout import Layout, Point, lay_out
from flowsieve.demo.markup import Markup, element, joined
from flowsieve.network.topology import Topology

Way = tuple[str, str]  # from one end of a link to the other
STEPS = 7  # colours of the scale; a style sheet has .load1 to .load7
THINNEST, WIDEST = 1.2, 9.0
SWITCH_WIDTH, SWITCH_HEIGHT = 48.0, 34.0
HOST_RADIUS = 7.0


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
        """Round numbers at which the legend says what a colour means."""
        found = [0]
        unit = 10 ** max(0, len(str(self.top)) - 3)
        for factor in (1, 5, 10, 20, 50, 100, 200, 500):
            last = found[-1]
            if factor * unit <= self.top and self.share(factor * unit) - self.share(last) > 0.11:
                found.append(factor * unit)
        return found


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
    parts = [
        element("title", title),
        *_blocks(layout),
        *(() if small else _layer_names(layout)),
        *_wires(topology, layout, marks.way),
        *_lanes(topology, layout, loads, scale, small=small),
        *_highlights(layout, marks.way),
        *_switches(topology, layout, tables or {}, marks.way, small=small),
        *_hosts(topology, layout, loads, marks, small=small),
    ]
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {layout.width:.0f} {layout.height:.0f}",
        class_="network small" if small else "network tracing" if marks.way else "network",
        role="img",
        aria_label=title,
    )


def legend(scale: Scale, width: float = 340.0) -> Markup:
    """A wedge that grows and darkens as the links do, with the packets that it stands for."""
    left, thick = 6.0, 1.6
    full = width - 2 * left - 30
    ends = [(left + full * step / STEPS, thick * scale_width(step / STEPS)) for step in range(STEPS + 1)]
    middle = 12.0
    wedge = [
        element(
            "polygon",
            points=f"{x:.1f},{middle - w / 2:.1f} {x2:.1f},{middle - w2 / 2:.1f} {x2:.1f},{middle + w2 / 2:.1f} {x:.1f},{middle + w / 2:.1f}",
            class_=f"load{step}",
        )
        for step, ((x, w), (x2, w2)) in enumerate(zip(ends, ends[1:], strict=False), 1)
    ]
    labels = [
        element("text", f"{tick:,}", x=left + full * scale.share(tick), y=36.0, class_="tick")
        for tick in scale.ticks()
    ]
    return element(
        "svg", *wedge, *labels, viewBox=f"0 0 {width:.0f} 42", width=width, height=42, class_="legend",
        role="img", aria_label=f"the scale of link loads, from 0 to {scale.top:,} packets",
    )  # fmt: skip


def scale_width(share: float) -> float:
    return THINNEST + (WIDEST - THINNEST) * share


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


def _layer_names(layout: Layout) -> Iterator[Markup]:
    for name, y in layout.layers:
        yield element("text", name, x=4.0, y=y - SWITCH_HEIGHT / 2 - 20, class_="layer")


def _links(topology: Topology) -> Iterable[Way]:
    return chain(((link.a, link.b) for link in topology.links), ((s, h) for h, s in topology.hosts.items()))


def _wires(topology: Topology, layout: Layout, way: Collection[Way]) -> Iterator[Markup]:
    """All links, whether they carry something or not."""
    for a, b in _links(topology):
        (x, y), (x2, y2) = layout.at[a], layout.at[b]
        yield element("line", x1=x, y1=y, x2=x2, y2=y2, class_="wire")


def _lanes(
    topology: Topology, layout: Layout, loads: Mapping[Way, int], scale: Scale, *, small: bool
) -> Iterator[Markup]:
    """The loads: each link has a lane per direction, and traffic keeps to the right. Busy ones lie on top."""
    ways = [way for a, b in _links(topology) for way in ((a, b), (b, a)) if loads.get(way)]
    for way in sorted(ways, key=lambda way: loads[way]):
        packets = loads[way]
        width = scale.width(packets)
        (x, y), (x2, y2) = _beside(layout.at[way[0]], layout.at[way[1]], width / 2 + 0.4)
        line = {"x1": x, "y1": y, "x2": x2, "y2": y2}
        lane = element("line", **line, class_=f"lane load{scale.step(packets)}", stroke_width=width)
        if small:
            yield lane
            continue
        tip = element("title", f"{way[0]} → {way[1]}: {packets:,} packets")
        yield element("g", tip, lane, element("line", **line, class_="touch"), class_="way")


def _beside(start: Point, end: Point, offset: float) -> tuple[Point, Point]:
    """The same line, further to the right as one goes from its start to its end."""
    (x, y), (x2, y2) = start, end
    length = math.hypot(x2 - x, y2 - y) or 1.0
    dx, dy = -(y2 - y) / length * offset, (x2 - x) / length * offset
    return (x + dx, y + dy), (x2 + dx, y2 + dy)


def _highlights(layout: Layout, way: Collection[Way]) -> Iterator[Markup]:
    for a, b in sorted(way):
        (x, y), (x2, y2) = layout.at[a], layout.at[b]
        line = {"x1": x, "y1": y, "x2": x2, "y2": y2}
        tip = element("title", f"{a} → {b}")
        yield element("g", tip, element("line", **line, class_="trace"), element("line", **line, class_="pulse"))


def _switches(
    topology: Topology, layout: Layout, tables: Mapping[str, int], way: Collection[Way], *, small: bool
) -> Iterator[Markup]:
    met = {end for step in way for end in step}
    fullest = max(tables.values(), default=0) or 1
    for switch in topology.switches:
        x, y = layout.at[switch]
        box = element(
            "rect",
            x=x - SWITCH_WIDTH / 2,
            y=y - SWITCH_HEIGHT / 2,
            width=SWITCH_WIDTH,
            height=SWITCH_HEIGHT,
            rx=6,
        )
        if small:
            yield element("g", box, class_="switch")
            continue
        inside = [element("title", switch), box]
        if switch in tables:
            entries = tables[switch]
            inside = [
                element("title", f"switch {switch}: {entries:,} flows"),
                box,
                element("text", f"{entries:,}", x=x, y=y + 9, class_="entries"),
                element(
                    "rect",
                    x=x - SWITCH_WIDTH / 2 + 6,
                    y=y + SWITCH_HEIGHT / 2 - 5,
                    width=(SWITCH_WIDTH - 12) * entries / fullest,
                    height=2.5,
                    class_="fill",
                ),
            ]
        name = element("text", switch, x=x, y=y - 3 if switch in tables else y + 4, class_="name")
        yield element("g", *inside, name, class_="switch met" if switch in met else "switch")


def _hosts(
    topology: Topology, layout: Layout, loads: Mapping[Way, int], marks: Marks, *, small: bool
) -> Iterator[Markup]:
    for host, switch in topology.hosts.items():
        x, y = layout.at[host]
        role = marks.roles.get(host, "")
        shape = (
            element("rect", x=x - HOST_RADIUS, y=y - HOST_RADIUS, width=2 * HOST_RADIUS, height=2 * HOST_RADIUS, rx=2.5)
            if role in SQUARE_ROLES
            else element("circle", cx=x, cy=y, r=HOST_RADIUS)
        )
        if small:
            yield element("g", shape, class_=f"host {role}".strip())
            continue
        received, sent = loads.get((switch, host), 0), loads.get((host, switch), 0)
        tip = f"host {host}" + (f" ({role})" if role else "")
        if loads:
            tip += f": {received:,} packets in, {sent:,} out"
        away = math.copysign(HOST_RADIUS + 13, y - layout.at[switch][1] + 0.001)
        label = element("text", host, x=x, y=y + (away if away > 0 else away + 9), class_="name")
        yield element("g", element("title", tip), shape, label, class_=f"host {role}".strip())


SQUARE_ROLES = frozenset({"publisher", "broker"})  # told by shape as well as by colour
