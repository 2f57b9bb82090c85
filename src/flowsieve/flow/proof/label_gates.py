"""Whether the ports of publishers hold them to the policy: they take in labels for all whom a host may address, and for
nobody else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flowsieve.flow.guard import Gate, asked_of
from flowsieve.flow.label_view import LabelView


def dropped(view: LabelView) -> Iterator[tuple[str, str]]:
    """The publishers whose ports drop labels that they may send, each with the hosts that such a label names."""
    for publisher, gate in _publishing(view):
        hosts = view.policy.reached(publisher, view.labels.hosts)
        for address in view.labels.addresses(hosts):
            if not _admits(gate, address):
                yield from ((publisher, host) for host in view.labels.receivers(address))


def let_in(view: LabelView) -> Iterator[tuple[str, str]]:
    """The publishers whose ports take in labels that they may not send, and a host that each names."""
    for publisher, gate in _publishing(view):
        for host in view.labels.hosts:
            if not view.may_send(publisher, host) and any(
                _admits(gate, address) for address in view.labels.addresses([host])
            ):
                yield publisher, host


def _publishing(view: LabelView) -> Iterable[tuple[str, Gate]]:
    """Who has advertised something and is known to have a gate."""
    there = dict.fromkeys(each.endpoint for each in view.advertisements)
    return [(host, view.gates[host]) for host in sorted(there) if host in view.gates]


def _admits(gate: Gate, address: int) -> bool:
    return any(address & asked.mask == asked.value for asked in map(asked_of, gate.admitted))
