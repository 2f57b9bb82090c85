"""Which southbound a configuration's switches have: the one place that chooses it. So far all speak OpenFlow."""

from __future__ import annotations

from collections.abc import Callable

from flowsieve.network.names import SwitchId
from flowsieve.southbound.fabric import Claim, Fabric, Report
from flowsieve.southbound.openflow.datapath_id import IDENTITY_KEY, read_identity
from flowsieve.southbound.switch_access import SwitchAccess

__all__ = ["IDENTITY_KEY", "fabric_of", "read_identity"]


def fabric_of(
    access: SwitchAccess,
    unknown: Callable[[SwitchId], str | None],
    report: Report,
    claim: Claim | None = None,
) -> Fabric:
    """The switches that are reached like this; `unknown` hears of one that has no name, and may give it one.

    Who has no `claim` may look, and change what owners of parts of the space share.
    """
    from flowsieve.southbound.openflow.fabric import OpenFlowFabric  # it takes a while to be imported

    return OpenFlowFabric(
        access.addresses,
        listen=access.listen,
        identities=access.identities,
        unknown=unknown,
        control=access.vswitchd,
        report=report,
        claim=claim,
    )
