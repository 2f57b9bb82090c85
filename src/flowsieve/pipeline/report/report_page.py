"""A report as one page that needs nothing else: no network, no script, images inside."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from flowsieve.pipeline.report.sweeps import Measured

STYLE = """
:root { --ink: #22252b; --soft: #6b7280; --line: #e5e7eb; --accent: #0072b2; }
body { margin: 0 auto; padding: 40px 28px 64px; max-width: 1080px; color: var(--ink); background: #fff;
  font: 16px/1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
h1 { font-size: 32px; line-height: 1.2; letter-spacing: -0.02em; margin: 0 0 8px; }
h2 { font-size: 21px; margin: 44px 0 6px; letter-spacing: -0.01em; }
.lead { font-size: 18px; color: var(--soft); max-width: 44em; margin: 0; }
.lead b { color: var(--ink); }
p { max-width: 48em; margin: 0 0 12px; }
.note { color: var(--soft); font-size: 14px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 15px; margin: 10px 0; }
th { text-align: right; font-weight: 500; color: var(--soft); padding: 6px 22px 6px 0; 
  border-bottom: 1px solid var(--line); white-space: nowrap; }
td { text-align: right; padding: 7px 22px 7px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
tr.best td { font-weight: 650; color: var(--accent); }
figure { margin: 18px 0 0; }
img { display: block; width: 100%; height: auto; max-width: 860px; }
figcaption { color: var(--soft); font-size: 14px; max-width: 52em; margin-top: 4px; }
"""
HEAD = (
    "plan",
    "kind",
    "bits",
    "dimensions",
    "false positives",
    "rate",
    "deliveries",
    "matches",
    "entries",
    "most of one",
)


@dataclass(frozen=True)
class Shown:
    """A figure of the page: a PNG, its file, a title and an explanation."""

    file: str
    heading: str
    caption: str
    png: bytes


def page(plans: Sequence[Measured], figures: Sequence[Shown], facts: Sequence[str]) -> str:
    """The whole page; `facts` say what was measured on what."""
    body = [
        "<h1>What the plans are worth</h1>",
        f'<p class="lead">{_lead(plans)}</p>',
        "<h2>The plans</h2>",
        f'<div class="wide">{_table(plans)}</div>',
        *(f'<p class="note">{escape(fact)}</p>' for fact in facts),
        *(_figure(figure) for figure in figures),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>flowsieve: what the plans are worth</title><style>{STYLE}</style></head>\n"
        "<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _best(plans: Sequence[Measured]) -> Measured | None:
    return min(plans, key=lambda found: (found.fpr, found.prefixes), default=None)


def _lead(plans: Sequence[Measured]) -> str:
    best = _best(plans)
    if best is None:
        return "No plan was measured."
    said = (
        f"With <b>{escape(best.label)}</b>, <b>{best.fpr:.1%}</b> of what subscriptions are sent is unwanted: "
        f"{best.false_positives:,} of {best.deliveries:,} deliveries, with {best.prefixes:,} entries."
    )
    if len(plans) > 1:
        worst = max(plans, key=lambda found: found.fpr)
        said += f" That is the least of {len(plans)} plans; {escape(worst.label)} has {worst.fpr:.1%}."
    return said


def _table(plans: Sequence[Measured]) -> str:
    best = _best(plans)
    rows = []
    for found in plans:
        cells = (
            found.label, found.kind, found.bits, "" if found.dimensions is None else found.dimensions,
            found.false_positives, f"{found.fpr:.2%}", found.deliveries, found.matches,
            found.prefixes, found.prefixes_max,
        )  # fmt: skip
        texts = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells)
        kind = ' class="best"' if found is best and len(plans) > 1 else ""
        rows.append(f"<tr{kind}>" + "".join(f"<td>{escape(text)}</td>" for text in texts) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _figure(figure: Shown) -> str:
    image = b64encode(figure.png).decode()
    return (
        f"<h2>{escape(figure.heading)}</h2>\n"
        f'<figure><img src="data:image/png;base64,{image}" alt="{escape(figure.caption)}">'
        f"<figcaption>{escape(figure.caption)} ({escape(figure.file)})</figcaption></figure>"
    )
