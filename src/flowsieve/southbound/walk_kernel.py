"""Compiled: many packets walked through flattened tables. Its twin is `EmbeddedNetwork.send`."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.flat_kernel import ONE, ZERO, interval_of


@njit(cache=True, nogil=True)
def _grown(column):
    """The same values with twice the room."""
    wider = np.empty(2 * column.shape[0], column.dtype)
    wider[: column.shape[0]] = column
    return wider


@njit(cache=True, nogil=True)
def walk(
    begin, hi, lo, entry, ports,  # the intervals of all tables, those of switch s from begin[s] on
    first, at, far,  # the wiring
    start, keys_hi, keys_lo,  # a packet each: the slot that it comes in on, its address
    hop_limit, max_copies,
    entry_packets, slot_packets,  # counted up
):  # fmt: skip
    """Send every packet on its way, each to its end before the next.

    Returns the deliveries in order, as (packet, host) columns, how many copies ran out of hops, and the
    packet that made more than `max_copies`, or -1.
    """
    out_packet = np.empty(1024, np.int64)
    out_host = np.empty(1024, np.int32)
    delivered = 0
    expired = 0
    queue_slot = np.empty(
        256, np.int32
    )  # copies under way: the slot they come in on, the hops they have left
    queue_hops = np.empty(256, np.int32)
    for packet in range(start.shape[0]):
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
            for word in range(ports.shape[1]):
                bits = ports[found, word]
                if bits != ZERO and hops <= 1:
                    expired += 1
                    break
                slot = first[switch] + 64 * word
                while bits != ZERO:
                    if bits & ONE != ZERO and slot != came:
                        slot_packets[slot] += 1
                        if far[slot] >= 0:
                            if tail == queue_slot.shape[0]:
                                if tail >= max_copies:
                                    return out_packet[:delivered], out_host[:delivered], expired, packet
                                queue_slot, queue_hops = _grown(queue_slot), _grown(queue_hops)
                            queue_slot[tail] = far[slot]
                            queue_hops[tail] = hops - 1
                            tail += 1
                        else:
                            if delivered == out_packet.shape[0]:
                                out_packet, out_host = _grown(out_packet), _grown(out_host)
                            out_packet[delivered] = packet
                            out_host[delivered] = -1 - far[slot]
                            delivered += 1
                    bits >>= ONE
                    slot += 1
    return out_packet[:delivered], out_host[:delivered], expired, -1
