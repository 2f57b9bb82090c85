"""Who owns which partition, what waits for it, and what of the answers counts."""

from __future__ import annotations

import pytest
from staff import Staff

from flowsieve.control.partitions.orders import Answer, Disown, Own, Rewire, Take
from flowsieve.control.partitions.table_rows import no_rows, rows_from
from flowsieve.errors import BadInput
from flowsieve.flow.diff import Change
from flowsieve.flow.interest import Interest
from flowsieve.flow.tables.compiler import Side
from flowsieve.index.dz import Dz
from flowsieve.index.dzset import DzSet
from flowsieve.network.topology import Topology
from flowsieve.network.tree import SpanningTree, TreeMap

RING = Topology.make([("s1", "s2"), ("s2", "s3"), ("s3", "s1")], {"ann": "s1", "bob": "s2", "cy": "s3"})
LOW, HIGH = Dz.parse("0"), Dz.parse("1")
EVERYTHING = Interest("p", "ann", None, DzSet.of(""))
PUBLISHED = [(Side.PUBLISHER, EVERYTHING)]


def trees(root: str = "s1") -> TreeMap:
    tree = SpanningTree.of(RING, root)
    return TreeMap(((LOW, tree), (HIGH, tree)))


def wanted(id: str, *dz: str, host: str = "bob") -> Interest:
    return Interest(id, host, None, DzSet.of(*dz))


def come(*interests: Interest) -> list[tuple[bool, Side, Interest]]:
    return [(True, Side.SUBSCRIBER, each) for each in interests]


def go(*interests: Interest) -> list[tuple[bool, Side, Interest]]:
    return [(False, Side.SUBSCRIBER, each) for each in interests]


def at_work(members: int = 2, capacity: int | None = None, slice_size: int = 500) -> tuple[Staff, list[str]]:
    """Configurators that own the two halves of the space, in which one host publishes everything."""
    staff = Staff(slice_size=slice_size)
    names = [staff.join() for _ in range(members)]
    room = {} if capacity is None else dict.fromkeys(RING.switches, capacity)
    staff.begin(RING, trees(), room, PUBLISHED)
    staff.settle()
    return staff, names


def owned_by(staff: Staff, name: str) -> list[Dz]:
    return [dz for dz, (owner, _) in staff.pool.owners.items() if owner == name]


def finish(staff: Staff, name: str) -> None:
    """Have one configurator do all that it was told, and be heard."""
    line = staff.lines[name]
    while line.orders or line.answers:
        while line.orders:
            line.work()
        staff.hear(name)


def sent(staff: Staff, name: str) -> list[type]:
    return [type(order) for order in staff.lines[name].owed]


def test_a_partition_that_is_to_move_while_something_is_under_way_moves_when_that_is_decided() -> None:
    staff, (first, second) = at_work()
    (mine,) = owned_by(staff, first)
    staff.take(come(wanted("s", str(mine))))
    staff.pool.migrate(mine, second)
    staff.flush()
    assert sent(staff, first) == [Take]
    assert not sent(staff, second)
    finish(staff, first)
    assert Own in sent(staff, second)
    staff.settle()
    assert staff.pool.idle
    assert staff.pool.owners[mine] == (second, 2)
    assert staff.pool.aim("s1")[mine]


def test_what_waits_in_a_partition_that_moves_is_decided_by_its_next_owner_and_others_go_on() -> None:
    staff, (first, second) = at_work()
    (mine,), (other,) = owned_by(staff, first), owned_by(staff, second)
    staff.pool.migrate(mine, second)
    staff.take(come(wanted("moving", str(mine)), wanted("staying", str(other))))
    assert sent(staff, first) == [Disown]
    assert sent(staff, second) == [Take]
    parts = [part for order in staff.lines[second].owed if isinstance(order, Take) for part in order.parts]
    assert [part.id for part in parts] == ["staying"]
    finish(staff, first)
    assert sent(staff, second) == [Take, Own]
    staff.settle()
    assert not staff.undecided
    assert staff.pool.aim("s1") == {mine: (1,), other: (1,)}


def test_nobody_is_told_that_something_is_decided_before_all_its_parts_are() -> None:
    staff, (first, second) = at_work()
    staff.take(come(wanted("both", "")))
    finish(staff, first)
    assert staff.undecided == {(Side.SUBSCRIBER, "both")}
    finish(staff, second)
    assert not staff.undecided


def test_what_one_has_handled_and_not_answered_is_done_again_by_who_takes_over() -> None:
    staff, (first, second) = at_work(slice_size=1)
    (mine,) = owned_by(staff, first)
    staff.take(come(*(wanted(f"s{i}", f"{mine}{i:03b}") for i in range(5))))
    staff.lines[first].work()
    staff.lines[first].work()
    staff.leave(first)
    staff.settle()
    assert staff.pool.idle
    assert DzSet.of(*staff.pool.aim("s1")) == DzSet.of(*(f"{mine}{i:03b}" for i in range(5)))
    assert len(staff.pool.partitions[mine].held) == 6
    assert {owner for owner, _ in staff.pool.owners.values()} == {second}


