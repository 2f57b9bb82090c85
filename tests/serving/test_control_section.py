"""The section [control]: who shares the control plane, and mistakes in it told by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.errors import BadScenario
from flowsieve.serving.config import read_config
from flowsieve.serving.control_section import ALONE, ControlSettings

SCHEMA = '[schema]\nprice = { type = "int", min = 0, max = 1023 }\n'  # lines 1 and 2


def read(folder: Path, text: str) -> ControlSettings:
    path = folder / "market.toml"
    path.write_text(SCHEMA + text)
    return read_config(path).control


def test_without_it_a_controller_is_alone(tmp_path: Path) -> None:
    assert not read(tmp_path, "").etcd
    assert not ALONE.etcd


def test_names_have_defaults(tmp_path: Path) -> None:
    found = read(tmp_path, '[control]\netcd = ["127.0.0.1:2379", "http://10.0.0.2:2379"]\n')
    assert found.etcd == ("127.0.0.1:2379", "http://10.0.0.2:2379")
    assert (found.name, found.lease) == ("market", 1)
    assert found.node  # this machine's
    other = read(tmp_path, '[control]\netcd = ["a:1"]\nname = "x"\nnode = "n-1"\nlease = 5\n')
    assert other == ControlSettings(("a:1",), "x", "n-1", 5)


def test_partitions_are_divided_without_etcd_and_shared_with_it(tmp_path: Path) -> None:
    assert read(tmp_path, "").partitions is None
    alone = read(tmp_path, "[control]\npartitions = 6\n")
    assert (alone.partitions, alone.configurators, alone.shared_out) == (6, 1, False)
    found = read(
        tmp_path,
        '[control]\netcd = ["a:1"]\npartitions = 64\nconfigurators = 3\nlisten = "10.0.0.1:7430"\n'
        "slice = 50\nbalance = false\ndivide_every = 5\n",
    )
    assert found.shared_out
    assert (found.partitions, found.configurators) == (64, 3)
    assert (found.listen, found.slice_size, found.balance) == ("10.0.0.1:7430", 50, False)
    assert found.divide_every == 5
    default = read(tmp_path, '[control]\netcd = ["a:1"]\nconfigurators = 2\n')
    assert (default.listen, default.slice_size, default.balance) == ("127.0.0.1", 500, True)
    assert default.divide_every == 60


@pytest.mark.parametrize("address", ["127.0.0.1", "node-1", "node-1:7430", "10.1.2.3:65535"])
def test_configurators_find_a_controller_at_an_address(tmp_path: Path, address: str) -> None:
    assert read(tmp_path, f'[control]\netcd = ["a:1"]\nlisten = "{address}"\n').listen == address


@pytest.mark.parametrize(
    "index",
    ['header = "receivers"', 'header = "bloom"', 'labels = ["h1"]'],
    ids=["receivers", "bloom", "mixed"],
)
def test_labels_are_not_shared_out(tmp_path: Path, index: str) -> None:
    text = f'[index]\n{index}\n[control]\netcd = ["a:1"]\nconfigurators = 2\n'
    with pytest.raises(BadScenario, match="configurators") as error:
        read(tmp_path, text)
    assert "market.toml line" in str(error.value)


@pytest.mark.parametrize(
    ("index", "told"),
    [
        ('header = "receivers"', "partitions is 20; a controller has receivers in 19 sets at most"),
        ('labels = ["h1"]', "partitions is 20; a controller has receivers in 19 sets at most"),
        ('header = "bloom"', "partitions is 20; labels that are Bloom filters go along one tree; right is 1"),
    ],
    ids=["receivers", "mixed", "bloom"],
)
def test_receivers_are_in_no_more_sets_than_a_controller_serves(
    tmp_path: Path, index: str, told: str
) -> None:
    with pytest.raises(BadScenario, match=told):
        read(tmp_path, f"[index]\n{index}\n[control]\npartitions = 20\n")
    few = 1 if "bloom" in index else 19
    assert read(tmp_path, f"[index]\n{index}\n[control]\npartitions = {few}\n").partitions == few


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("configurators = 2", r"who owns which partition is kept in an etcd; right is etcd = "),
        ("slice = 5", r"slice is for controllers that share an etcd"),
        ("divide_every = 9", r"divide_every is for controllers that share an etcd"),
        ('etcd = ["a:1"]\ndivide_every = 0', r"divide_every is 0; right is a whole number of seconds from 1"),
        ("balance = true", r"balance is for controllers that share an etcd"),
        ('listen = "a"', r"listen is for controllers that share an etcd"),
        ("partitions = 0", r"partitions is 0; right is a whole number from 1 to 1024"),
        ("partitions = 1025", r"partitions is 1025; right is a whole number"),
        ('etcd = ["a:1"]\nconfigurators = 65', r"configurators is 65; right is a whole number"),
        (
            'etcd = ["a:1"]\npartitions = 2\nconfigurators = 3',
            r"3 configurators cannot share 2 partitions; right are so many or fewer",
        ),
        ('etcd = ["a:1"]\nslice = 0', r"slice is 0; right is a whole number from 1 to 100000"),
        ('etcd = ["a:1"]\nbalance = "no"', r"balance is 'no'; right is true or false"),
        ('etcd = ["a:1"]\nbalance = 1', r"balance is 1; right is true or false"),
        ('etcd = ["a:1"]\nlisten = ":7430"', r"listen is ':7430'; right is an address, 127.0.0.1 or"),
        ('etcd = ["a:1"]\nlisten = "a:b"', r"listen is 'a:b'; right is an address"),
        ('etcd = ["a:1"]\nlisten = "a:70000"', r"listen is 'a:70000'; right is an address"),
        ('etcd = "127.0.0.1"', r"etcd is '127.0.0.1'; right is a list of servers"),
        ('etcd = ["a:b"]', r"'a:b' is no server of etcd; right is HOST:PORT"),
        ('node = "a"', r"node is for controllers that share an etcd"),
        ('etcd = ["a:1"]\nnode = "a/b"', r"node is 'a/b'; right are letters"),
        ('etcd = ["a:1"]\nlease = 0', r"lease is 0; right is a whole number of seconds from 1"),
        ('etcd = ["a:1"]\nlease = 61', r"lease is 61; right is a whole number from 0 to 60"),
        ('nodes = "a"', r"\[control\] has no key 'nodes'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadScenario, match=told) as error:
        read(tmp_path, "[control]\n" + text + "\n")
    assert "market.toml line" in str(error.value)
