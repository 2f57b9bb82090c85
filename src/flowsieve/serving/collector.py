"""Python's garbage collector, kept from holding up a repair.

What a controller keeps is large and lives as long as it does; going over all of it takes a tenth of a second, and what
a repair makes is enough to set that off.
"""

from __future__ import annotations

import gc

THRESHOLDS = (
    50_000,
    20,
    50,
)  # objects made, and collections of the younger generations, between two collections


def pass_over_what_is_there() -> None:
    """Have what there is now never looked at again, and what comes less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
