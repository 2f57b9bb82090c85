"""From the port sets in a switch's trie to its flow table, where something changed.

Bottom-up, every node gets a value; top-down, the label in force at every node follows from the values, and an
entry stands where it differs from the parent's. Both passes enter only what changed. OVERLAY: the value is
the set of ports that the whole subtree shares. SMALLEST: the value is a set of labels (ORTC). FREE: as
SMALLEST, where a leaf that nothing can arrive at takes any label, and the bit of the only port that something
arrives on is free, since a switch never sends back.

The plain twins are `meaning.overlay` and `meaning.smallest`.
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
    grown_rows,
    has_port,
    only_port,
    same,
)
from flowsieve.flow.tables.palette_kernel import PICKS, combine, in_set, intern_one, intern_two
from flowsieve.flow.tables.spread_kernel import (
    ADVERTISED,
    CHANGED,
    DIRTY,
    DIRTY_TRIES,
    ENTRY,
    FORCE,
    GONE,
    OPS,
    REMOVED,
    VALUE,
    WANTED,
)
from flowsieve.flow.tables.trie_kernel import LEFT, go_on

OVERLAY, SMALLEST, FREE_WHERE_NOTHING_ARRIVES = 0, 1, 2


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
def value_nodes(links, sets, flags, palette, mode, root, is_host, is_loose, scratch, label):
    """Bottom-up over the dirty nodes of one trie: their values."""
    path, stage = scratch[0], scratch[1]
    left, mark, value = links[LEFT], flags[0], sets[VALUE]
    wanted, advertised = sets[WANTED], sets[ADVERTISED]
    hi = lo = ZERO
    level, path[0], stage[0] = 0, root, 0
    while level >= 0:
        node = np.int64(path[level])
        if mark[node] & DIRTY == 0:
            level -= 1
        elif left[node] < 0:
            if mode == OVERLAY:
                write_label(wanted[node], advertised[node], value[node])
            else:
                value[node, 0] = np.uint64(
                    leaf_set(palette, mode, wanted[node], advertised[node], is_host, is_loose, label)
                )
            level -= 1
        elif stage[level] < 2:
            level, hi, lo = go_on(left, path, stage, level, 0, hi, lo)
        else:
            pair = np.int64(left[node])
            if mode == OVERLAY:
                for w in range(value.shape[1]):
                    value[node, w] = value[pair, w] & value[pair + 1, w]
            else:
                value[node, 0] = np.uint64(
                    combine(palette, np.int64(value[pair, 0]), np.int64(value[pair + 1, 0]))
                )
            level -= 1


# Columns of `work[CHANGED]`: trie, hi, lo, length, whether an entry was and is there, then the old and the
# new ports.
C_TRIE, C_HI, C_LO, C_LEN, C_WAS, C_IS, C_PORTS = 0, 1, 2, 3, 4, 5, 6


@njit(cache=True)
def note_change(work, counters, trie, hi, lo, length, was, old, now, new):
    at = counters[OPS]
    if at == work[CHANGED].shape[0]:
        work[CHANGED] = grown_rows(work[CHANGED], at + 1)
    row = work[CHANGED][at]
    words = old.shape[0]
    row[C_TRIE], row[C_HI], row[C_LO], row[C_LEN] = np.uint64(trie), hi, lo, np.uint64(length)
    row[C_WAS], row[C_IS] = np.uint64(was), np.uint64(now)
    for w in range(words):
        row[C_PORTS + w] = old[w] if was else ZERO
        row[C_PORTS + words + w] = new[w] if now else ZERO
    counters[OPS] = at + 1


@njit(cache=True)
def force_labels(links, sets, flags, palette, mode, work, counters, trie, root, start, first, scratch, label):
    """Top-down where values or the label from above changed: the labels in force, and the entries that differ."""
    path, stage, ids = scratch[0], scratch[1], scratch[3]
    left, mark, value, force = links[LEFT], flags[0], sets[VALUE], sets[FORCE]
    hi, lo = first
    level, path[0], stage[0] = 0, root, 0
    above = np.zeros(force.shape[1], np.uint64)
    while level >= 0:
        node = np.int64(path[level])
        if stage[level] == 0:
            if level > 0:
                above[:] = force[path[level - 1]]
            else:
                above[:] = ZERO
            if mode == OVERLAY:
                label[:] = value[node]
            else:
                inherited = ids[level - 1] if level > 0 else 0
                options = np.int64(value[node, 0])
                if in_set(palette[1], options, inherited):
                    ids[level] = inherited
                else:
                    ids[level] = palette[1][PICKS][options]
                label[:] = palette[0][0][ids[level]]
            was, now = mark[node] & ENTRY != 0, not same(label, above)
            moved = not same(label, force[node])
            if was != now or (now and moved):
                note_change(work, counters, trie, hi, lo, start + level, was, force[node], now, label)
            enter = left[node] >= 0 and (moved or mark[node] & DIRTY != 0)
            force[node, :] = label
            mark[node] = ENTRY if now else np.uint8(0)
            if not enter:
                level -= 1
                continue
        level, hi, lo = go_on(left, path, stage, level, start + level, hi, lo)


@njit(cache=True)
def net_removed(work, counters, words):
    """Join the entries whose nodes went away with the changes: first old, last new; equal ones vanish."""
    gone, n_changed = counters[GONE], counters[OPS]
    if gone == 0:
        return
    size = 16
    while size < 2 * gone:
        size *= 2
    slots = np.full(size, -1, np.int64)
    removed = work[REMOVED]
    for i in range(gone):
        at = slot_of(removed[i], size)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = i
    kept = 0
    changed = work[CHANGED]
    for i in range(n_changed):
        row = changed[i]
        if row[C_WAS] == ZERO:
            at = slot_of(row, size)
            while slots[at] != -1:
                j = slots[at]
                if same_key(removed[j], row):
                    row[C_WAS] = ONE
                    row[C_PORTS : C_PORTS + words] = removed[j, 4:]
                    removed[j, 0] = ~ZERO
                    break
                at = (at + 1) & (size - 1)
            if row[C_WAS] == ONE and same(
                row[C_PORTS : C_PORTS + words], row[C_PORTS + words : C_PORTS + 2 * words]
            ):
                continue
        if kept != i:
            changed[kept, :] = row
        kept += 1
    counters[OPS] = kept
    nothing = np.zeros(words, np.uint64)
    for i in range(gone):
        row = removed[i]
        if row[0] != ~ZERO:
            note_change(
                work,
                counters,
                np.int64(row[0]),
                row[1],
                row[2],
                np.int64(row[3]),
                True,
                row[4:],
                False,
                nothing,
            )
    counters[GONE] = 0


@njit(cache=True, inline="always")
def slot_of(row, size):
    seed = row[0] * np.uint64(0x9E3779B97F4A7C15)
    for k in range(1, 4):
        seed = (seed ^ row[k]) * np.uint64(0xD6E8FEB86659FD93)
        seed ^= seed >> np.uint64(32)
    return np.int64(seed & np.uint64(size - 1))


@njit(cache=True, inline="always")
def same_key(left, right):
    return left[0] == right[0] and left[1] == right[1] and left[2] == right[2] and left[3] == right[3]


@njit(cache=True, nogil=True)
def refresh_tables(
    links, sets, flags, rows, vectors, label_ids, set_ids, combined, sizes, mode, work, counters, roots,
    starts, firsts, hosts, loose, scratch, dirty, entries,
):  # fmt: skip
    """Bring the entries of all changed tries up to date; returns the net changes, rows as in `work[CHANGED]`.

    The palette comes in parts: a tuple that holds typed containers would cost more to pass than a request to
    serve.
    """
    palette = (rows, vectors, label_ids, set_ids, combined, sizes)
    words = sets[0].shape[1]
    label = np.zeros(words, np.uint64)
    half = dirty.shape[0] // 2
    for i in range(counters[DIRTY_TRIES]):
        trie = dirty[half + i]
        dirty[trie] = 0
        root = roots[trie]
        value_nodes(links, sets, flags, palette, mode, root, hosts[trie], loose[trie], scratch, label)
        first = (firsts[trie, 0], firsts[trie, 1])
        force_labels(
            links, sets, flags, palette, mode, work, counters, trie, root, starts[trie], first, scratch, label
        )
    counters[DIRTY_TRIES] = 0
    net_removed(work, counters, words)
    for i in range(counters[OPS]):
        row = work[CHANGED][i]
        entries[np.int64(row[C_TRIE])] += np.int64(row[C_IS]) - np.int64(row[C_WAS])
    rows_changed = work[CHANGED][: counters[OPS]].copy()
    counters[OPS] = 0
    return rows_changed


@njit(cache=True)
def touch(links, flags, counters, dirty, trie, root, scratch):
    """Mark a whole trie as changed, so that its table is worked out anew."""
    path, stage = scratch[0], scratch[1]
    left, mark = links[LEFT], flags[0]
    hi = lo = ZERO
    level, path[0], stage[0] = 0, root, 0
    while level >= 0:
        node = np.int64(path[level])
        mark[node] |= DIRTY
        if left[node] >= 0:
            level, hi, lo = go_on(left, path, stage, level, 0, hi, lo)
        else:
            level -= 1
    if dirty[trie] == 0:
        dirty[trie] = 1
        dirty[dirty.shape[0] // 2 + counters[DIRTY_TRIES]] = trie
        counters[DIRTY_TRIES] += 1


@njit(cache=True, nogil=True)
def list_entries(links, sets, flags, trie, root, start, first, scratch, out):
    """All entries of one trie into `out` (rows: hi, lo, length, ports...); returns how many. `out` has room."""
    path, stage = scratch[0], scratch[1]
    left, mark, force = links[LEFT], flags[0], sets[FORCE]
    hi, lo = first
    level, path[0], stage[0], n = 0, root, 0, 0
    while level >= 0:
        node = np.int64(path[level])
        if stage[level] == 0 and mark[node] & ENTRY:
            out[n, 0], out[n, 1], out[n, 2] = hi, lo, np.uint64(start + level)
            out[n, 3:] = force[node]
            n += 1
        if left[node] >= 0:
            level, hi, lo = go_on(left, path, stage, level, start + level, hi, lo)
        else:
            level -= 1
    return n
