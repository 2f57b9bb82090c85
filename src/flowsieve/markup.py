"""Elements of HTML and SVG as text that is well-formed by construction."""

from __future__ import annotations

from html import escape

# Elements with nothing inside.
EMPTY = frozenset({"br", "input", "meta", "circle", "line", "path", "polygon", "rect"})


class Markup(str):
    """Text that is markup already; any other text is escaped when it is put into an element."""

    __slots__ = ()


def element(tag: str, /, *inside: str, **attributes: object) -> Markup:
    """An element; `aria_label` means `aria-label`, `class_` means `class`, and what is None is left out.

    >>> element("p", "a < b", class_="small")
    '<p class="small">a &lt; b</p>'
    """
    head = tag + "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if tag in EMPTY and not inside:
        return Markup(f"<{head}/>")
    return Markup(f"<{head}>{joined(*inside)}</{tag}>")


def section(title: str, *inside: str) -> Markup:
    """A part of a page, under its title."""
    return element("section", element("h2", title), *inside)


def joined(*parts: str) -> Markup:
    """Parts behind each other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def _written(value: object) -> str:
    """A value of an attribute; a hundredth of a pixel is fine enough."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
