"""Constraints on one attribute, and boxes of them: the shape that filters take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """The values from `low` to `high`, both inside, on an attribute's number line."""

    low: int | float
    high: int | float

    def admits(self, number: int | float) -> bool:
        return self.low <= number <= self.high

    def covers(self, other: Interval) -> bool:
        return self.low <= other.low and other.high <= self.high

    def overlaps(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True, slots=True)
class Text:
    """The strings that are `equals`, or else all with `low <= string < high` that are not in `none_of`.

    Strings order by their UTF-8 bytes, which is how Python orders them as well. The next string after x is
    x + "\\0", so that a half-open range says everything: `s <= "x"` is `high = "x\\0"`, `s > "x"` is
    `low = "x\\0"`. Only an attribute with `prefix = true` has ranges other than the whole one. `equals` alone
    says everything where it is given.
    """

    equals: str | None = None
    none_of: frozenset[str] = frozenset()
    low: str = ""
    high: str | None = None

    def admits(self, string: str) -> bool:
        if self.equals is not None:
            return string == self.equals
        return self.low <= string and (self.high is None or string < self.high) and string not in self.none_of

    def covers(self, other: Text) -> bool:
        if other.equals is not None:
            return self.admits(other.equals)
        return (
            self.equals is None  # no range holds a single string only: that one would be an `equals`
            and self.low <= other.low
            and (self.high is None or (other.high is not None and other.high <= self.high))
            and not any(map(other.admits, self.none_of))
        )

    def overlaps(self, other: Text) -> bool:
        if self.equals is not None:
            return other.admits(self.equals)
        if other.equals is not None:
            return self.admits(other.equals)
        low = max(self.low, other.low)
        high = min((text.high for text in (self, other) if text.high is not None), default=None)
        if high == low + "\0":  # they share one string
            return self.admits(low) and other.admits(low)
        return high is None or low < high  # what they share is endless, whatever `none_of` takes out


Constraint = Interval | Text
Box = tuple[Constraint, ...]  # one constraint per attribute of the schema, in its order
ANY_TEXT = Text()
