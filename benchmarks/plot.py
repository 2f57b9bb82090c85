"""Lines over a plane as an SVG picture: what a figure of measurements needs, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 60
COLOURS = ("#1b6ca8", "#d1495b", "#3c896d", "#8d6a9f", "#c98a1b", "#555555")
STEPS = 5  # on the upright axis
Line = Sequence[tuple[float, float]]


def line_plot(title: str, across: str, upright: str, lines: Mapping[str, Line]) -> str:
    """A picture with a line per name; both axes begin at nought."""
    points = [point for line in lines.values() for point in line]
    right, top = max(x for x, _ in points), _round_up(max(y for _, y in points))

    def at(x: float, y: float) -> tuple[float, float]:
        inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        return LEFT + inner_width * x / right, HEIGHT - BOTTOM - inner_height * y / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, title, 15),
        _text(WIDTH / 2, HEIGHT - 14, across, 12),
        f'<text font-size="12" text-anchor="middle" transform="translate(16 {HEIGHT / 2}) rotate(-90)">'
        f"{escape(upright)}</text>",
    ]
    for step in range(STEPS + 1):
        x, y = at(0, top * step / STEPS)
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        parts.append(_text(x - 8, y + 4, f"{top * step / STEPS:,g}", 11, "end"))
    wide, high = 36 + 6.2 * max(map(len, lines)), 16 * len(lines) + 4
    parts.append(f'<rect x="{LEFT + 4}" y="{TOP - 8}" width="{wide:.0f}" height="{high}" fill="white"/>')
    last = -WIDTH * 1.0
    for value in sorted({x for x, _ in points}):
        x, y = at(value, 0)
        if x - last >= 40:  # room for a number
            parts.append(_text(x, y + 18, f"{value:,g}", 11))
            last = x
    for (name, line), (number, colour) in zip(lines.items(), enumerate(COLOURS), strict=False):
        places = [at(*point) for point in line]
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="M{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = TOP + 6 + 16 * number
        parts.append(f'<rect x="{LEFT + 10}" y="{y - 8}" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(LEFT + 30, y - 2, name, 11, "start"))
    return "\n".join([*parts, "</svg>\n"])


def _text(x: float, y: float, words: str, size: int, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def _round_up(value: float) -> float:
    """The next number that divides well, with room above for the names."""
    value *= 1.25
    size = 10.0 ** (len(f"{int(value)}") - 1)
    return next(step * size for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * size >= value)
