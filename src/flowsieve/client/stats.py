"""What a client counts: nothing that it drops or misses is hidden."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Stats:
    """Counts of a client since it connected.

    `sent`: events published. `received`: events that came. `delivered`: events handed to a subscription, once for
    each. Dropped: `false_positives`, which the subscriptions' dz cover and their filters do not match;
    `passed_over`, outside those dz (for another application of the host, or let through by a small table);
    `duplicates`, second copies, and what came so late that it may be one; `repeats`, the same event to another of its
    addresses; `malformed`, what is no event of this schema; `forged`, what its publisher has not signed; `overflow`,
    what a subscription's full queue, or the host's receive buffer, had no room for.
    `lost`: packets wanted that were sent and never came. `unchecked`: events for which nobody could tell.
    `late`: events published after the time until which it was known who wants them, since the process was stopped.
    `unsent`: events published that never left this host, whether or not somebody waited for them to.
    `unreported`: rows of telemetry that the controller was to get and did not.
    """

    sent: int = 0
    received: int = 0
    delivered: int = 0
    false_positives: int = 0
    passed_over: int = 0
    duplicates: int = 0
    repeats: int = 0
    malformed: int = 0
    forged: int = 0
    overflow: int = 0
    lost: int = 0
    unchecked: int = 0
    late: int = 0
    unsent: int = 0
    unreported: int = 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)
