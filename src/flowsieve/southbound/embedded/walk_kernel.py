"""Compiled: many packets walked through flattened tables. Its twin is `network.EmbeddedNetwork.send`."""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.flat_kernel import ONE, ZERO, interval_of


@njit(cache=True, nogil=True)
def list_ports(begin, ports, first, far):
    """Port bits as lists: the columns of `batch.Outputs`."""
    hosts_of = np.zeros(ports.shape[0] + 1, np.int64)
    links_of = np.zeros(ports.shape[0] + 1, np.int64)
    hosts = np.empty(1024, np.int32)
    links = np.empty(1024, np.int32)
    n_hosts, n_links = 0, 0
    for switch in range(begin.shape[0] - 1):
        for i in range(begin[switch], begin[switch + 1]):
            for word in range(ports.shape[1]):
                bits, slot = ports[i, word], first[switch] + 64 * word
                while bits != ZERO:
                    if bits & ONE != ZERO:
                        if far[slot] < 0:
                            if n_hosts == hosts.shape[0]:
                                hosts = grown(hosts, n_hosts + 1)
                            hosts[n_hosts] = -1 - far[slot]
                            n_hosts += 1
                        else:
                            if n_links == links.shape[0]:
                                links = grown(links, n_links + 1)
                            links[n_links] = slot
                            n_links += 1
                    bits >>= ONE
                    slot += 1
            hosts_of[i + 1] = n_hosts
            links_of[i + 1] = n_links
    return hosts_of, hosts[:n_hosts].copy(), links_of, links[:n_links].copy()


@njit(cache=True, nogil=True)
def grown(column, room):
    """The same values with at least so much room, and at least twice what there was."""
    wider = np.empty(max(room, 2 * column.shape[0]), column.dtype)
    wider[: column.shape[0]] = column
    return wider


@njit(cache=True, nogil=True)
def walk(
    begin, hi, lo, entry, hosts_of, hosts, links_of, links,  # all tables; those of switch s from begin[s] on
    at, far,  # the wiring
    start, keys_hi, keys_lo,  # a packet each: the slot that it comes in on, its address
    packet, stop,  # which of them to send
    hop_limit, max_copies,
    entry_packets, slot_packets,  # counted up
    rows, host,  # filled: the hosts that packet p reaches are host[rows[p] : rows[p + 1]]
):  # fmt: skip
    """Send packets on their way, each to its end before the next.

    Returns `host`, perhaps grown; how many copies ran out of hops; and the packet of which more than
    `max_copies` were under way, or -1.
    """
    expired = 0
    queue_slot = np.empty(
        256, np.int32
    )  # copies under way: the slot they come in on, the hops they have left
    queue_hops = np.empty(256, np.int32)
    delivered = rows[packet]
    while packet < stop:
        queue_slot[0] = start[packet]
        queue_hops[0] = hop_limit
        head, tail = 0, 1
        while head < tail:
            came, hops = queue_slot[head], queue_hops[head]
            head += 1
            switch = at[came]
            found = interval_of(hi, lo, begin[switch], begin[switch + 1], keys_hi[packet], keys_lo[packet])
            if entry[found] < 0:
                continue
            entry_packets[entry[found]] += 1
            hosts_from, hosts_to = hosts_of[found], hosts_of[found + 1]
            links_from, links_to = links_of[found], links_of[found + 1]
            if hops <= 1 and (hosts_from < hosts_to or links_from < links_to):
                expired += 1
                continue
            if delivered + hosts_to - hosts_from > host.shape[0]:
                host = grown(host, delivered + hosts_to - hosts_from)
            sender = -1 - far[came]  # negative unless it comes from a host
            for i in range(hosts_from, hosts_to):
                host[delivered] = hosts[i]
                delivered += hosts[i] != sender
            for i in range(links_from, links_to):
                slot = links[i]
                if slot == came:
                    continue
                slot_packets[slot] += 1
                if tail >= max_copies:
                    return host, expired, packet
                if tail == queue_slot.shape[0]:
                    queue_slot, queue_hops = grown(queue_slot, tail + 1), grown(queue_hops, tail + 1)
                queue_slot[tail] = far[slot]
                queue_hops[tail] = hops - 1
                tail += 1
        packet += 1
        rows[packet] = delivered
    return host, expired, -1
