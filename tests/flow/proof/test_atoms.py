"""The address space cut into atoms."""

import numpy as np

from flowsieve.flow.entry import Flow, Match, Output
from flowsieve.flow.flat import FlowColumns, flatten
from flowsieve.flow.proof.atoms import Atoms, Ranges, cells_of
from flowsieve.flow.wiring import Wiring
from flowsieve.header.address import Prefix
from flowsieve.header.tag import POOLS, Tag
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology

EVERYTHING = Tag(Prefix.parse("::/0"))  # a tag of no bits: keys are dz
IPV6 = POOLS["ipv6"][0]


def key(text: str) -> int:
    """The key at which a dz begins under the tag of no bits."""
    return Dz.parse(text).bits << (128 - len(text))


def atoms_at(*texts: str) -> Atoms:
    keys = [key(text) for text in texts]
    hi, lo = np.array([k >> 64 for k in keys], np.uint64), np.array([k % 2**64 for k in keys], np.uint64)
    return Atoms.between([(hi, lo)])


def members(atoms: Atoms, column: np.ndarray) -> list[int]:
    return [i for i in range(len(atoms)) if int(column[i // 64]) >> (i % 64) & 1]


def test_cuts_are_sorted_and_each_counts_once():
    atoms = atoms_at("1", "01", "1", "11")
    assert [atoms.span(i) for i in range(len(atoms))] == [
        (0, key("01")),
        (key("01"), key("1")),
        (key("1"), key("11")),
        (key("11"), 1 << 128),
    ]


def test_keys_that_differ_in_their_lower_halves_alone_are_told_apart():
    low = "0" * 100
    atoms = atoms_at(low + "01", low + "1", low + "01")
    assert [atoms.span(i)[0] for i in range(len(atoms))] == [0, key(low + "01"), key(low + "1")]


def test_a_part_of_the_space_marks_the_atoms_in_it():
    atoms = atoms_at("01", "1", "11")
    ranges = Ranges.of(EVERYTHING, [(0, DzSet.of("01", "11")), (1, DzSet.of("")), (0, DzSet.of("1"))])
    bits = atoms.marked(ranges, 3)
    assert [members(atoms, bits[:, column]) for column in range(3)] == [[1, 2, 3], [0, 1, 2, 3], []]


def test_marks_reach_over_many_words():
    atoms = atoms_at(*(f"{i:08b}" for i in range(256)))
    bits = atoms.marked(Ranges.of(EVERYTHING, [(0, DzSet.of("01", "1000"))]), 1)
    assert members(atoms, bits[:, 0]) == list(range(64, 144))
    assert list(atoms.runs(bits[:, 0])) == [(key("01"), key("1001"))]


def test_the_runs_of_a_set_are_its_stretches():
    atoms = atoms_at("001", "01", "1", "11")
    bits = atoms.marked(Ranges.of(EVERYTHING, [(0, DzSet.of("00", "11"))]), 1)
    assert list(atoms.runs(bits[:, 0])) == [(0, key("01")), (key("11"), 1 << 128)]


def test_what_leaves_a_slot_is_what_the_table_sends_there():
    topology = Topology.make([("s1", "s2")], {"h1": "s1", "h2": "s2"})
    wiring = Wiring.of(topology)
    flow = Flow(Match(Prefix.parse("8000::/1")), 1000, (Output(1), Output(2)))
    tables = [flatten(FlowColumns.of(flows, 2), 6) for flows in ([flow], [])]
    atoms = atoms_at("1", "11")
    sends = atoms.sent(tables, wiring)
    assert [members(atoms, sends[:, slot]) for slot in range(wiring.slots)] == [[1, 2], [1, 2], [], []]


def test_the_cells_of_a_stretch_are_as_few_as_possible():
    def cells(begin: str, end: str, bits: int) -> list[str]:
        return [str(dz) for dz in cells_of(EVERYTHING, bits, key(begin), key(end) if end else 1 << 128)]

    assert cells("0", "", 4) == [""]
    assert cells("001", "11", 4) == ["001", "01", "10"]
    assert cells("0001", "0001", 4) == []


def test_a_stretch_between_the_first_addresses_of_two_cells_holds_no_events():
    assert list(cells_of(EVERYTHING, 2, key("011"), key("1"))) == []
    assert [str(dz) for dz in cells_of(EVERYTHING, 2, key("001"), key("011"))] == ["01"]


def test_the_cells_of_a_stretch_lie_behind_the_tag():
    group = IPV6.group.first
    assert list(cells_of(IPV6, 4, 0, group)) == []
    assert [str(dz) for dz in cells_of(IPV6, 4, 0, 1 << 128)] == [""]
    assert [str(dz) for dz in cells_of(IPV6, 4, group + (1 << 111), 1 << 128)] == ["1"]


def test_an_atom_is_addressed_if_some_event_is_sent_into_it():
    atoms = atoms_at("01", "011", "10", "1011", "11")
    assert members(atoms, atoms.addressed(EVERYTHING, 2)) == [0, 1, 3, 5]
    assert members(atoms, atoms.addressed(EVERYTHING, 4)) == [0, 1, 2, 3, 4, 5]
