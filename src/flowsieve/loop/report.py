"""The story as one page of HTML that needs nothing else: what it came to, and the course of it as pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flowsieve.loop.loop_verdict import LoopVerdict
from flowsieve.loop.series import Course
from flowsieve.markup import Markup, element, joined, section

if TYPE_CHECKING:
    from flowsieve.loop.story import LoopOptions

WIDTH, HEIGHT = 900.0, 260.0
LEFT, RIGHT, TOP, BOTTOM = 60.0, 15.0, 34.0, 34.0
STEPS = 4
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.1em; margin-top: 2em }
table { border-collapse: collapse } td, th { padding: .2em .9em .2em 0; text-align: left }
th { font-weight: normal; color: #777 }
svg { width: 100%; height: auto } .bad { color: #b3261e } .good { color: #2b6e3f }
"""
Point = tuple[float, float | None]
Scale = Callable[[float], float]


def page(options: LoopOptions, course: Course, verdict: LoopVerdict) -> str:
    """The page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "flowsieve: an index that learns"),
        element("style", Markup(STYLE)),
    )
    shares = [(row.at, None if row.unwanted is None else 100 * row.unwanted) for row in course.rows]
    body = element(
        "body",
        element("h1", "An index that learns"),
        element(
            "p",
            f"{len(options.topology.switches)} real switches, {options.subscriptions:,} subscriptions on "
            f"{len(options.subscribers)} hosts, {verdict.events_per_s:,.0f} events a second from "
            f"{len(options.publishers)} others. First the climate of a building varies, then its machines do.",
        ),
        section("What it came to", _table(_facts(verdict))),
        section(
            "Unwanted share of what hosts received",
            _chart("percent", shares, course, "#d1495b", 100.0),
        ),
        section(
            "Events published, and copies that hosts received, a second",
            _chart("received", [(row.at, row.received_per_s) for row in course.rows], course, "#1b6ca8"),
            _chart("published", [(row.at, row.events_per_s) for row in course.rows], course, "#555555"),
        ),
        section("Transitions", _table(_phases(verdict), ("to", "phase", "seconds", "operations", "entries"))),
        section("What the stream said", _table(_sayings(course), ("at", "index", ""))),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _facts(verdict: LoopVerdict) -> list[Sequence[str]]:
    judged = verdict.judgement
    whole = "good" if judged.holds else "bad"
    return [
        ("unwanted before the drift", _share(verdict.before)),
        ("unwanted after the drift", _share(verdict.drifted)),
        ("unwanted under the new plan", _share(verdict.after)),
        ("from the drift until it was noticed", _seconds(verdict.noticed_s)),
        ("until a plan was offered", _seconds(verdict.offered_s)),
        ("until publishers used it", _seconds(verdict.used_s)),
        ("until all was done", _seconds(verdict.in_force_s)),
        ("events published", f"{judged.published:,}"),
        ("wanted deliveries", f"{judged.wanted:,}"),
        ("lost", element("span", f"{judged.lost:,}", class_=whole)),
        ("doubled", element("span", f"{judged.doubled:,}", class_=whole)),
    ]


def _phases(verdict: LoopVerdict) -> list[Sequence[str]]:
    return [
        (f"index {way['to']}", *(f"{each[key]:,}" if key != "phase" else each[key] for key in _PHASE))
        for way in reversed(verdict.transitions)
        for each in way["phases"]
    ]


_PHASE = ("phase", "seconds", "operations", "entries")


def _sayings(course: Course) -> list[Sequence[str]]:
    """Each thing that the stream said, when that was first seen."""
    said: dict[str, Sequence[str]] = {}
    for row in course.rows:
        said.setdefault(row.stream, (f"{row.at:.0f} s", str(row.index), row.stream))
    return list(said.values())


def _table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> Markup:
    lines = [element("tr", *(element("td", cell) for cell in row)) for row in rows]
    top = [element("tr", *(element("th", title) for title in head))] if head else []
    return element("table", *top, *lines)


# Pictures.


def _chart(
    name: str, points: Sequence[Point], course: Course, colour: str, top: float | None = None
) -> Markup:
    """A line over time, with the moments that matter; a gap where nothing is known."""
    end = max((at for at, _ in points), default=1.0) or 1.0
    high = top or 1.15 * max((value for _, value in points if value is not None), default=1.0) or 1.0

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, at / end))

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / high

    parts = [*_grid(high, y), *_under_way(course, end, x), _line(points, x, y, colour)]
    for number, (what, at) in enumerate(_moments(course)):
        parts.append(
            element(
                "line", x1=x(at), x2=x(at), y1=TOP, y2=HEIGHT - BOTTOM, stroke="#333", stroke_dasharray="4 3"
            )
        )
        parts.append(_text(x(at) + 3, TOP - 4 - 12 * (number % 2), what, "start"))
    seconds = range(0, int(end) + 1, max(5, 5 * round(end / 60)))
    parts += [_text(x(at), HEIGHT - BOTTOM + 16, f"{at} s", "middle") for at in seconds]
    parts.append(_text(LEFT, HEIGHT - 4, name, "start"))
    box = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return element("svg", *parts, viewBox=box, role="img", aria_label=name, font_size="11")


def _grid(high: float, y: Scale) -> list[Markup]:
    parts = []
    for step in range(STEPS + 1):
        value = high * step / STEPS
        at = y(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, stroke="#ddd"))
        parts.append(_text(LEFT - 6, at + 4, f"{value:,.0f}", "end"))
    return parts


def _under_way(course: Course, end: float, x: Scale) -> list[Markup]:
    """A shade where the network went over to another index, phase by phase."""
    parts = []
    until = [at for at, _ in course.phases[1:]] + [end]
    for (begin, phase), over in zip(course.phases, until, strict=True):
        if phase is not None:
            left, right = x(begin), x(over)
            shade = element(
                "rect",
                element("title", f"{phase}: {over - begin:.1f} s"),
                x=left,
                width=max(1.0, right - left),
                y=TOP,
                height=HEIGHT - TOP - BOTTOM,
                fill="#f2c14e",
                opacity="0.45",
            )
            parts.append(shade)
    return parts


def _line(points: Sequence[Point], x: Scale, y: Scale, colour: str) -> Markup:
    words, pen = [], "M"
    for at, value in points:
        if value is None:
            pen = "M"
            continue
        words.append(f"{pen}{x(at):.1f} {y(value):.1f}")
        pen = "L"
    return element("path", d="".join(words), fill="none", stroke=colour, stroke_width="2")


def _moments(course: Course) -> list[tuple[str, float]]:
    names = {"drift": "drift", "noticed": "noticed", "offered": "offered", "arrived": "in force"}
    return sorted(
        ((text, course.moments[name]) for name, text in names.items() if name in course.moments),
        key=lambda each: each[1],
    )


def _text(x: float, y: float, words: str, anchor: str) -> Markup:
    return element("text", joined(words), x=x, y=y, text_anchor=anchor, fill="#555")


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f} s"
