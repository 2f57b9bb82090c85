"""How a change of one host's interest spreads over the switches of its tree.

Each switch has, per partition, a binary trie whose leaves hold two port sets: `wanted` (ports behind which
somebody subscribes) and `advertised` (ports behind which somebody publishes). A change of one port's bit over
a region is told to the neighbour behind port p only where "anything besides p" changes with it, so a request
costs what it touches. Equal sibling leaves are merged: the trie is a function of the interests alone,
whatever the order in which they came.

Lists of arrays stand for structures, since a callee can then replace an array by a larger one. The plain twin
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
    flip_port,
    grown,
    grown_rows,
    has_port,
    only_port,
)
from flowsieve.flow.tables.trie_kernel import FREE, LEFT, go_on

# Rows of `sets`: per trie node, port sets. `value` and `force` belong to table_kernel.
WANTED, ADVERTISED, VALUE, FORCE = 0, 1, 2, 3
# `flags`: what stands for a node.
DIRTY, ENTRY = np.uint8(1), np.uint8(2)
# `counters`.
FREE_TOP, NODES, HEAD, TAIL, VISITS, GONE, OPS, DIRTY_TRIES, MESSAGES = 0, 1, 2, 3, 4, 5, 6, 7, 8
N_COUNTERS = 16
# `work[QUEUE]` columns: trie, kind, port, value, hi, lo, length, previous message to the same trie of this
# item + 1.
QUEUE, REMOVED, CHANGED = 0, 1, 2
Q_TRIE, Q_KIND, Q_PORT, Q_ON, Q_HI, Q_LO, Q_LEN, Q_PREV = 0, 1, 2, 3, 4, 5, 6, 7
Q_COLUMNS = 8
VOID = np.uint64(2)


@njit(cache=True)
def take_pair(links, sets, flags, counters):
    """Two new leaves side by side; the number of the left one."""
    if counters[FREE_TOP] > 0:
        counters[FREE_TOP] -= 1
        return np.int64(links[FREE][counters[FREE_TOP]])
    at = counters[NODES]
    if at + 2 > links[LEFT].shape[0]:
        links[LEFT] = grown(links[LEFT], at + 2)
        flags[0] = grown(flags[0], at + 2)
        for k in range(4):
            sets[k] = grown_rows(sets[k], at + 2)
    counters[NODES] = at + 2
    return at


@njit(cache=True)
def give_pair(links, counters, pair):
    top = counters[FREE_TOP]
    if top == links[FREE].shape[0]:
        links[FREE] = grown(links[FREE], top + 1)
    links[FREE][top] = pair
    counters[FREE_TOP] = top + 1


@njit(cache=True)
def split(links, sets, flags, counters, node):
    """Turn a leaf into a node with two leaves like it."""
    pair = take_pair(links, sets, flags, counters)
    left, mark = links[LEFT], flags[0]
    for child in (pair, pair + 1):
        left[child] = -1
        mark[child] = DIRTY
        for k in (WANTED, ADVERTISED):
            sets[k][child, :] = sets[k][node, :]
    left[node] = pair
    return pair


@njit(cache=True)
def note_removed(work, counters, trie, hi, lo, length, force):
    """Remember an entry whose node is gone: (trie, hi, lo, length, ports...)."""
    at = counters[GONE]
    if at == work[REMOVED].shape[0]:
        work[REMOVED] = grown_rows(work[REMOVED], at + 1)
    row = work[REMOVED][at]
    row[0] = np.uint64(trie)
    row[1] = hi
    row[2] = lo
    row[3] = np.uint64(length)
    row[4:] = force
    counters[GONE] = at + 1


@njit(cache=True)
def merge_if_equal(links, left, mark, wanted, advertised, force, work, counters, trie, node, hi, lo, depth):
    """Undo a split that tells nothing apart any more, and say whether; (hi, lo) are the node's own bits."""
    pair = np.int64(left[node])
    if left[pair] >= 0 or left[pair + 1] >= 0:
        return False
    for w in range(wanted.shape[1]):
        if wanted[pair, w] != wanted[pair + 1, w] or advertised[pair, w] != advertised[pair + 1, w]:
            return False
    for w in range(wanted.shape[1]):
        wanted[node, w], advertised[node, w] = wanted[pair, w], advertised[pair, w]
    if (mark[pair] | mark[pair + 1]) & ENTRY:
        bit_hi, bit_lo = bit_words(depth)
        if mark[pair] & ENTRY:
            note_removed(work, counters, trie, hi, lo, depth + 1, force[pair])
        if mark[pair + 1] & ENTRY:
            note_removed(work, counters, trie, hi | bit_hi, lo | bit_lo, depth + 1, force[pair + 1])
    mark[pair] = mark[pair + 1] = 0
    left[node] = -1
    give_pair(links, counters, pair)
    return True


