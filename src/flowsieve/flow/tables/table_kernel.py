"""From the port sets in a switch's trie to its flow table, where something changed.

Bottom-up, every node gets a value; top-down, the label in force at every node follows from the values, and an
entry stands where it differs from the parent's. Both passes enter only what changed. SMALLEST: the value is a set of
labels (ORTC). FREE: as SMALLEST, where a leaf that nothing can arrive at takes any label, and the bit of the only port
that something arrives on is free, since a switch never sends back. OVERLAY needs less, and is `overlay_kernel`'s.

The plain twin is `meaning.smallest`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from flowsieve.flow.tables.bits_kernel import (
    NONE,
    ONE,
    SEVERAL,
    ZERO,
    flip_port,
    has_port,
    only_port,
    same,
    with_room,
)
from flowsieve.flow.tables.palette_kernel import PICKS, combine, in_set, intern_one, intern_two
from flowsieve.flow.tables.spread_kernel import mark_trie
from flowsieve.flow.tables.trie_kernel import (
    ADVERTISED,
    DIRTY,
    DIRTY_TRIES,
    ENTRY,
    FORCE,
    GONE,
    HEAD,
    INNER,
    MARKS,
    OPS,
    VALUE,
    WANTED,
    go_on,
    group,
    number_of,
    numbered,
    words_of,
)

OVERLAY, SMALLEST, FREE_WHERE_NOTHING_ARRIVES = 0, 1, 2


@njit(cache=True, inline="always")
def set_of(nodes, node):
    """The id of a node's set of labels."""
    head = nodes[node, HEAD]
    return np.int64(nodes[node, group(VALUE, 1)]) if head & INNER else number_of(head)


@njit(cache=True)
def write_label(wanted, advertised, out):
    """The ports that a leaf's packets go to: those wanted, with somebody else advertising."""
    source = only_port(advertised)
    if source == NONE:
        out[:] = ZERO
        return
    out[:] = wanted
    if source != SEVERAL and has_port(out, source):
        flip_port(out, source)


@njit(cache=True)
def arriving_port(wanted, advertised, is_host, is_loose):
    """The only port that a leaf's packets can arrive on, NONE or SEVERAL.

    A host sends what it advertised. A neighbour sends what is advertised behind it and wanted besides it, or
    anything advertised behind it once its table is coarser than it should be (`is_loose`).
    """
    asked = only_port(wanted)
    found = NONE
    for w in range(advertised.shape[0]):
        word = advertised[w]
        if asked == NONE:
            word &= is_host[w] | is_loose[w]
        elif asked >= 0 and asked >> 6 == w:
            bit = ONE << np.uint64(asked & 63)
            word &= ~bit | is_host[w] | is_loose[w]
        while word != ZERO:
            if found != NONE:
                return SEVERAL
            rest = word & (word - ONE)
            at = 0
            lowest = word ^ rest
            while lowest != ONE:
                lowest >>= ONE
                at += 1
            found = (w << 6) + at
            word = rest
    return found


@njit(cache=True)
def leaf_set(palette, mode, wanted, advertised, is_host, is_loose, label):
    """The labels that a leaf may have, as a set's id."""
    if mode == FREE_WHERE_NOTHING_ARRIVES:
        source = arriving_port(wanted, advertised, is_host, is_loose)
        if source == NONE:
            return np.int64(0)
        label[:] = wanted
        if source == SEVERAL:
            return intern_one(palette, label)
        other = label.copy()
        flip_port(other, source)
        return intern_two(palette, label, other)
    write_label(wanted, advertised, label)
    return intern_one(palette, label)


@njit(cache=True)
def value_nodes(nodes, palette, mode, root, is_host, is_loose, scratch, label):
    """Bottom-up over the dirty nodes of one trie: their values."""
    path, stage = scratch[0], scratch[1]
    words = words_of(nodes)
    wanted, advertised = group(WANTED, words), group(ADVERTISED, words)
    hi = lo = ZERO
    level, path[0], stage[0] = 0, root, 0
    while level >= 0:
        node = path[level]
        head = nodes[node, HEAD]
        if head & DIRTY == ZERO:
            level -= 1
        elif head & INNER == ZERO:
            options = leaf_set(
                palette,
                mode,
                nodes[node, wanted : wanted + words],
                nodes[node, advertised : advertised + words],
                is_host,
                is_loose,
                label,
            )
            nodes[node, HEAD] = numbered(options, head & MARKS)
            level -= 1
        elif stage[level] < 2:
            level, hi, lo = go_on(nodes, path, stage, level, 0, hi, lo)
        else:
            pair = number_of(head)
            nodes[node, group(VALUE, words)] = np.uint64(
                combine(palette, set_of(nodes, pair), set_of(nodes, pair + 1))
            )
            level -= 1


