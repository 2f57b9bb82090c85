"""Small charts and tables made of plain elements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flowsieve.markup import Markup, element

LONGEST, HIGHEST = 48.0, 78.0  # percent; the rest is for numbers


def bars(title: str, values: Mapping[str, float], *, own: str, form: str) -> Markup:
    """A bar per name, with its value; all but our own say how many times that they are."""
    top = max(values.values(), default=0.0) or 1.0
    rows = []
    for name, value in values.items():
        kind = " own" if name == own else ""
        ratio = f"× {value / values[own]:.1f}" if values[own] and name != own else ""
        rows += [
            element("span", name, class_=f"name{kind}"),
            element(
                "span",
                element("span", class_="bar", style=f"width:{LONGEST * value / top:.2f}%"),
                element("span", form.format(value)),
                element("span", ratio, class_="ratio"),
                class_=f"track{kind}",
            ),
        ]
    return element("div", element("h3", title), element("div", *rows, class_="bars"))


def columns(groups: Sequence[Mapping[str, int]]) -> Markup:
    """A column per name, with its number on top; groups stand a little apart."""
    top = max((number for group in groups for number in group.values()), default=0) or 1
    parts: list[Markup] = []
    for group in groups:
        if parts:
            parts.append(element("div", class_="column gap"))
        parts += [
            element(
                "div",
                element("span", f"{number:,}", class_="count"),
                element("span", class_="bar", style=f"height:{HIGHEST * number / top:.2f}%"),
                element("span", name, class_="name"),
                class_="column",
            )
            for name, number in group.items()
        ]
    return element("div", *parts, class_="columns")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """Rows of cells under a head."""
    return element(
        "table",
        element("thead", element("tr", *(element("th", title) for title in head))),
        element("tbody", *(element("tr", *map(_cell, row)) for row in rows)),
    )


def _cell(text: str) -> Markup:
    number = text.replace(",", "").isdigit()
    return element("td", text, class_="number" if number else None)
