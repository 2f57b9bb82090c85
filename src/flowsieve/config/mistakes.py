"""Mistakes gathered while reading, so that several are told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flowsieve.errors import BadInput, BadScenario

MOST = 5


class Mistakes:
    """The first few mistakes in what is being read; reading goes on past one where that makes sense."""

    def __init__(self) -> None:
        self._found: list[BadInput] = []

    @property
    def full(self) -> bool:
        """Whether there are as many as are shown at once."""
        return len(self._found) >= MOST

    def add(self, message: str, place: str) -> None:
        self._found.append(BadScenario(message, place=place))

    @contextmanager
    def kept(self, place: str | Callable[[], str] = "") -> Iterator[None]:
        """Keep a mistake that is raised inside, with an outer place put in front of its own."""
        try:
            yield
        except BadInput as error:
            outer = place if isinstance(place, str) else place()
            self._found.append(error.at(outer) if outer else error)

    def check(self) -> None:
        """Raise what was found, if there was something."""
        if not self._found:
            return
        lines = [str(error) for error in self._found[:MOST]]
        if self.full:
            lines.append(f"these are the first {MOST} mistakes; there may be more")
        raise BadScenario("\n".join(lines))