@njit(cache=True)
def enqueue(work, counters, trie, kind, port, on, hi, lo, length, previous):
    """Append a message, or widen the one before it if the two complete a region; the message's row."""
    queue = work[QUEUE]
    if previous >= 0 and queue[previous, Q_ON] == on and np.int64(queue[previous, Q_LEN]) == length:
        bit_hi, bit_lo = bit_words(length - 1)
        if (
            queue[previous, Q_HI] | bit_hi == hi
            and queue[previous, Q_LO] | bit_lo == lo
            and hi & bit_hi | lo & bit_lo != ZERO
        ):
            while True:
                length -= 1
                queue[previous, Q_LEN] = np.uint64(length)
                before = np.int64(queue[previous, Q_PREV]) - 1
                if before < 0 or np.int64(queue[before, Q_LEN]) != length or queue[before, Q_ON] != on:
                    return previous
                bit_hi, bit_lo = bit_words(length - 1)
                hi, lo = queue[previous, Q_HI], queue[previous, Q_LO]
                if (
                    queue[before, Q_HI] | bit_hi != hi
                    or queue[before, Q_LO] | bit_lo != lo
                    or hi & bit_hi | lo & bit_lo == ZERO
                ):
                    return previous
                queue[previous, Q_ON] = VOID
                previous = before
    at = counters[TAIL]
    if at == queue.shape[0]:
        work[QUEUE] = queue = grown_rows(queue, at + 1)
    row = queue[at]
    row[Q_TRIE] = np.uint64(trie)
    row[Q_KIND] = np.uint64(kind)
    row[Q_PORT] = np.uint64(port)
    row[Q_ON] = on
    row[Q_HI] = hi
    row[Q_LO] = lo
    row[Q_LEN] = np.uint64(length)
    row[Q_PREV] = np.uint64(previous + 1)
    counters[TAIL] = at + 1
    return at


@njit(cache=True)
def tell_neighbours(work, counters, shape, last, trie, kind, port, was, on, hi, lo, length):
    """After `port`'s bit changed in a leaf: tell those for whom "anything besides you" changed.

    `was` is what the set held besides `port`: NONE, one port, or SEVERAL.
    """
    towards, back = shape
    if was == SEVERAL:
        return
    if was >= 0:
        if towards[trie, was] >= 0:
            last[was] = enqueue(
                work, counters, towards[trie, was], kind, back[trie, was], on, hi, lo, length, last[was]
            )
        return
    for p in range(towards.shape[1]):
        if p != port and towards[trie, p] >= 0:
            last[p] = enqueue(
                work, counters, towards[trie, p], kind, back[trie, p], on, hi, lo, length, last[p]
            )


