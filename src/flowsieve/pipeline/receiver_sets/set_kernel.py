"""Hosts put into sets so that events touch few of them, compiled; the plain twin is `tests/pipeline/plain_sets.py`.

An audience is the hosts that want one event. `start` and `host` list the hosts of each audience, `first` and `audience`
the audiences of each host, and `weight` says how much each audience counts.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NOWHERE = -1


@njit(cache=True, nogil=True)
def grow(start, host, first, audience, weight, most, sets, least, part):
    """Fill sets one after the other, always with the host that shares most with those in it.

    A set begins with the host that most is for. The next is the one with the greatest share of its own audiences that
    the set has touched; where that is below `least` the set stays as it is, if the other sets have room for all hosts
    that are left. `part` gets the set of each host.
    """
    hosts = len(first) - 1
    total = np.zeros(hosts, np.int64)
    for v in range(hosts):
        part[v] = NOWHERE
        for i in range(first[v], first[v + 1]):
            total[v] += weight[audience[i]]
    left = hosts
    for k in range(sets):
        touched = np.zeros(len(weight), np.bool_)
        shared = np.zeros(hosts, np.int64)
        size = 0
        while left and size < most:
            best, best_value = NOWHERE, -1.0
            for v in range(hosts):
                if part[v] == NOWHERE:
                    value = float(total[v]) if size == 0 else shared[v] / max(1, total[v])
                    if value > best_value:
                        best, best_value = v, value
            if size and best_value < least and left <= (sets - k - 1) * most:
                break
            part[best] = k
            size += 1
            left -= 1
            for i in range(first[best], first[best + 1]):
                e = audience[i]
                if not touched[e]:
                    touched[e] = True
                    for j in range(start[e], start[e + 1]):
                        shared[host[j]] += weight[e]


@njit(cache=True, nogil=True)
def count_touched(start, host, part, sets):
    """How many hosts of each audience are in each set."""
    counts = np.zeros((len(start) - 1, sets), np.int8)  # a set has 112 hosts at most
    for e in range(len(start) - 1):
        for j in range(start[e], start[e + 1]):
            counts[e, part[host[j]]] += 1
    return counts


@njit(cache=True, nogil=True)
def sum_ties(start, host, weight, part, counts):
    """ties[v, k]: how much of host v's audiences has another host in set k."""
    ties = np.zeros((len(part), counts.shape[1]), np.int64)
    for e in range(len(weight)):
        for j in range(start[e], start[e + 1]):
            v = host[j]
            for k in range(counts.shape[1]):
                if counts[e, k] > (1 if part[v] == k else 0):
                    ties[v, k] += weight[e]
    return ties


@njit(cache=True, nogil=True)
def move(v, b, start, host, first, audience, weight, part, sizes, counts, ties):
    """Put a host into another set."""
    a = part[v]
    for i in range(first[v], first[v + 1]):
        e = audience[i]
        w, in_a, in_b = weight[e], counts[e, a], counts[e, b]
        if in_a <= 2 or in_b <= 1:
            for j in range(start[e], start[e + 1]):
                u = host[j]
                if u == v:
                    continue
                if in_a == 1 or (in_a == 2 and part[u] == a):
                    ties[u, a] -= w
                if in_b == 0 or (in_b == 1 and part[u] == b):
                    ties[u, b] += w
        counts[e, a] -= 1
        counts[e, b] += 1
    part[v] = b
    sizes[a] -= 1
    sizes[b] += 1


@njit(cache=True, nogil=True)
def improve(order, most, start, host, first, audience, weight, part, sizes, counts, ties):
    """One round: each host is moved to the set, or changes places with the host, that saves most; what all saved.

    A move goes to a set with room; of several that save as much the first is taken, moves before exchanges.
    """
    saved, common = 0, np.zeros(len(part), np.int64)
    for v in order:
        a = part[v]
        best, to, other = 0, NOWHERE, NOWHERE
        for b in range(len(sizes)):
            if b != a and sizes[b] < most and ties[v, b] - ties[v, a] > best:
                best, to = ties[v, b] - ties[v, a], b
        for i in range(first[v], first[v + 1]):  # where both are wanted an exchange frees no set
            e = audience[i]
            alone = 1 if counts[e, a] == 1 else 0
            for j in range(start[e], start[e + 1]):
                u = host[j]
                common[u] += weight[e] * (alone + (1 if counts[e, part[u]] == 1 else 0))
        for u in range(len(part)):
            b = part[u]
            if b != a:
                gain = ties[v, b] - ties[v, a] + ties[u, a] - ties[u, b] - common[u]
                if gain > best:
                    best, to, other = gain, b, u
            common[u] = 0
        if to != NOWHERE:
            saved += best
            move(v, to, start, host, first, audience, weight, part, sizes, counts, ties)
            if other != NOWHERE:
                move(other, a, start, host, first, audience, weight, part, sizes, counts, ties)
    return saved


@njit(cache=True, nogil=True)
def list_audiences(start, who, home, source, begin, out):
    """List the hosts that want each event, in rising order and each once; those of event e from begin[e] on.

    `who` has the subscriptions that match, those of event e from start[e] on, `home` the host of each of them, and
    `source` who published each event: it is not told of its own.
    """
    n, seen = 0, np.full(home.max() + 1 if len(home) else 0, NOWHERE, np.int64)
    for event in range(len(start) - 1):
        begin[event] = n
        for i in range(start[event], start[event + 1]):
            host = home[who[i]]
            if seen[host] != event and host != source[event]:
                seen[host] = event
                out[n] = host
                n += 1
        out[begin[event] : n].sort()
    begin[len(start) - 1] = n


@njit(cache=True, nogil=True)
def count_packets(begin, host, parts, sets, above_start, above, edges, packets, crossings):
    """Add up, for each way to put hosts into sets, the packets of events, and the edges of the tree that they cross.

    An event takes a packet for each set that it touches. From the tree's root that crosses every edge beyond which a
    host of the set wants it; those above host v are listed in `above` from above_start[v] on.
    """
    for way in range(len(parts)):
        seen, crossed = np.full(sets, NOWHERE, np.int64), np.full((edges, sets), NOWHERE, np.int64)
        for event in range(len(begin) - 1):
            for j in range(begin[event], begin[event + 1]):
                v = host[j]
                k = parts[way, v]
                if seen[k] != event:
                    seen[k] = event
                    packets[way] += 1
                for i in range(above_start[v], above_start[v + 1]):
                    if crossed[above[i], k] != event:
                        crossed[above[i], k] = event
                        crossings[way] += 1