def test_a_partition_moves_once_its_owner_has_answered_all_that_came_before() -> None:
    staff, (first, second) = at_work()
    (mine,) = owned_by(staff, first)
    staff.take(come(wanted("s", "")))
    staff.settle()
    staff.rewire(trees("s3"))  # the first one is slow to answer this
    finish(staff, second)
    staff.pool.migrate(mine, second)
    staff.flush()
    assert sent(staff, first) == [Rewire, Disown]
    assert sent(staff, second) == []
    staff.settle()  # which checks that each change fits the table
    assert staff.pool.owners[mine] == (second, 2)
    assert staff.pool.stale == 0


def test_what_is_said_of_a_partition_by_another_than_its_owner_does_not_count() -> None:
    staff, (first, second) = at_work()
    (other,) = owned_by(staff, second)
    staff.rewire(trees())
    owed = staff.pool.oldest(first)
    assert owed is not None
    number = {switch: at for at, switch in enumerate(RING.switches)}
    forged = rows_from({"s1": [Change(other, None, (1, 2))]}, number, 1)
    staff.pool.answered(first, owed[0], Answer(forged))
    staff.flush()
    assert staff.pool.stale == 1
    assert not staff.pool.aim("s1")


def test_an_answer_to_what_was_not_asked_is_wrong() -> None:
    staff, (first, _) = at_work()
    with pytest.raises(BadInput, match="answers what it was not asked"):
        staff.pool.answered(first, 99, Answer(no_rows(1)))


def test_what_is_asked_of_an_interest_while_all_begins_anew_is_told_when_that_is_decided_too() -> None:
    staff, _ = at_work()
    both = wanted("both", "")
    staff.take(come(both))
    staff.begin(RING, trees("s2"), {}, [*PUBLISHED, (Side.SUBSCRIBER, both)])
    staff.take(go(both))
    staff.settle()  # which checks that nobody is told too early
    assert not staff.undecided
    assert not staff.pool.aim("s1")


def test_an_interest_in_nothing_is_decided_at_once_and_told_once() -> None:
    staff, _ = at_work()
    staff.take(come(Interest("nothing", "bob", None, DzSet.of())))
    assert not staff.undecided
    staff.begin(RING, trees(), {}, PUBLISHED)
    staff.settle()


def test_nobody_decides_until_somebody_is_there_and_then_nothing_is_lost() -> None:
    staff = Staff()
    staff.begin(RING, trees(), {}, PUBLISHED)
    staff.take(come(wanted("early", "0")))
    assert not staff.pool.known
    assert not staff.pool.aim("s1")
    staff.join()
    staff.settle()
    assert staff.pool.idle
    assert staff.pool.aim("s1") == {LOW: (1,)}


def test_all_may_leave_and_who_comes_then_goes_on() -> None:
    staff, (first, second) = at_work()
    staff.take(come(wanted("s", "01", "1")))
    staff.leave(first)
    staff.leave(second)
    staff.join()
    staff.settle()
    assert staff.pool.idle
    assert set(staff.pool.aim("s1")) == {Dz.parse("01"), HIGH}
    assert {number for _, number in staff.pool.owners.values()} <= {2, 3}


def test_one_that_comes_late_is_given_as_much_as_others_have() -> None:
    staff, (first,) = at_work(members=1)
    assert len(owned_by(staff, first)) == 2
    late = staff.join()
    staff.pool.level(late)
    staff.flush()
    staff.settle()
    assert len(owned_by(staff, late)) == len(owned_by(staff, first)) == 1
    assert staff.pool.migrations == 1


def test_a_refused_part_is_tried_again_once_and_then_told() -> None:
    staff, _ = at_work(capacity=0)
    staff.take(come(wanted("s", "01")))
    staff.settle()
    assert staff.refused == [(Side.SUBSCRIBER, "s")]
    assert staff.pool.idle


def test_what_was_refused_is_not_tried_again_after_what_ended_it() -> None:
    staff, (first, _) = at_work(capacity=9, slice_size=1)
    (mine,) = owned_by(staff, first)
    brief = wanted("brief", str(mine))
    staff.pool.take([*come(brief), *go(brief)])  # a slice each, and both are with the owner
    (_, adding, _), (_, ending, _) = staff.pool.orders()
    staff.pool.answered(first, adding, Answer(no_rows(1), {0: "there is no room"}))
    staff.pool.answered(first, ending, Answer(no_rows(1)))
    assert not staff.pool.orders()
    assert staff.pool.decided() == [((Side.SUBSCRIBER, "brief"), "there is no room")]
    assert staff.pool.idle


