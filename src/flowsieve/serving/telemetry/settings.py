"""The section [telemetry] of a configuration: what clients report of events, and where that is kept for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowsieve.config.toml import Section
from flowsieve.content.schema import Schema, listed, shown
from flowsieve.protocol.limits import LONGEST_PAUSE
from flowsieve.protocol.report import FULL, LEAST_SHARE, OFF, SAMPLED

TELEMETRY = "telemetry"
KEYS = ("mode", "share", "folder", "interval", "rate", "keep")
KEEP_KEYS = ("hours", "bytes", "files")
COLUMNS = ("id", "at", "sent_at", "host", "weight")  # of landed events, before the attributes
SHORTEST_INTERVAL = 0.05  # seconds
LARGEST_RATE = 1_000_000
LONGEST_HOURS = 24 * 366
LARGEST_BYTES = 1 << 50
LARGEST_FILES = 1_000_000


@dataclass(frozen=True, slots=True)
class Keep:
    """How much stays of what was landed: so many hours, bytes in all, and files of a kind, whichever is less."""

    hours: float = 24.0
    bytes: int = 1 << 30
    files: int = 5_000


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """`share` of events that clients report, 0 for none; rows are landed in `folder`, by default with the state.

    So they are every `interval` seconds, and `rate` of them a second are taken, of all clients together.
    """

    share: float = 0.0
    folder: Path | None = None
    interval: float = 0.5
    rate: int = 20_000
    keep: Keep = Keep()

    @property
    def on(self) -> bool:
        return self.share > 0


UNASKED = TelemetrySettings()


def read_telemetry(top: Section, schema: Schema | None) -> TelemetrySettings:
    """The section, where every key has a default: without it nothing is reported."""
    section, default = top.section(TELEMETRY), UNASKED
    section.only(KEYS)
    folder = section.text("folder", "telemetry")
    settings = TelemetrySettings(
        _share(section),
        top.path.parent / folder if folder is not None else None,
        _number(section, "interval", default.interval, SHORTEST_INTERVAL, LONGEST_PAUSE, "seconds"),
        int(_number(section, "rate", default.rate, 1, LARGEST_RATE, "rows a second", whole=True)),
        _keep(section.section("keep")),
    )
    if settings.on and schema is not None and (taken := [name for name in COLUMNS if name in schema]):
        top.wrong(
            TELEMETRY,
            f"files of events have columns {listed(taken)} of their own, and so has the schema; right are attributes "
            f"of other names, or mode = {OFF!r}",
        )
    return settings


def _share(section: Section) -> float:
    mode = section.choice("mode", (OFF, SAMPLED, FULL)) or OFF
    share = _number(section, "share", 0.01, LEAST_SHARE, 1, "the share of events that is reported")
    if "share" in section and mode != SAMPLED:
        section.wrong(
            "share", f"share is for mode = {SAMPLED!r}, and it is {mode!r}; right is the one or the other"
        )
    return {OFF: 0.0, SAMPLED: float(share), FULL: 1.0}[mode]


def _keep(section: Section) -> Keep:
    section.only(KEEP_KEYS)
    default = Keep()
    return Keep(
        _number(section, "hours", default.hours, 0.001, LONGEST_HOURS, "hours"),
        int(_number(section, "bytes", default.bytes, 1, LARGEST_BYTES, "bytes", whole=True)),
        int(_number(section, "files", default.files, 10, LARGEST_FILES, "files of a kind", whole=True)),
    )


def _number(
    section: Section, key: str, default: float, least: float, most: float, what: str, *, whole: bool = False
) -> float:
    value: Any = section.table.get(key, default)
    kinds: tuple[type, ...] = (int,) if whole else (int, float)
    fits: Callable[[Any], bool] = lambda it: type(it) in kinds and least <= it <= most  # noqa: E731
    if fits(value):
        return value  # type: ignore[no-any-return]
    kind = "a whole number" if whole else "a number"
    section.wrong(key, f"{key} is {shown(value)}; right is {kind} from {least:g} to {most:g}: {what}")
    return default
