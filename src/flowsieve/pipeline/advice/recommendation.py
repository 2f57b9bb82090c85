"""Which of dz, receivers and bloom to take, by a rule over figures alone.

1. What does not fit is left out: entries beyond the capacity, refused requests, more ports or hosts than labels have
   room for. So are labels where filters must not be told to publishers, and whatever changes a switch more often than
   it can take.
2. Of the rest the one that carries least is taken: copies over links and into hosts, per wanted copy.
3. One that is simpler to have wins if it carries at most `MARGIN` times as much: dz before receivers, since publishers
   then hold nobody's filters; receivers before bloom, since nothing unwanted arrives and tables stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

DZ, RECEIVERS, BLOOM = "dz", "receivers", "bloom"
SIMPLEST_FIRST = (DZ, RECEIVERS, BLOOM)
MARGIN = 1.1
SWITCH_UPDATES = 50.0  # a second: what a hardware switch takes
# Packets per second of one Open vSwitch bridge against one plain output flow, where measured (docs/labels.md).
OVS_RATIO: Mapping[str, str | None] = {
    DZ: "0.92, with 10,000 entries",
    RECEIVERS: "0.9 to 1.05, with up to 10,000 different sets of receivers and no address rewritten",
    BLOOM: None,
}

# Who learns whose filters.
TOLD = {
    DZ: "publishers learn no filter; a switch's entries tell what is wanted behind each of its ports",
    RECEIVERS: "a publisher holds the filters, with their hosts, that overlap what it advertises; "
    "a packet tells for whom it is",
    BLOOM: "a publisher holds the filters that overlap what it advertises; a packet tells which it may match",
}


@dataclass(frozen=True, slots=True)
class HeaderTrial:
    """What one way to address packets costs on a workload; `obstacle` says why it cannot be had at all.

    Copies are per event that somebody published, unless they are said to be per wanted copy. Operations are those of a
    subscription that comes by itself: in all switches, and in the one that has most.
    """

    obstacle: str | None = None
    unwanted_per_wanted: float = 0.0
    packets_per_event: float = 0.0  # that its publisher sends
    link_packets_per_event: float = 0.0
    carried_per_wanted: float = 0.0  # copies over links and into hosts
    entries_max: int = 0
    operations_per_request: float = 0.0
    operations_busiest_switch: float = 0.0
    refused: int = 0
    filters_held: int = 0  # by the publisher that holds most
    publisher_us_per_event: float = 0.0  # to match an event, or to find its dz, here
    sets: int | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the figures do not say: whether filters are private, and how many subscriptions change in a second."""

    private: bool = False
    churn: float = 0.0


@dataclass(frozen=True, slots=True)
class Advice:
    """What to take, if anything can be had, and why."""

    recommended: str | None
    reasons: tuple[str, ...]


NOTHING_MORE = Circumstances()


def recommend(trials: Mapping[str, HeaderTrial], about: Circumstances = NOTHING_MORE) -> Advice:
    """Apply the rule."""
    against = {name: _obstacle(name, trial, about) for name, trial in trials.items()}
    reasons = [f"{name} is out: {why}" for name, why in against.items() if why]
    fit = [name for name in SIMPLEST_FIRST if name in trials and not against[name]]
    if not fit:
        return Advice(None, tuple(reasons))
    least = min(trials[name].carried_per_wanted for name in fit)
    taken = next(name for name in fit if trials[name].carried_per_wanted <= MARGIN * least)
    reasons += _why(taken, {name: trials[name] for name in fit})
    return Advice(taken, tuple(reasons))


def _obstacle(name: str, trial: HeaderTrial, about: Circumstances) -> str | None:
    """Why something cannot be had, if it cannot."""
    if trial.obstacle:
        return trial.obstacle
    if trial.refused:
        return f"{trial.refused:,} requests do not fit the tables"
    if about.private and name != DZ:
        return "publishers would be told filters, which are private"
    changes = about.churn * trial.operations_busiest_switch
    if changes > SWITCH_UPDATES:
        return (
            f"{about.churn:g} subscriptions a second change {changes:,.0f} entries a second at the busiest switch, "
            f"and a switch takes about {SWITCH_UPDATES:.0f}"
        )
    return None


def _why(taken: str, fit: Mapping[str, HeaderTrial]) -> list[str]:
    """What speaks for the one that is taken, and what it costs."""
    own, reasons = fit[taken], []
    for name, trial in fit.items():
        if name == taken:
            continue
        ratio = trial.carried_per_wanted / own.carried_per_wanted if own.carried_per_wanted else 1.0
        if ratio > MARGIN:
            reasons.append(f"{name} carries {ratio:.2g} times as many copies: {_waste(name, trial)}")
        else:
            reasons.append(f"{name} would carry {_less(ratio)}, which does not outweigh that {GAINS[taken]}")
    if taken == DZ:
        reasons.append(
            f"{own.unwanted_per_wanted:.2g} unwanted copies come with each wanted one, and no publisher learns a filter"
        )
    else:
        reasons.append(
            f"publishers hold up to {own.filters_held:,} filters of others and match events against them"
        )
    return reasons


GAINS = {
    DZ: "with dz no publisher holds filters of others",
    RECEIVERS: "with receivers nothing unwanted arrives and requests change no table",
    BLOOM: "with bloom tables follow the filters alone",
}


def _less(ratio: float) -> str:
    if abs(ratio - 1) < 0.005:
        return "as many copies"
    return f"{abs(ratio - 1):.0%} {'more' if ratio > 1 else 'fewer'} copies"


def _waste(name: str, trial: HeaderTrial) -> str:
    if trial.unwanted_per_wanted >= 0.005:
        return f"{trial.unwanted_per_wanted:.2g} unwanted ones for each wanted"
    if trial.sets is not None and trial.sets > 1:
        return f"an event takes {trial.packets_per_event:.2g} packets, for hosts in {trial.sets} sets"
    return f"an event takes {trial.packets_per_event:.2g} packets"
