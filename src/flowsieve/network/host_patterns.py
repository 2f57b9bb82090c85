"""Some of a network's hosts, named by patterns: which they are can be said before they are found."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from flowsieve.errors import BadInput

WILD = "*?["


@dataclass(frozen=True, slots=True)
class HostPatterns:
    """The hosts whose names are like one of the patterns, as in a shell.

    >>> HostPatterns(("h1", "gate-*")).hold("gate-7"), HostPatterns(("h1",)).hold("h12")
    (True, False)
    """

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.patterns or not all(self.patterns):
            raise BadInput(
                f"{list(self.patterns)} name no hosts; right are names or patterns, such as 'gate-*'"
            )

    def hold(self, host: str) -> bool:
        """Whether a host is one of them."""
        return any(fnmatchcase(host, pattern) for pattern in self.patterns)

    @property
    def names(self) -> tuple[str, ...]:
        """The patterns that are names of single hosts."""
        return tuple(each for each in self.patterns if not any(sign in each for sign in WILD))