def test_what_was_refused_stays_before_what_ends_it_when_it_is_tried_again() -> None:
    staff, (first, _) = at_work(capacity=9, slice_size=1)
    (mine,) = owned_by(staff, first)
    brief = wanted("brief", str(mine))
    staff.pool.take(come(brief))
    ((_, adding, _),) = staff.pool.orders()
    staff.pool.answered(first, adding, Answer(no_rows(1), {0: "there is no room"}))
    staff.pool.take(go(brief))
    tried = [order for _, _, order in staff.pool.orders() if isinstance(order, Take)]
    assert [part.adding for order in tried for part in order.parts] == [True, False]


def test_a_second_partition_that_goes_the_same_way_gets_its_room_as_well() -> None:
    quarters = [Dz.parse(text) for text in ("00", "01", "10", "11")]
    tree = SpanningTree.of(RING, "s1")
    staff = Staff()
    staff.join()
    cells = [wanted(f"s{i}", f"{i:05b}", host="bob" if i % 2 else "cy") for i in range(32)]
    staff.begin(
        RING, TreeMap(tuple((dz, tree) for dz in quarters)), dict.fromkeys(RING.switches, 7), PUBLISHED
    )
    staff.take(come(*cells[::3]))
    staff.settle()
    second = staff.join()
    finish(staff, second)
    for dz in quarters[:3]:
        staff.pool.migrate(dz, second)  # all but the first while room is being made for that
        staff.flush()
    staff.settle()
    assert owned_by(staff, second) == quarters[:3]
    staff.take(come(*cells[1::3]))
    staff.settle()  # which checks that tables are not too full
    assert staff.pool.idle
    assert all(0 < staff.pool.size(switch) <= 7 for switch in RING.switches)


def test_a_switch_that_is_bounded_and_not_any_more_has_exact_tables_again() -> None:
    staff, _ = at_work()
    staff.take(come(*(wanted(f"s{i}", f"{2 * i:04b}") for i in range(8))))
    staff.settle()
    exact = staff.pool.aim("s1")
    staff.bound("s1", 5)
    staff.settle()
    staff.capacity = {"s1": 5}
    assert len(staff.pool.aim("s1")) <= 5
    staff.bound("s1", None)
    staff.settle()
    assert staff.pool.aim("s1") == exact


def test_a_switch_that_is_bounded_again_has_no_more_than_it_has_room_for() -> None:
    staff, _ = at_work()
    for room in (6, None, 6):
        staff.bound("s1", room)
        staff.settle()
        staff.capacity = {} if room is None else {"s1": room}
    staff.take(come(*(wanted(f"s{i}", f"{i:06b}") for i in range(0, 64, 3))))
    staff.settle()  # which checks that tables are not too full
    assert 0 < staff.pool.size("s1") <= 6


def test_a_switch_that_turns_out_to_be_smaller_is_shared_anew_though_nobody_needs_more() -> None:
    staff, _ = at_work(capacity=40)
    staff.take(come(*(wanted(f"s{i}", f"{i:04b}") for i in range(0, 16, 4))))
    staff.settle()
    staff.bound("s1", 8)
    staff.settle()
    cells = [wanted(f"t{i}", f"{i:06b}", host="bob" if i % 2 else "cy") for i in range(0, 64, 3)]
    staff.take(come(*cells))
    staff.settle()
    assert staff.pool.size("s1") <= 8


@pytest.mark.parametrize("name", ["nobody", ""])
def test_a_partition_cannot_move_to_one_that_is_not_there(name: str) -> None:
    staff, _ = at_work()
    with pytest.raises(BadInput, match="there is no configurator"):
        staff.pool.migrate(LOW, name)


def test_a_partition_that_moves_takes_its_room_with_it_so_that_no_table_is_ever_too_full() -> None:
    staff = Staff()
    first = staff.join()
    staff.begin(RING, trees(), dict.fromkeys(RING.switches, 10), PUBLISHED)
    cells = [wanted(f"s{i}", f"{7 * i % 64:06b}", host="bob" if i % 3 else "cy") for i in range(14)]
    staff.take(come(*cells))
    staff.settle()
    second = staff.join()
    finish(staff, second)
    staff.pool.migrate(LOW, second)
    staff.flush()
    finish(staff, first)  # which checks that what it gives up is not taken by its other partition
    staff.settle()
    assert owned_by(staff, second) == [LOW]
    assert 0 < staff.pool.size("s1") <= 10


def test_room_that_another_has_to_spare_is_there_for_what_would_be_refused() -> None:
    staff = Staff()
    first, _ = staff.join(), staff.join()
    parts = [Dz(n, 3) for n in range(8)]
    tree = SpanningTree.of(RING, "s1")
    everywhere = TreeMap(tuple((dz, tree) for dz in parts))
    staff.begin(RING, everywhere, dict.fromkeys(RING.switches, 8), PUBLISHED)
    staff.settle()
    mine = owned_by(staff, first)
    staff.take(come(*(wanted(str(dz), str(dz)) for dz in mine)))
    staff.settle()
    assert len(mine) == 4
    assert staff.refused == []
