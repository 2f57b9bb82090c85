"""What hosts got of what they wanted, compiled; the plain twin is `scenario.play`, which lists every pair."""

from __future__ import annotations

import numpy as np
from numba import njit

COLUMNS = ("deliveries", "wanted", "false_positives", "duplicates", "repeats", "met")
DELIVERIES, WANTED, FALSE_POSITIVES, DUPLICATES, REPEATS, MET = range(len(COLUMNS))


@njit(cache=True, nogil=True)
def count(source, packets_of, copies_of, host, matches_of, who, home, sums):
    """Add up, per host (a row of `sums`), what became of events; `met` are the wanted ones that arrived.

    Event e comes from host source[e]; its packets are those from packets_of[e] up to the next event's, the copies of
    packet p reached the hosts host[copies_of[p] : copies_of[p + 1]], and the subscriptions that it matches are
    who[matches_of[e] : matches_of[e + 1]], of which number s is of host home[s].
    """
    hosts = sums.shape[0]
    wants = np.full(hosts, -1, np.int64)  # the last event, or packet, of which a host is known to …
    has = np.full(hosts, -1, np.int64)
    has_copy = np.full(hosts, -1, np.int64)
    for event in range(len(source)):
        for i in range(matches_of[event], matches_of[event + 1]):
            at = home[who[i]]
            if at != source[event] and wants[at] != event:
                wants[at] = event
                sums[at, WANTED] += 1
        for packet in range(packets_of[event], packets_of[event + 1]):
            for i in range(copies_of[packet], copies_of[packet + 1]):
                at = host[i]
                sums[at, DELIVERIES] += 1
                if has_copy[at] == packet:
                    sums[at, DUPLICATES] += 1
                elif has[at] == event:
                    sums[at, REPEATS] += 1
                elif wants[at] == event:
                    sums[at, MET] += 1
                else:
                    sums[at, FALSE_POSITIVES] += 1
                has_copy[at] = packet
                has[at] = event
