"""The `[offers]` of a controller's configuration: who says yes to a plan that is offered."""

from __future__ import annotations

from flowsieve.config.toml import Section
from flowsieve.content.schema import shown

OFFERS = "offers"
AUTO = "auto"


def read_offers(top: Section) -> bool:
    """Whether an offer may ask to be approved at once; without the section a person approves."""
    if OFFERS not in top:
        return False
    section = top.section(OFFERS)
    section.only((AUTO,))
    value = section.table.get(AUTO, False)
    if not isinstance(value, bool):
        section.wrong(AUTO, f"{AUTO} is {shown(value)}; right is true or false")
        return False
    return value