@njit(cache=True)
def change_region(links, sets, flags, work, counters, shape, roots, starts, scratch, dirty, item):
    """Carry out one message at one trie: set a port's bit over a region, and tell the neighbours what follows."""
    message = work[QUEUE][item]
    trie, kind, port = np.int64(message[Q_TRIE]), np.int64(message[Q_KIND]), np.int64(message[Q_PORT])
    on, hi, lo, length = message[Q_ON], message[Q_HI], message[Q_LO], np.int64(message[Q_LEN])
    wish = on == ONE
    path, stage, last, seen = scratch[0], scratch[1], scratch[2], scratch[3]
    node, depth, top = np.int64(roots[trie]), np.int64(starts[trie]), np.int64(starts[trie])
    counters[MESSAGES] += 1
    left, old = (
        links[LEFT],
        length,
    )  # nodes below depth `old` are new, and dirty though those above may not be
    while depth < length:
        if left[node] < 0:
            if has_port(sets[kind][node], port) == wish:
                counters[VISITS] += 1
                return
            split(links, sets, flags, counters, node)
            left, old = links[LEFT], min(old, depth)
        path[depth] = node
        node = np.int64(left[node]) + bit_at(hi, lo, depth)
        depth += 1

    last[:] = -1
    mark, ports = flags[0], sets[kind]
    wanted, advertised, force = sets[WANTED], sets[ADVERTISED], sets[FORCE]
    changed = 0  # leaves, so far; `seen` holds the count at which each node on the path was entered
    level, path[length], stage[length] = length, node, 0
    while level >= length:
        node = np.int64(path[level])
        if left[node] < 0:
            counters[VISITS] += 1
            row = ports[node]
            if has_port(row, port) != wish:
                changed += 1
                mark[node] |= DIRTY
                if not wish:
                    flip_port(row, port)
                was = only_port(row)
                if wish:
                    flip_port(row, port)
                tell_neighbours(work, counters, shape, last, trie, kind, port, was, on, hi, lo, level)
            level -= 1
            continue
        if stage[level] == 0:
            seen[level] = changed
        done = stage[level] == 2 and changed > seen[level]
        level, hi, lo = go_on(left, path, stage, level, level, hi, lo)
        if done:
            mark[node] |= DIRTY  # a dirty node has dirty nodes above it, or none of the passes would find it
            merge_if_equal(
                links, left, mark, wanted, advertised, force, work, counters, trie, node, hi, lo, level + 1
            )
    if changed == 0:
        return
    merging = True
    for level in range(length - 1, top - 1, -1):
        node = np.int64(path[level])
        if merging:
            hi, lo = cut(hi, lo, level)
            merging = merge_if_equal(
                links, left, mark, wanted, advertised, force, work, counters, trie, node, hi, lo, level
            )
        elif level <= old and mark[node] & DIRTY:
            break  # and so is all above it
        mark[node] |= DIRTY
    if dirty[trie] == 0:
        dirty[trie] = 1
        dirty[dirty.shape[0] // 2 + counters[DIRTY_TRIES]] = trie
        counters[DIRTY_TRIES] += 1


@njit(cache=True, nogil=True)
def spread(links, sets, flags, work, counters, shape, roots, starts, scratch, dirty):
    """Work off the queue of messages, in the order in which they were sent."""
    while counters[HEAD] < counters[TAIL]:
        item = counters[HEAD]
        counters[HEAD] += 1
        if work[QUEUE][item, Q_ON] != VOID:
            change_region(links, sets, flags, work, counters, shape, roots, starts, scratch, dirty, item)
    counters[HEAD] = counters[TAIL] = 0


@njit(cache=True)
def introduce(links, sets, work, counters, root, start, first, kind, towards, port, scratch):
    """Tell a new neighbour all that a trie has an interest in; nothing is known yet behind the port between them."""
    left, ports = links[LEFT], sets[kind]
    path, stage = scratch[0], scratch[1]
    hi, lo = first
    level, path[0], stage[0], previous = 0, root, 0, np.int64(-1)
    while level >= 0:
        node = np.int64(path[level])
        if left[node] >= 0:
            level, hi, lo = go_on(left, path, stage, level, start + level, hi, lo)
            continue
        if only_port(ports[node]) != NONE:
            previous = enqueue(work, counters, towards, kind, port, ONE, hi, lo, start + level, previous)
        level -= 1


@njit(cache=True)
def announce(work, counters, partition_dz, switch, kind, port, on, hi, lo, length):
    """Send a change of a host's own interest to its switch, partition by partition."""
    n = partition_dz.shape[0]
    for part in range(n):
        part_hi, part_lo, part_len = (
            partition_dz[part, 0],
            partition_dz[part, 1],
            np.int64(partition_dz[part, 2]),
        )
        shorter = min(part_len, length)
        a_hi, a_lo = cut(hi, lo, shorter)
        b_hi, b_lo = cut(part_hi, part_lo, shorter)
        if a_hi != b_hi or a_lo != b_lo:
            continue
        if part_len > length:
            enqueue(work, counters, switch * n + part, kind, port, on, part_hi, part_lo, part_len, -1)
        else:
            enqueue(work, counters, switch * n + part, kind, port, on, hi, lo, length, -1)
