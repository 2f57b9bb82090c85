"""A switch's room shared out: never more than there is, and more for those who need more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowsieve.control.partitions.room_shares import KEPT, RoomShares

NAMES = ["c1", "c2", "c3", "c4"]


def nowhere(switch: str) -> dict[str, int]:
    """The coarsest table of a switch that holds nothing."""
    return {}


def tight(shares: RoomShares, owned: dict[str, int]) -> bool:
    return shares.tight(shares.targets(owned, {}, {}, nowhere), {})


needs = st.dictionaries(st.sampled_from(["s1", "s2"]), st.integers(0, 500))


@given(
    st.dictionaries(st.sampled_from(["s1", "s2"]), st.integers(0, 200)),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 40), min_size=1),
    st.dictionaries(st.sampled_from(NAMES), needs),
    st.dictionaries(st.sampled_from(NAMES), needs),
)
def test_shares_never_add_up_to_more_than_there_is(room, owned, needed, coming) -> None:
    shares = RoomShares(room)
    for name, some in needed.items():
        shares.need(name, some, {})
    targets = shares.targets(owned, coming, {}, nowhere)
    assert targets.keys() == owned.keys()
    for switch, entries in room.items():
        given_out = [target[switch] for target in targets.values()]
        assert min(given_out) >= 0
        assert sum(given_out) <= entries
        need = {
            name: needed.get(name, {}).get(switch, 0) + coming.get(name, {}).get(switch, 0) for name in owned
        }
        least = {name: min(count, need[name]) + KEPT for name, count in owned.items()}
        if sum(least.values()) <= entries:
            assert all(targets[name][switch] >= some for name, some in least.items())


def test_who_needs_more_gets_more_and_what_comes_counts() -> None:
    shares = RoomShares({"s1": 100})
    shares.need("c1", {"s1": 90}, {})
    shares.need("c2", {"s1": 10}, {})
    found = shares.targets({"c1": 1, "c2": 1}, {}, {}, nowhere)
    assert found["c1"]["s1"] > 4 * found["c2"]["s1"]
    found = shares.targets({"c1": 1, "c2": 1}, {"c2": {"s1": 300}}, {}, nowhere)
    assert found["c2"]["s1"] > found["c1"]["s1"]


def test_room_is_tight_where_somebody_needs_more_than_he_has_and_would_get_it() -> None:
    shares, owned = RoomShares({"s1": 100}), {"c1": 1, "c2": 1}
    for name in owned:
        shares.grant(name, {"s1": 50})
        shares.need(name, {"s1": 20}, {})
    assert not tight(shares, owned)
    shares.need("c1", {"s1": 70}, {})
    assert tight(shares, owned)
    shares.need("c2", {"s1": 70}, {})
    assert not tight(shares, owned)  # nobody has any to spare


def test_what_one_had_is_free_when_he_is_gone() -> None:
    shares = RoomShares({"s1": 10})
    shares.grant("c1", {"s1": 9})
    shares.need("c1", {"s1": 30}, {"s1": 0.5})
    assert shares.of("c1") == {"s1": 9}
    assert shares.waste == {"s1": 0.5}
    shares.left("c1")
    assert shares.of("c1") == {}
    assert shares.waste == {}
    assert shares.targets({"c2": 0}, {}, {}, nowhere) == {"c2": {"s1": 10}}


def test_waste_is_that_of_all_together() -> None:
    shares = RoomShares({"s1": 10, "s2": 10})
    shares.need("c1", {}, {"s1": 0.5, "s2": 1.0})
    shares.need("c2", {}, {"s1": 0.25})
    assert shares.waste == {"s1": 0.75, "s2": 1.0}


def test_where_not_even_the_coarsest_tables_have_room_nobody_gets_more_than_they_take() -> None:
    shares, owned = RoomShares({"s1": 6}), {"c1": 5, "c2": 4, "c3": 1}
    for name in owned:
        shares.need(name, {"s1": 100}, {})
    there = {"c1": 5, "c2": 3}
    found = shares.targets(owned, {}, {}, lambda switch: there)
    assert found == {"c1": {"s1": 5}, "c2": {"s1": 3}, "c3": {"s1": 0}}
    for name, room in found.items():
        shares.grant(name, room)
    assert not shares.tight(found, {})
    there = {"c1": 2, "c2": 1}  # as soon as it fits, there is something to share out again
    found = shares.targets(owned, {}, {}, lambda switch: there)
    assert sum(room["s1"] for room in found.values()) <= 6
    assert shares.tight(found, {})