# Columns of `changed`: trie, hi, lo, length, whether an entry was and is there, then the old and the new ports.
C_TRIE, C_HI, C_LO, C_LEN, C_WAS, C_IS, C_PORTS = 0, 1, 2, 3, 4, 5, 6


@njit(cache=True)
def note_change(changed, counters, trie, hi, lo, length, was, now):
    """A new row, for which there is room, still without ports."""
    at = counters[OPS]
    counters[OPS] = at + 1
    changed[at, C_TRIE], changed[at, C_HI], changed[at, C_LO] = np.uint64(trie), hi, lo
    changed[at, C_LEN], changed[at, C_WAS], changed[at, C_IS] = (
        np.uint64(length),
        np.uint64(was),
        np.uint64(now),
    )
    return at


@njit(cache=True)
def force_labels(nodes, palette, changed, counters, trie, root, start, first, scratch):
    """Top-down where values or the label from above changed: the labels in force, and the entries that differ.

    Returns `changed`.
    """
    path, stage, ids = scratch[0], scratch[1], scratch[2]
    words = words_of(nodes)
    force = group(FORCE, words)
    hi, lo = first
    level, path[0], stage[0] = 0, root, 0
    while level >= 0:
        node = path[level]
        head = nodes[node, HEAD]
        if stage[level] == 0:
            inherited = ids[level - 1] if level > 0 else 0
            options = set_of(nodes, node)
            ids[level] = inherited if in_set(palette[1], options, inherited) else palette[1][PICKS][options]
            label = palette[0][0][ids[level]]
            was, now = head & ENTRY != ZERO, ids[level] != inherited
            moved = not same(label, nodes[node, force:])
            if was != now or (now and moved):
                changed = with_room(changed, counters[OPS] + 1)
                at = note_change(changed, counters, trie, hi, lo, start + level, was, now)
                for w in range(words):
                    changed[at, C_PORTS + w] = nodes[node, force + w] if was else ZERO
                    changed[at, C_PORTS + words + w] = label[w] if now else ZERO
            nodes[node, force:] = label
            nodes[node, HEAD] = head & ~(DIRTY | ENTRY) | (ENTRY if now else ZERO)
            if head & INNER == ZERO or not (moved or head & DIRTY):
                level -= 1
                continue
        level, hi, lo = go_on(nodes, path, stage, level, start + level, hi, lo)
    return changed


@njit(cache=True)
def net_removed(changed, removed, counters, words):
    """Join the entries whose nodes went away with the changes: first old, last new; equal ones vanish.

    Returns `changed`.
    """
    gone, n_changed = counters[GONE], counters[OPS]
    if gone == 0:
        return changed
    size = 16
    while size < 2 * gone:
        size *= 2
    slots = np.full(size, -1, np.int32)
    for i in range(gone):
        at = slot_of(removed, i, size)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = i
    kept = 0
    for i in range(n_changed):
        if changed[i, C_WAS] == ZERO:
            at = slot_of(changed, i, size)
            while slots[at] != -1:
                j = slots[at]
                if same_key(removed, j, changed, i):
                    changed[i, C_WAS] = ONE
                    for w in range(words):
                        changed[i, C_PORTS + w] = removed[j, 4 + w]
                    removed[j, 0] = ~ZERO
                    break
                at = (at + 1) & (size - 1)
            if changed[i, C_WAS] == ONE:
                differ = False
                for w in range(words):
                    differ = differ or changed[i, C_PORTS + w] != changed[i, C_PORTS + words + w]
                if not differ:
                    continue
        if kept != i:
            changed[kept, :] = changed[i, :]
        kept += 1
    counters[OPS] = kept
    changed = with_room(changed, kept + gone)
    for i in range(gone):
        if removed[i, 0] != ~ZERO:
            trie, length = np.int64(removed[i, 0]), np.int64(removed[i, 3])
            at = note_change(changed, counters, trie, removed[i, 1], removed[i, 2], length, True, False)
            for w in range(words):
                changed[at, C_PORTS + w], changed[at, C_PORTS + words + w] = removed[i, 4 + w], ZERO
    counters[GONE] = 0
    return changed


