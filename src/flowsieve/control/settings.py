"""What an operator may choose of a control plane."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flowsieve.control.cover_rule import AUTO, DEFAULT_BUDGET, Budget, CoverRule
from flowsieve.errors import BadInput
from flowsieve.flow.send_policy import EVERYBODY, SendPolicy
from flowsieve.flow.tables.bloom_labelled import BloomSettings
from flowsieve.flow.tables.compiler import Tables
from flowsieve.index.plan import IndexPlan
from flowsieve.index.sample import EventSample
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator may choose; the defaults suit a network without tight tables.

    `budget`: dz per filter, 0 for exact covers, `auto` for as many as are worth their room (`control.cover_rule`).
    `capacity`: entries per switch. `sample`: where events fall,
    so that budgets and tables are spent there. `reserve`: how many entries a switch of a network needs for other
    things; hosts that are found have some. `labelled`: whether packets name their receivers, and tables know nothing of
    interests; only those of some hosts where it says which do, in `label_hosts`: those of all others go by dz.
    `policy`: which hosts a publisher that names receivers may address. `bloom`: that packets name, instead of
    receivers, the filters that they match, and how. `elsewhere`: that configurators decide on tables, not this state.
    `resample`: the same sample under another plan, where there is one to go over to.
    """

    budget: Budget = DEFAULT_BUDGET
    capacity: int | None = None
    tables: Tables = Tables.OVERLAY
    sample: EventSample | None = None
    reserve: Callable[[Topology], int] = field(default=lambda topology: 0, compare=False)
    labelled: bool = False
    label_hosts: HostPatterns | None = None
    policy: SendPolicy = EVERYBODY
    bloom: BloomSettings | None = None
    elsewhere: bool = False
    resample: Callable[[IndexPlan], EventSample | None] = field(default=lambda plan: None, compare=False)

    def __post_init__(self) -> None:
        if self.label_hosts is not None and not self.labelled:
            raise BadInput("some hosts' packets name their receivers, and none do; right is labelled = True")

    def sample_under(self, plan: IndexPlan) -> EventSample | None:
        """Where events fall under a plan, as far as it is known."""
        if self.sample is not None and (self.sample.plan is plan or self.sample.plan == plan):
            return self.sample
        return self.resample(plan)

    @property
    def cover_rule(self) -> CoverRule:
        """How fine covers are."""
        return CoverRule(self.budget, self.capacity if self.budget == AUTO else None)

    def room(self, topology: Topology) -> int | None:
        """How many entries for events a switch of a network has room for, if that is bounded."""
        whole = self.capacity
        return None if whole is None else max(min(whole, 1), whole - self.reserve(topology))
