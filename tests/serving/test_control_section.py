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


@pytest.mark.parametrize(
    ("text", "told"),
    [
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
