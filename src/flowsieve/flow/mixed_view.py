"""A frozen view of a network in which some hosts' events are addressed by dz and others' by labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from flowsieve.flow.entry import CONTENT_TABLE, Flow
from flowsieve.flow.interest import Interest
from flowsieve.flow.label_view import LabelView
from flowsieve.flow.view import NetworkView
from flowsieve.header.address import Prefix
from flowsieve.network.host_patterns import HostPatterns
from flowsieve.network.topology import Topology


@dataclass(frozen=True, slots=True, eq=False)
class MixedView:
    """The same network seen twice: as it is for `dz`, and for the `labels` that those hosts send who are `labelled`.

    Each has the entries that its packets may meet, the advertisements of its publishers, and all subscriptions.
    """

    dz: NetworkView
    labels: LabelView
    labelled: HostPatterns

    @classmethod
    def of(cls, dz: NetworkView, labels: LabelView, labelled: HostPatterns) -> MixedView:
        """Both views of one network, each with what concerns it."""
        whole = cls(replace(dz, tables=_not_within(labels.group, dz.tables)), labels, labelled)
        return whole.about(dz.advertisements, dz.subscriptions)

    @property
    def topology(self) -> Topology:
        return self.dz.topology

    def about(self, advertisements: Collection[Interest], subscriptions: Collection[Interest]) -> MixedView:
        """The same with other interests."""
        offers = [(each, self.labelled.hold(each.endpoint)) for each in advertisements]
        return replace(
            self,
            dz=replace(
                self.dz,
                advertisements=[each for each, labelled in offers if not labelled],
                subscriptions=subscriptions,
            ),
            labels=replace(
                self.labels,
                advertisements=[each for each, labelled in offers if labelled],
                subscriptions=subscriptions,
            ),
        )


def _not_within(group: Prefix, tables: Mapping[str, tuple[Flow, ...]]) -> dict[str, tuple[Flow, ...]]:
    """What packets that are no labels may meet; one that hands them on to a later table is refused by the proof."""
    return {
        switch: tuple(flow for flow in flows if flow.table == CONTENT_TABLE and not flow.match.within(group))
        for switch, flows in tables.items()
    }
