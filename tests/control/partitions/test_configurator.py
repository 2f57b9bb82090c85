"""A configurator decides on what it owns, and on nothing else."""

from __future__ import annotations

import pytest

from flowsieve.control.partitions.configurator import Configurator, decide_once
from flowsieve.control.partitions.orders import (
    Answer,
    Begin,
    Bound,
    Disown,
    Order,
    Own,
    Ping,
    RequestPart,
    Rewire,
    Take,
)
from flowsieve.control.partitions.table_rows import changes_of
from flowsieve.errors import BadInput
from flowsieve.flow.diff import Change, Ports, apply_changes
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.generators import line
from flowsieve.network.tree import TreeMap, center_tree

NETWORK = line(2)
ANN, BOB = NETWORK.hosts
LOW, HIGH = Dz.parse("0"), Dz.parse("1")
TREE = center_tree(NETWORK)
TREES = TreeMap(((LOW, TREE), (HIGH, TREE)))


def offered(partition: Dz = LOW, id: str = "p") -> RequestPart:
    return RequestPart(True, Side.PUBLISHER, id, ANN, partition, DzSet.of(partition))


def wanted(*dz: str, id: str = "s", adding: bool = True) -> RequestPart:
    return RequestPart(adding, Side.SUBSCRIBER, id, BOB, Dz.parse(dz[0][0]), DzSet.of(*dz))


class Desk:
    """A configurator, and tables that follow what it says."""

    def __init__(self, room: int | None = None) -> None:
        self.configurator = Configurator()
        self.tables: dict[str, dict[Dz, Ports]] = {switch: {} for switch in NETWORK.switches}
        self.handle(Begin(NETWORK, TREES, room=room and dict.fromkeys(NETWORK.switches, room)))

    def handle(self, order: Order) -> Answer:
        answer = self.configurator.handle(order)
        for switch, changes in changes_of(answer.rows, NETWORK.switches).items():
            assert all(self.tables[switch].get(change.dz) == change.old for change in changes)
            apply_changes(self.tables[switch], changes)
        return answer

    @property
    def table(self) -> dict[Dz, Ports]:
        return self.tables[NETWORK.switches[0]]


def told(answer: Answer) -> dict[str, list[Change]]:
    return changes_of(answer.rows, NETWORK.switches)


@pytest.mark.parametrize(
    "order",
    [Own({LOW: 1}, []), Take({}, []), Rewire(TREES), Bound({"s1": 3})],
    ids=lambda o: type(o).__name__,
)
def test_before_it_knows_the_network_there_is_nothing_to_decide(order: Order) -> None:
    with pytest.raises(BadInput, match="has to be told of the network first"):
        Configurator().handle(order)


def test_it_says_that_it_is_there_whatever_it_knows() -> None:
    assert not len(Configurator().handle(Ping()).rows)
    assert not len(Desk().handle(Ping()).rows)


@pytest.mark.parametrize("numbers", [{LOW: 1}, {LOW: 3}, {HIGH: 2}, {LOW: 2, HIGH: 2}])
def test_what_comes_under_another_number_than_it_owns_a_partition_by_is_wrong(numbers: dict[Dz, int]) -> None:
    desk = Desk()
    desk.handle(Own({LOW: 2}, [offered()]))
    with pytest.raises(BadInput, match="is not owned under the number"):
        desk.handle(Take(numbers, [wanted("01")]))
    assert not desk.table
    assert desk.handle(Take({LOW: 2}, [wanted("01")])).visits
    assert desk.table


def test_a_partition_is_owned_once() -> None:
    desk = Desk()
    desk.handle(Own({LOW: 2}, []))
    with pytest.raises(BadInput, match="partition '0' is owned already"):
        desk.handle(Own({LOW: 3}, []))


def test_what_it_gives_up_stays_as_it_is_until_the_next_owner_says_otherwise() -> None:
    desk = Desk()
    desk.handle(
        Own({LOW: 1, HIGH: 1}, [offered(LOW), offered(HIGH, "q"), wanted("01"), wanted("11", id="t")])
    )
    before = dict(desk.table)
    assert set(before) == {Dz.parse("01"), Dz.parse("11")}
    assert not len(desk.handle(Disown(LOW)).rows)
    with pytest.raises(BadInput, match="is not owned"):
        desk.handle(Take({LOW: 1}, [wanted("00", id="u")]))
    assert not len(desk.handle(Disown(LOW)).rows)
    taken = Desk()
    taken.handle(Own({LOW: 2}, [offered(), wanted("01")]))
    assert taken.table == {dz: ports for dz, ports in before.items() if LOW.covers(dz)}


