"""Which filters are asked for by whom, and what publishers hold of them where labels are Bloom filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from flowsieve.content.filter import Filter
from flowsieve.flow.covering import Covering
from flowsieve.flow.held_filters import HeldFilter


class AskedFilters:
    """Filters by their canonical texts, and how often each host asks for one.

    Controllers know all of them, and a publisher's host those that overlap what it has advertised.
    """

    def __init__(self, covering: Covering | None = None) -> None:
        self.covering = covering or Covering()
        self.hosts: dict[str, Counter[str]] = {}
        self._held: dict[str, HeldFilter] = {}
        self._stale: set[str] = set()

    def ask(self, text: str, filter: Filter, host: str) -> bool:
        """A host asks for a filter once more; whether it did not before."""
        if text not in self.hosts:
            self.covering.add(text, filter)
            self.hosts[text] = Counter()
        self.hosts[text][host] += 1
        if self.hosts[text][host] > 1:
            return False
        self._stale |= self.touched(text)
        return True

    def end(self, text: str, host: str) -> bool:
        """A host asks for a filter once less; whether it does not any more. KeyError if it did not."""
        hosts = self.hosts[text]
        if host not in hosts:
            raise KeyError(f"{host} does not ask for {text}")
        hosts[host] -= 1
        if hosts[host]:
            return False
        del hosts[host]
        self._stale |= self.touched(text)
        return True

    def forget(self, text: str) -> None:
        """Know a filter no longer that nobody asks for."""
        assert not self.hosts[text], "somebody asks for it"
        self.covering.discard(text)
        del self.hosts[text]

    def touched(self, text: str) -> set[str]:
        """The filters for which something follows from a change of one: itself, and those that it covers."""
        return {text, *self.covering.below(text)}

    def held(self) -> Mapping[str, HeldFilter]:
        """What publishers are to hold: filters that some host asks for and has no other that covers it."""
        stale, self._stale = self._stale, set()
        for text in stale:
            if hosts := self._lone(text):
                above = (each for each in self.covering.above(text) if self._lone(each))
                self._held[text] = HeldFilter(self.covering.filters[text], hosts, frozenset(above))
            else:
                self._held.pop(text, None)
        return self._held

    def _lone(self, text: str) -> frozenset[str]:
        """The hosts that ask for a filter and for none that covers it."""
        hosts = frozenset(self.hosts.get(text, ()))
        if hosts:
            hosts = hosts.difference(*(self.hosts[each] for each in self.covering.above(text)))
        return hosts
