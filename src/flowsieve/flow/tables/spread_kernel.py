"""How a change of one host's interest spreads over the switches of its tree.

Each switch has, per partition, a binary trie whose leaves hold two port sets: `wanted` (ports behind which
somebody subscribes) and `advertised` (ports behind which somebody publishes). A change of one port's bit over
a region is told to the neighbour behind port p only where "anything besides p" changes with it, so a request
costs what it touches. What a neighbour is told at once is a run of messages, and one walk through its trie carries
them all out: they are near each other, and each would begin at the root. Equal sibling leaves are merged: the trie is a
function of the interests alone, whatever the order in which they came.

A kernel cannot replace its caller's array by a larger one, so one that lets arrays grow returns them. The plain twin
is `meaning.port_sets`, from which the laws compare.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import (
    NONE,
    ONE,
    SEVERAL,
    ZERO,
    bit_at,
    bit_words,
    cut,
    differs,
    only_port_of,
    with_room,
)
from flowsieve.flow.tables.trie_kernel import (
    DIRTY,
    DIRTY_TRIES,
    ENTRY,
    FORCE,
    GONE,
    HEAD,
    INNER,
    MAX_DEPTH,
    NODES,
    RUN,
    RUNS,
    TAIL,
    VISITS,
    give_pair,
    go_on,
    group,
    number_of,
    split,
    words_of,
)

# Columns of `runs`: whose messages they are, whether they set the port's bit, the first message and the last.
R_TRIE, R_KIND, R_PORT, R_ON, R_FIRST, R_LAST = 0, 1, 2, 3, 4, 5
R_COLUMNS = 6
# Columns of `messages`: the region, and the messages before and after it in the run. Message 0 is none.
M_HI, M_LO, M_LEN, M_BEFORE, M_NEXT = 0, 1, 2, 3, 4
M_COLUMNS = 5


@njit(cache=True)
def open_run(runs, counters, trie, kind, port, on):
    """A new run, for which there is room, still without messages."""
    run = counters[RUNS]
    counters[RUNS] = run + 1
    runs[run, R_TRIE], runs[run, R_KIND], runs[run, R_PORT], runs[run, R_ON] = trie, kind, port, on
    runs[run, R_FIRST] = runs[run, R_LAST] = 0
    return run


@njit(cache=True)
def send(messages, runs, counters, run, hi, lo, length):
    """Append a message, for which there is room, or widen the last ones if they complete a region with it."""
    before, at = runs[run, R_LAST], np.int64(0)
    while before > 0 and length > 0 and messages[before, M_LEN] == np.uint64(length):
        bit_hi, bit_lo = bit_words(length - 1)
        if (
            hi & bit_hi | lo & bit_lo == ZERO
            or messages[before, M_HI] | bit_hi != hi
            or messages[before, M_LO] | bit_lo != lo
        ):
            break
        hi, lo, length = messages[before, M_HI], messages[before, M_LO], length - 1
        at, before = before, np.int64(messages[before, M_BEFORE])
    if at == 0:
        at = counters[TAIL]
        counters[TAIL] = at + 1
    messages[at, M_HI], messages[at, M_LO], messages[at, M_LEN] = hi, lo, np.uint64(length)
    messages[at, M_BEFORE], messages[at, M_NEXT] = np.uint64(before), ZERO
    if before > 0:
        messages[before, M_NEXT] = np.uint64(at)
    else:
        runs[run, R_FIRST] = at
    runs[run, R_LAST] = at


@njit(cache=True)
def tell_neighbours(messages, runs, counters, shape, told, source, besides, hi, lo, length):
    """After a port's bit changed in a leaf: tell those for whom "anything besides you" changed.

    `source` is the run that changed it, and `besides` what the set holds besides its port: NONE, one port, or
    SEVERAL. `told` has, by port, the run that its neighbour is told in.
    """
    if besides == SEVERAL:
        return
    towards, back = shape
    trie, own = runs[source, R_TRIE], runs[source, R_PORT]
    first, end = (np.int64(0), towards.shape[1]) if besides == NONE else (besides, besides + 1)
    for port in range(first, end):
        if port != own and towards[trie, port] >= 0:
            if told[port] < 0:
                told[port] = open_run(
                    runs,
                    counters,
                    towards[trie, port],
                    runs[source, R_KIND],
                    back[trie, port],
                    runs[source, R_ON],
                )
            send(messages, runs, counters, told[port], hi, lo, length)


@njit(cache=True)
def note_removed(removed, counters, trie, hi, lo, length, nodes, node, words):
    """Remember an entry whose node is gone: (trie, hi, lo, length, ports...)."""
    at = counters[GONE]
    counters[GONE] = at + 1
    removed[at, 0], removed[at, 1], removed[at, 2] = np.uint64(trie), hi, lo
    removed[at, 3] = np.uint64(length)
    for w in range(words):
        removed[at, 4 + w] = nodes[node, group(FORCE, words) + w]


@njit(cache=True)
def close(nodes, removed, counters, trie, node, hi, lo, depth, words):
    """Leave a node below which something changed: undo a split that tells nothing apart any more.

    A dirty node has dirty nodes above it, or none of the later passes would find it. Returns `removed`.
    """
    head = nodes[node, HEAD] | DIRTY
    nodes[node, HEAD] = head
    if head & INNER == ZERO:
        return removed
    pair = number_of(head)
    marks = nodes[pair, HEAD] | nodes[pair + 1, HEAD]
    if marks & INNER:
        return removed
    for column in range(1, 1 + 2 * words):
        if nodes[pair, column] != nodes[pair + 1, column]:
            return removed
    for column in range(1, 1 + 2 * words):
        nodes[node, column] = nodes[pair, column]
    if marks & ENTRY:
        removed = with_room(removed, counters[GONE] + 2)
        hi, lo = cut(hi, lo, depth)
        if nodes[pair, HEAD] & ENTRY:
            note_removed(removed, counters, trie, hi, lo, depth + 1, nodes, pair, words)
        if nodes[pair + 1, HEAD] & ENTRY:
            bit_hi, bit_lo = bit_words(depth)
            note_removed(removed, counters, trie, hi | bit_hi, lo | bit_lo, depth + 1, nodes, pair + 1, words)
    nodes[node, HEAD] = head & (ENTRY | DIRTY)
    give_pair(nodes, counters, pair)
    return removed


@njit(cache=True)
def carry_out(nodes, messages, removed, runs, counters, shape, roots, starts, scratch, run):
    """Carry out a run at its trie: set a port's bit over the regions, and tell the neighbours what follows.

    The walk stands at `path[depth]`, whose dz is the first bits of (hi, lo). Returns `nodes`, `messages` and
    `removed`, and whether something changed.
    """
    trie, kind, port = runs[run, R_TRIE], runs[run, R_KIND], runs[run, R_PORT]
    words, ports = words_of(nodes), shape[0].shape[1]
    first = group(kind, words)
    word, bit = first + (port >> 6), ONE << np.uint64(port & 63)
    wish = bit if runs[run, R_ON] else ZERO
    path, stage, seen, told = scratch
    for p in range(ports):
        told[p] = -1
    top = depth = starts[trie]
    changed = 0  # leaves, so far; `seen` holds the count at which each node on the path was entered
    path[depth], seen[depth] = roots[trie], changed
    hi = lo = ZERO
    at = runs[run, R_FIRST]
    while at > 0:
        to_hi, to_lo, length = messages[at, M_HI], messages[at, M_LO], np.int64(messages[at, M_LEN])
        at = np.int64(messages[at, M_NEXT])
        while depth > top and (depth > length or differs(hi ^ to_hi, lo ^ to_lo, depth)):
            if changed > seen[depth]:
                removed = close(nodes, removed, counters, trie, path[depth], hi, lo, depth, words)
            depth -= 1
        hi, lo = to_hi, to_lo
        nodes = with_room(nodes, counters[NODES] + 2 * MAX_DEPTH)
        node = path[depth]
        while depth < length:
            head = nodes[node, HEAD]
            if head & INNER:
                pair = number_of(head)
            elif nodes[node, word] & bit == wish:
                break
            else:
                pair = split(nodes, counters, node, words)
            node = pair + bit_at(hi, lo, depth)
            depth += 1
            path[depth], seen[depth] = node, changed
        if depth < length:
            counters[VISITS] += 1
            continue
        level, stage[depth] = depth, 0
        while level >= depth:
            node = path[level]
            if nodes[node, HEAD] & INNER:
                if stage[level] == 0 and level > depth:
                    seen[level] = changed
                done = stage[level] == 2 and changed > seen[level]
                level, hi, lo = go_on(nodes, path, stage, level, level, hi, lo)
                if done:
                    removed = close(nodes, removed, counters, trie, node, hi, lo, level + 1, words)
                continue
            counters[VISITS] += 1
            if nodes[node, word] & bit != wish:
                changed += 1
                nodes[node, HEAD] |= DIRTY
                nodes[node, word] &= ~bit
                besides = only_port_of(nodes, node, first, words)
                nodes[node, word] |= wish
                messages = with_room(messages, counters[TAIL] + ports)
                tell_neighbours(messages, runs, counters, shape, told, run, besides, hi, lo, level)
            level -= 1
    while depth >= top:
        if changed > seen[depth]:
            removed = close(nodes, removed, counters, trie, path[depth], hi, lo, depth, words)
        depth -= 1
    return nodes, messages, removed, changed > 0


@njit(cache=True, nogil=True)
def spread(nodes, messages, runs, removed, counters, shape, roots, starts, scratch, dirty):
    """Work off all runs, in the order in which they were sent; returns `nodes`, `messages`, `runs` and `removed`."""
    while counters[RUN] < counters[RUNS]:
        run = counters[RUN]
        runs = with_room(runs, counters[RUNS] + shape[0].shape[1])
        nodes, messages, removed, changed = carry_out(
            nodes, messages, removed, runs, counters, shape, roots, starts, scratch, run
        )
        if changed:
            mark_trie(dirty, counters, runs[run, R_TRIE])
        counters[RUN] = run + 1
    counters[RUN] = counters[RUNS] = 0
    counters[TAIL] = 1
    return nodes, messages, runs, removed


@njit(cache=True, inline="always")
def mark_trie(dirty, counters, trie):
    """Put a trie on the list of those that the next update goes through: the second half of `dirty`."""
    if dirty[trie] == 0:
        dirty[trie] = 1
        dirty[dirty.shape[0] // 2 + counters[DIRTY_TRIES]] = trie
        counters[DIRTY_TRIES] += 1


@njit(cache=True)
def ask(messages, runs, counters, trie, kind, port, on, hi, lo, length):
    """Have a port's bit set over one region, or cleared; returns `messages` and `runs`."""
    messages, runs = with_room(messages, counters[TAIL] + 1), with_room(runs, counters[RUNS] + 1)
    send(messages, runs, counters, open_run(runs, counters, trie, kind, port, on), hi, lo, length)
    return messages, runs