@njit(cache=True, inline="always")
def slot_of(rows, i, size):
    seed = rows[i, 0] * np.uint64(0x9E3779B97F4A7C15)
    for k in range(1, 4):
        seed = (seed ^ rows[i, k]) * np.uint64(0xD6E8FEB86659FD93)
        seed ^= seed >> np.uint64(32)
    return np.int64(seed & np.uint64(size - 1))


@njit(cache=True, inline="always")
def same_key(rows, i, others, j):
    return (
        rows[i, 0] == others[j, 0]
        and rows[i, 1] == others[j, 1]
        and rows[i, 2] == others[j, 2]
        and rows[i, 3] == others[j, 3]
    )


@njit(cache=True)
def net_changes(changed, removed, counters, entries, words):
    """End an update: returns `changed`, and a copy of its rows that are the net changes."""
    changed = net_removed(changed, removed, counters, words)
    n = counters[OPS]
    for i in range(n):
        entries[np.int64(changed[i, C_TRIE])] += np.int64(changed[i, C_IS]) - np.int64(changed[i, C_WAS])
    counters[OPS] = 0
    return changed, changed[:n].copy()


@njit(cache=True, nogil=True)
def refresh_tables(
    nodes, changed, removed, rows, vectors, label_ids, set_ids, combined, sizes, mode, counters, roots,
    starts, firsts, hosts, loose, scratch, dirty, entries,
):  # fmt: skip
    """Bring the entries of all changed tries up to date; returns `changed`, and a copy of its rows: the net changes.

    The palette comes in parts: a tuple that holds typed containers would cost more to pass than a request to
    serve.
    """
    palette = (rows, vectors, label_ids, set_ids, combined, sizes)
    words = words_of(nodes)
    label = np.zeros(words, np.uint64)
    half = dirty.shape[0] // 2
    for i in range(counters[DIRTY_TRIES]):
        trie = dirty[half + i]
        dirty[trie] = 0
        root = roots[trie]
        value_nodes(nodes, palette, mode, root, hosts[trie], loose[trie], scratch, label)
        first = (firsts[trie, 0], firsts[trie, 1])
        changed = force_labels(nodes, palette, changed, counters, trie, root, starts[trie], first, scratch)
    counters[DIRTY_TRIES] = 0
    return net_changes(changed, removed, counters, entries, words)


@njit(cache=True)
def touch(nodes, counters, dirty, trie, root, scratch):
    """Mark a whole trie as changed, so that its table is worked out anew."""
    path, stage = scratch[0], scratch[1]
    hi = lo = ZERO
    level, path[0], stage[0] = 0, root, 0
    while level >= 0:
        node = path[level]
        nodes[node, HEAD] |= DIRTY
        if nodes[node, HEAD] & INNER:
            level, hi, lo = go_on(nodes, path, stage, level, 0, hi, lo)
        else:
            level -= 1
    mark_trie(dirty, counters, trie)


@njit(cache=True, nogil=True)
def list_entries(nodes, root, start, first, scratch, out):
    """All entries of one trie into `out` (rows: hi, lo, length, ports...); returns how many. `out` has room."""
    path, stage = scratch[0], scratch[1]
    force = group(FORCE, words_of(nodes))
    hi, lo = first
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        head = nodes[path[level], HEAD]
        if stage[level] == 0 and head & ENTRY:
            out[n, 0], out[n, 1], out[n, 2] = hi, lo, np.uint64(start + level)
            out[n, 3:] = nodes[path[level], force:]
            n += 1
        if head & INNER:
            level, hi, lo = go_on(nodes, path, stage, level, start + level, hi, lo)
        else:
            level -= 1
    return n