def test_a_partition_that_comes_back_is_decided_from_what_is_in_force_there_now() -> None:
    desk = Desk()
    desk.handle(Own({LOW: 1}, [offered(), wanted("01")]))
    desk.handle(Disown(LOW))
    desk.tables = {switch: {} for switch in NETWORK.switches}
    desk.handle(Own({LOW: 3}, [offered(), wanted("000")]))
    assert set(desk.table) == {Dz.parse("000")}


def test_another_network_is_begun_with_nothing() -> None:
    desk = Desk()
    desk.handle(Own({LOW: 1}, [offered(), wanted("01")]))
    desk.handle(Begin(NETWORK, TREES))
    assert not desk.configurator.numbers
    desk.tables = {switch: {} for switch in NETWORK.switches}
    desk.handle(Own({LOW: 2}, [offered(), wanted("00")]))
    assert set(desk.table) == {Dz.parse("00")}


def test_what_there_is_no_room_for_is_refused_alone() -> None:
    desk = Desk(room=2)  # one entry, and one that is kept for updates
    desk.handle(Own({LOW: 1, HIGH: 1}, [offered(LOW), offered(HIGH, "q")]))
    parts = [wanted("01"), wanted("11", id="t"), wanted("001", id="u")]
    answer = desk.handle(Take({LOW: 1, HIGH: 1}, parts))
    assert answer.refused.keys() == {1}
    assert "entries" in answer.refused[1]
    assert len(desk.table) == 1
    assert DzSet.of(*desk.table).covers(Dz.parse("01"))
    assert answer.needs.keys() == set(NETWORK.switches)
    assert not desk.handle(Take({HIGH: 1}, [wanted("11", id="t", adding=False)])).refused


def test_what_ends_ends_though_there_is_less_room_than_is_needed() -> None:
    desk = Desk(room=9)
    ids = [f"s{i}" for i in range(4)]
    desk.handle(Own({LOW: 1, HIGH: 1}, [offered(LOW), offered(HIGH, "q")]))
    desk.handle(Take({LOW: 1, HIGH: 1}, [wanted(f"{i:02b}", id=id) for i, id in enumerate(ids)]))
    assert len(desk.table) == 2
    desk.handle(Bound(dict.fromkeys(NETWORK.switches, 0)))
    gone = [wanted(f"{i:02b}", id=id, adding=False) for i, id in enumerate(ids)]
    assert not desk.handle(Take({LOW: 1, HIGH: 1}, gone)).refused
    assert not desk.table


def test_one_that_comes_and_goes_in_a_slice_that_does_not_fit_leaves_no_trace() -> None:
    desk = Desk(room=2)
    desk.handle(Own({LOW: 1, HIGH: 1}, [offered(LOW), offered(HIGH, "q"), wanted("01")]))
    before = dict(desk.table)
    parts = [wanted("10", id="t"), wanted("00", id="u"), wanted("00", id="u", adding=False)]
    answer = desk.handle(Take({LOW: 1, HIGH: 1}, parts))
    assert answer.refused.keys() == {0}
    assert desk.table == before


def test_each_entry_is_told_once_though_much_was_tried() -> None:
    desk = Desk(room=2)
    desk.handle(Own({LOW: 1, HIGH: 1}, [offered(LOW), offered(HIGH, "q")]))
    parts = [wanted(f"{i:03b}", id=f"s{i}") for i in range(8)]
    answer = desk.handle(Take({LOW: 1, HIGH: 1}, parts))
    assert answer.refused
    for changes in told(answer).values():
        assert len({change.dz for change in changes}) == len(changes)


def test_tables_are_exact_again_when_room_is_not_bounded_any_more() -> None:
    desk, exact = Desk(room=3), Desk()
    parts = [offered(), *(wanted(f"0{i:03b}", id=f"s{i}") for i in range(0, 8, 2))]
    for each in (desk, exact):
        each.handle(Own({LOW: 1}, parts))
    assert len(desk.table) < len(exact.table)
    desk.handle(Bound(dict.fromkeys(NETWORK.switches)))
    assert desk.table == exact.table
    desk.handle(Take({LOW: 1}, [wanted("0001", id="t")]))
    exact.handle(Take({LOW: 1}, [wanted("0001", id="t")]))
    assert desk.table == exact.table


@pytest.mark.parametrize("room", [None, 4])
def test_all_that_it_does_can_be_gone_through_beforehand(room: int | None) -> None:
    decide_once(room)