@njit(cache=True)
def introduce(nodes, messages, runs, counters, root, start, first, kind, towards, port, scratch):
    """Tell a new neighbour all that a trie has an interest in; nothing is known yet behind the port between them.

    Returns `messages` and `runs`.
    """
    words = words_of(nodes)
    path, stage = scratch[0], scratch[1]
    runs = with_room(runs, counters[RUNS] + 1)
    run = open_run(runs, counters, towards, kind, port, 1)
    hi, lo = first
    level, path[0], stage[0] = 0, root, 0
    while level >= 0:
        node = path[level]
        if nodes[node, HEAD] & INNER:
            level, hi, lo = go_on(nodes, path, stage, level, start + level, hi, lo)
            continue
        if only_port_of(nodes, node, group(kind, words), words) != NONE:
            messages = with_room(messages, counters[TAIL] + 1)
            send(messages, runs, counters, run, hi, lo, start + level)
        level -= 1
    return messages, runs


@njit(cache=True)
def announce(messages, runs, counters, partition_dz, switch, kind, port, on, hi, lo, length):
    """Send a change of a host's own interest to its switch, partition by partition; returns `messages` and `runs`.

    What follows each other for one trie is one run.
    """
    n = partition_dz.shape[0]
    messages, runs = with_room(messages, counters[TAIL] + n), with_room(runs, counters[RUNS] + n)
    for part in range(n):
        part_hi, part_lo, part_len = (
            partition_dz[part, 0],
            partition_dz[part, 1],
            np.int64(partition_dz[part, 2]),
        )
        if differs(hi ^ part_hi, lo ^ part_lo, min(part_len, length)):
            continue
        trie, run = switch * n + part, counters[RUNS] - 1
        if (
            run < 0
            or runs[run, R_TRIE] != trie
            or runs[run, R_KIND] != kind
            or runs[run, R_PORT] != port
            or runs[run, R_ON] != on
        ):
            run = open_run(runs, counters, trie, kind, port, on)
        if part_len > length:
            send(messages, runs, counters, run, part_hi, part_lo, part_len)
        else:
            send(messages, runs, counters, run, hi, lo, length)
    return messages, runs
