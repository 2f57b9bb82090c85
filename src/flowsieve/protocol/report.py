"""What clients tell the controller of events, as far as it asks for that: `TelemetryTerms` say how far.

A report has exact counts, and rows about the events of a share (see `sampling`): a publisher tells what it published, a
subscriber what came to it and whether it wanted that. Whether rows are right is looked at one by one, by whoever takes
them: a bad one spoils no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flowsieve.content.schema import shown
from flowsieve.errors import BadMessage
from flowsieve.protocol.limits import LONGEST_PAUSE, MAX_NUMBER, PUBLISHER_BYTES, REPORTED_ROWS
from flowsieve.protocol.sampling import threshold_of

OFF, SAMPLED, FULL = "off", "sampled", "full"
LEAST_SHARE = 1e-6
REPORT_ROWS = 512  # of a report; a client puts it together in a millisecond or two
PAUSE_SECONDS = 0.5  # from a report to the next, unless the controller says otherwise


@dataclass(frozen=True, slots=True)
class TelemetryTerms:
    """The share of events that is reported, 0 to 1, the seconds from a report to the next, and the most rows of one."""

    share: float = 0.0
    every: float = PAUSE_SECONDS
    rows: int = REPORT_ROWS

    def __post_init__(self) -> None:
        if self.share and not LEAST_SHARE <= self.share <= 1:
            raise BadMessage(f"a share of {shown(self.share)}; right is 0, or from {LEAST_SHARE:g} to 1")
        if not 0 < self.every <= LONGEST_PAUSE:
            raise BadMessage(f"a report every {shown(self.every)} s; right is up to {LONGEST_PAUSE:g}")
        if not 1 <= self.rows <= REPORTED_ROWS:
            raise BadMessage(f"reports of {shown(self.rows)} rows; right are up to {REPORTED_ROWS:,}")

    @property
    def on(self) -> bool:
        return self.share > 0

    @property
    def mode(self) -> str:
        """What it is called in the configuration."""
        return OFF if not self.on else FULL if self.share == 1 else SAMPLED

    @property
    def threshold(self) -> int:
        return threshold_of(self.share)

    def to_json(self) -> dict[str, Any]:
        return {"mode": self.mode, "share": self.share, "every": self.every, "rows": self.rows}

    @classmethod
    def parse(cls, data: object) -> TelemetryTerms:
        """What `to_json` wrote down; a controller that says nothing asks for nothing."""
        if data is None:
            return cls()
        if isinstance(data, Mapping):
            share, every, rows = (data.get(name) for name in ("share", "every", "rows"))
            if type(rows) is int and all(type(each) in (int, float) for each in (share, every)):
                return cls(float(share), float(every), rows)  # type: ignore[arg-type]
        raise BadMessage(f"telemetry is {shown(data)}; it has share, every and rows, which are numbers")


NO_TELEMETRY = TelemetryTerms()


class EventCounts(NamedTuple):
    """Events since a session began: published, those that came (each once), and which of these were wanted or not."""

    published: int = 0
    received: int = 0
    delivered: int = 0
    unwanted: int = 0

    def since(self, before: EventCounts) -> EventCounts:
        """What is new since then; a count that is lower than it was has nothing new."""
        return EventCounts(*(max(0, now - then) for now, then in zip(self, before, strict=True)))


NOTHING = EventCounts()


@dataclass(frozen=True, slots=True)
class Report:
    """One report of a session that publishes under an id.

    `share` is what its rows were chosen by. `counts` are since the session began, `since` those of the last report that
    was taken. `events` are rows of a sequence number, the time in microseconds since 1970, and the values of the
    attributes in `names`. `wanted` and `unwanted` are the numbers of events that came, by publisher (hexadecimal).
    """

    share: float
    publisher: bytes
    counts: EventCounts
    since: EventCounts = NOTHING
    names: tuple[str, ...] = ()
    events: Sequence[Any] = ()
    wanted: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    unwanted: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.events) + sum(map(len, self.wanted.values())) + sum(map(len, self.unwanted.values()))

    def to_json(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "share": self.share,
            "publisher": self.publisher.hex(),
            "counts": list(self.counts),
            "since": list(self.since),
        }
        if self.events:
            said |= {"names": list(self.names), "events": list(self.events)}
        if self.wanted:
            said["wanted"] = dict(self.wanted)
        if self.unwanted:
            said["unwanted"] = dict(self.unwanted)
        return said

    @classmethod
    def parse(cls, data: object) -> Report:
        """What `to_json` wrote down, or BadMessage; what its rows say is not looked at."""
        if not isinstance(data, Mapping):
            raise BadMessage(f"report is {shown(data)}; it is an object with share, publisher and counts")
        share = data.get("share")
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise BadMessage(f"a report's share is {shown(share)}; it is a number")
        names = data.get("names", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadMessage(f"a report's names are {shown(names)}; they are a list of texts")
        events = data.get("events", [])
        if not isinstance(events, list):
            raise BadMessage(f"a report's events are {shown(events)}; they are a list of rows")
        made = cls(
            float(share),
            _publisher(data.get("publisher")),
            _counts(data.get("counts"), "counts"),
            _counts(data.get("since"), "since"),
            tuple(names),
            events,
            _came(data.get("wanted", {}), "wanted"),
            _came(data.get("unwanted", {}), "unwanted"),
        )
        if made.rows > REPORTED_ROWS:
            raise BadMessage(f"a report of {made.rows:,} rows; right are {REPORTED_ROWS:,} at most")
        return made


def publisher_of(text: object) -> bytes | None:
    """The publisher's id that hexadecimal digits say; None if they say none."""
    if not isinstance(text, str) or len(text) != 2 * PUBLISHER_BYTES or not text.isascii():
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None


def _publisher(text: object) -> bytes:
    found = publisher_of(text)
    if found is None:
        raise BadMessage(
            f"a report's publisher is {shown(text)}; right are {2 * PUBLISHER_BYTES} digits of 0-9 and a-f"
        )
    return found


def _counts(found: object, name: str) -> EventCounts:
    if (
        isinstance(found, list)
        and len(found) == len(EventCounts._fields)
        and all(type(each) is int and 0 <= each <= MAX_NUMBER for each in found)
    ):
        return EventCounts(*found)
    raise BadMessage(
        f"a report's {name} are {shown(found)}; right are whole numbers: {', '.join(EventCounts._fields)}"
    )


def _came(found: object, name: str) -> Mapping[str, Sequence[Any]]:
    if isinstance(found, Mapping) and all(isinstance(each, list) for each in found.values()):
        return found
    raise BadMessage(
        f"a report's {name} are {shown(found)}; right is an object of publishers and lists of numbers"
    )
