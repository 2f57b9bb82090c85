"""Labels that name receivers: where a host's bit is, and what addresses and matches that makes."""

from __future__ import annotations

import numpy as np
import pytest

from flowsieve.errors import BadInput, BadTopology
from flowsieve.header.address import Prefix
from flowsieve.header.match import parse_match
from flowsieve.header.receivers import ReceiverLabels
from flowsieve.header.tag import DZ_HEADERS, LABEL_GROUPS, POOLS

TAG = POOLS["receivers"][0]
HOSTS = [f"h{i}" for i in range(300)]
THREE = ReceiverLabels(TAG, (("a", "b"), ("c",), ("d", "e")))


def by_order(hosts: list[str], most: int) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(hosts[at : at + most]) for at in range(0, len(hosts), most))


def labels_of(hosts: int) -> ReceiverLabels:
    return ReceiverLabels.make(lambda most: by_order(HOSTS[:hosts], most))


def test_the_first_host_has_the_bit_behind_the_tag() -> None:
    labels = labels_of(112)
    assert (labels.set_bits, labels.bits, len(labels.sets)) == (0, 112, 1)
    assert labels.texts(["h0", "h1"]) == ["ff1e:c000::"]
    assert labels.texts(["h111"]) == ["ff1e::1"]
    assert labels.texts([]) == []
    assert labels.any_of(0) == parse_match("ff1e::/16")
    assert labels.none_of(["h0", "h111"]) == {0: parse_match("ff1e::/ffff:8000::1")}


def test_more_hosts_than_bits_are_in_sets_whose_number_stands_behind_the_tag() -> None:
    labels = labels_of(113)
    assert (labels.set_bits, [len(row) for row in labels.sets]) == (1, [111, 2])
    assert labels.texts(["h0", "h112"]) == ["ff1e:4000::", "ff1e:a000::"]
    assert str(labels.group(1)) == "ff1e:8000::/17"
    assert [len(row) for row in labels_of(300).sets] == [110, 110, 80]


def test_an_address_tells_for_whom_it_is() -> None:
    assert THREE.receivers(THREE.addresses(["b", "a"])[0]) == ("a", "b")
    assert THREE.receivers(THREE.addresses(["c"])[0]) == ("c",)
    assert THREE.receivers(Prefix.parse("ff1e:c000::").first | 1 << 109) == ()  # of a fourth set
    assert THREE.receivers(0xFF0E << 112) == ()


def test_keys_of_many_events_are_the_addresses_of_each() -> None:
    rng = np.random.default_rng(1)
    wanted = {host: rng.random(50) < 0.2 for host in "abcde"}
    rows, hi, lo = THREE.keys(wanted, 50)
    found: dict[int, list[int]] = {}
    for row, high, low in zip(rows.tolist(), hi.tolist(), lo.tolist(), strict=True):
        found.setdefault(row, []).append(high << 64 | low)
    right = {row: THREE.addresses([host for host in wanted if wanted[host][row]]) for row in range(50)}
    assert found == {row: addresses for row, addresses in right.items() if addresses}
    assert rows.tolist() == sorted(rows.tolist())
    assert [len(each) for each in ReceiverLabels(TAG, ()).keys({}, 3)] == [0, 0, 0]


def test_bits_in_the_lower_half_of_an_address_are_keys_too() -> None:
    labels = labels_of(112)
    rows, hi, lo = labels.keys({"h0": np.array([True]), "h100": np.array([True])}, 1)
    assert hi.tolist() == [0xFF1E8 << 44] and lo.tolist() == [1 << 11] and rows.tolist() == [0]


@pytest.mark.parametrize(
    ("sets", "wrong"),
    [
        ((("a", "b"), ("b",)), "a host is in two sets, or twice in one"),
        ((tuple(HOSTS[:113]),), "a set has 113 hosts; beside the numbers of 1 sets there are 112 bits"),
        (
            (tuple(HOSTS[:112]), ("x",)),
            "a set has 112 hosts; beside the numbers of 2 sets there are 111 bits",
        ),
        (tuple((f"x{i}",) for i in range(1025)), "hosts are in 1,025 sets; right are 1,024 or fewer"),
    ],
)
def test_sets_that_cannot_be_are_refused(sets: tuple[tuple[str, ...], ...], wrong: str) -> None:
    with pytest.raises(BadInput, match=wrong):
        ReceiverLabels(TAG, sets)


def test_more_sets_than_there_may_be_are_refused() -> None:
    alone = tuple((f"x{i}",) for i in range(1025))
    with pytest.raises(BadTopology, match="more than 1,024 sets"):
        ReceiverLabels.make(lambda most: alone)
    with pytest.raises(BadInput, match="there is no bit for host 'x'"):
        THREE.place("x")


def test_the_tags_of_labels_are_no_tags_of_dz() -> None:
    prefixes = [tag.group for header in DZ_HEADERS for tag in POOLS[header]]
    assert not any(one.covers(other) or other.covers(one) for one in prefixes for other in LABEL_GROUPS)
