"""Tables on other trees, worked out before it is certain that these come into force.

That can be done in a thread beside whatever is waited for meanwhile. Until it is taken or taken back, nobody else may
ask anything of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from threading import Lock

from flowsieve.errors import Refused
from flowsieve.flow.capacity.fitted import FittedTables
from flowsieve.flow.diff import Change
from flowsieve.network.tree import TreeMap


class Foresight:
    """What going from the trees `before` over to those `after` comes to: `work_out`, then `take` or `take_back`."""

    def __init__(self, tables: FittedTables, before: TreeMap, after: TreeMap) -> None:
        self.after = after
        self._tables, self._before, self._fit = tables, before, tables.fit
        self._turn = Lock()  # of whoever is at the tables
        self._begun = self._over = False
        self._changes: Mapping[str, list[Change]] | None = None

    def work_out(self) -> None:
        """Do it, in any thread, once; it is not begun after it was to be taken, or taken back."""
        with self._turn:
            if self._begun or self._over:
                return
            self._begun = True
            self._tables.compiler.rewire(self.after)
            with suppress(Refused):
                self._changes = self._tables.update()

    def take(self) -> Mapping[str, list[Change]] | None:
        """Have it in force; returns what changes, or None where that is not known: then it has to be taken back."""
        with self._turn:
            self._over = True
            return self._changes

    def take_back(self) -> None:
        """Have the tables as they were."""
        with self._turn:
            self._over = True
            if self._begun:
                self._tables.compiler.rewire(self._before)
                self._tables.recall(self._fit)
