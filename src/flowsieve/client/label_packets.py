"""The publisher's side where labels name receivers: it matches events itself, and names the hosts that want them.

A publisher holds the subscriptions that overlap what it has advertised, and no others: nothing else can match.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from flowsieve.client.batch_packets import Packets
from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.flow.interest import Interest
from flowsieve.header.receivers import ReceiverLabels

Offers = dict[str, dict[Filter, None]]  # what each publisher has advertised


def offers_of(advertisements: Collection[Interest]) -> Offers:
    """The filters that each publisher has advertised, each of them once."""
    offers: Offers = {}
    for each in advertisements:
        offers.setdefault(each.endpoint, {}).update(dict.fromkeys(each.filters))
    return offers


def holders(wanted: Filter, offers: Offers) -> list[str]:
    """The publishers that hold a subscription with this filter."""
    return [publisher for publisher, filters in offers.items() if any(map(wanted.overlaps, filters))]


def receivers_of(
    events: EventBatch, advertisements: Collection[Interest], subscriptions: Collection[Interest]
) -> dict[str, NDArray[np.bool_]]:
    """Which of the events each host is to receive, as their publishers find it; hosts that get none may be missing."""
    offers = offers_of(advertisements)
    sent = {publisher: events.hosts == publisher for publisher in dict.fromkeys(events.hosts.tolist())}
    wants: dict[Filter, set[str]] = {}  # thousands of subscriptions often share a few filters
    for each in subscriptions:
        for filter in each.filters:
            wants.setdefault(filter, set()).add(each.endpoint)
    wanted: dict[str, NDArray[np.bool_]] = {}
    for filter, hosts in wants.items():
        concerned = [sent[publisher] for publisher in holders(filter, offers) if publisher in sent]
        if not concerned:
            continue
        matched = filter.matches_batch(events)
        if len(concerned) < len(sent):
            matched &= np.logical_or.reduce(concerned)
        for host in hosts:
            hit = matched & ~sent[host] if host in sent else matched
            wanted[host] = wanted[host] | hit if host in wanted else hit
    return wanted


def labelled_packets(
    events: EventBatch,
    advertisements: Collection[Interest],
    subscriptions: Collection[Interest],
    labels: ReceiverLabels,
) -> Packets:
    """What is sent for the events: a packet for each set of hosts in which somebody wants one."""
    wanted = receivers_of(events, advertisements, subscriptions)
    return Packets(labels.family, *labels.keys(wanted, len(events)))
