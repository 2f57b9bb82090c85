"""A flow table laid out flat."""

from flowsieve.flow.entry import Flow, Output
from flowsieve.flow.flat import FlowColumns, address_of, flatten, key_of, look_up
from flowsieve.header.address import Prefix
from flowsieve.header.match import PrefixMatch


def flow(prefix: str, *ports: int, priority: int = 1000) -> Flow:
    return Flow(PrefixMatch(Prefix.parse(prefix)), priority, tuple(map(Output, ports)))


def intervals(flows: list[Flow], family: int = 6, ports: int = 8) -> list[tuple[int, int, int]]:
    """(start, entry, port bits) of each interval."""
    flat = flatten(FlowColumns.of(flows, ports), family)
    starts = [address_of(family, hi, lo) for hi, lo in zip(flat.hi, flat.lo, strict=True)]
    return list(zip(starts, flat.entry.tolist(), flat.ports[:, 0].tolist(), strict=True))


def test_an_empty_table_misses_everywhere():
    assert intervals([]) == [(0, -1, 0)]


def test_a_nested_entry_interrupts_the_one_around_it():
    outer, inner = flow("16.0.0.0/4", 1), flow("20.0.0.0/8", 1, 3, priority=1001)
    assert intervals([outer, inner], family=4) == [
        (0, -1, 0),
        (16 << 24, 0, 0b1),
        (20 << 24, 1, 0b101),
        (21 << 24, 0, 0b1),
        (32 << 24, -1, 0),
    ]


def test_priority_wins_over_length():
    short, long = flow("ff0e::/16", 1, priority=2000), flow("ff0e:8000::/17", 2, priority=1001)
    assert [entry for _, entry, _ in intervals([long, short])] == [-1, 1, -1]


def test_between_equal_priorities_the_longer_prefix_wins():
    short, long = flow("0.0.0.0/0", 1), flow("0.0.0.0/1", 2)
    assert intervals([long, short], family=4) == [(0, 0, 0b10), (1 << 31, 1, 0b1)]


def test_of_two_entries_with_one_key_the_later_has_replaced_the_first():
    assert intervals([flow("0.0.0.0/0", 1), flow("0.0.0.0/0", 2)], family=4) == [(0, 1, 0b10)]


def test_families_are_kept_apart():
    flows = [flow("0.0.0.0/0", 1), flow("::/0", 2)]
    assert intervals(flows, family=4) == [(0, 0, 0b1)]
    assert intervals(flows, family=6) == [(0, 1, 0b10)]


def test_an_entry_for_the_very_last_address_ends_with_the_space():
    last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
    assert intervals([flow(f"{last}/128", 1)]) == [(0, -1, 0), (2**128 - 1, 0, 0b1)]


def test_ports_beyond_64_take_further_words():
    columns = FlowColumns.of([flow("::/0", 1, 64, 65, 130)], ports=130)
    assert columns.ports.tolist() == [[1 | 1 << 63, 1, 0b10]]


def test_entries_that_name_a_port_that_is_not_there_or_one_twice_are_astray():
    flows = [flow("::/0", 1), flow("::/1", 9), flow("::/2", 0, 1), flow("::/3", 2, 2), flow("::/4")]
    assert FlowColumns.of(flows, ports=8).astray.tolist() == [1, 2, 3]


def test_a_drop_is_an_entry_and_not_a_miss():
    assert intervals([flow("::/0")]) == [(0, 0, 0)]


def test_look_up_finds_nothing_in_another_family():
    assert look_up([flow("::/0", 1)], 4, 0) is None


def test_keys_and_addresses_are_inverse():
    for family, address in ((4, 0xE1A80000), (6, 0xFF0E_C800 << 96 | 5)):
        assert address_of(family, *key_of(family, address)) == address
