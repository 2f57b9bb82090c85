"""The address space cut into atoms."""

import numpy as np

from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.flat import FlowColumns, flatten
from flowsieve.flow.proof.atoms import Atoms, Ranges
from flowsieve.flow.wiring import Wiring
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import PrefixEncoding, encoding_of
from flowsieve.header.match import PrefixMatch
from flowsieve.header.tag import Tag
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology

EVERYTHING = PrefixEncoding(Tag(Prefix.parse("::/0")))  # a tag of no bits: keys are dz
IPV6 = encoding_of("ipv6")


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
    flow = Flow(PrefixMatch(Prefix.parse("8000::/1")), 1000, (Output(1), Output(2)))
    tables = [flatten(FlowColumns.of(flows, 2), 6) for flows in ([flow], [])]
    atoms = atoms_at("1", "11")
    sends = atoms.sent(tables, wiring)
    assert [members(atoms, sends[:, slot]) for slot in range(wiring.slots)] == [[1, 2], [1, 2], [], []]


def test_an_atom_is_addressed_if_some_event_is_sent_into_it() -> None:
    atoms = atoms_at("01", "011", "10", "1011", "11")
    assert members(atoms, atoms.addressed(EVERYTHING, 2)) == [0, 1, 3, 5]
    assert members(atoms, atoms.addressed(EVERYTHING, 4)) == [0, 1, 2, 3, 4, 5]
