"""Sets of hosts from a file: in force from the first start on, and never changed under those who use them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from flowsieve.content.filter import Filter
from flowsieve.control.memory.journal import Asked, Past, entry_from_json, entry_to_json
from flowsieve.control.memory.recovery import recover, snapshot
from flowsieve.control.request import Op, Request
from flowsieve.errors import BadInput
from flowsieve.network.topology import Topology
from flowsieve.serving.chosen_sets import first_entries, other_sets
from flowsieve.serving.config import Config, read_config

CONFIG = """\
[schema]
x = {{ type = "int", min = 0, max = 9 }}
[index]
{index}
sets = "sets.json"
[network]
links = [["s1", "s2"]]
[network.hosts]
h1 = "s1"
h2 = "s2"
h3 = "s2"
"""
RECEIVERS, BESIDE = 'header = "receivers"', 'labels = ["h1"]'
FIRST = [["h3"], ["h2", "h1"]]


def config(
    folder: Path, sets: Sequence[Sequence[str]] | None, index: str = RECEIVERS, partitions: int | None = None
) -> Config:
    text = CONFIG.format(index=index) + (
        "" if partitions is None else f"[control]\npartitions = {partitions}\n"
    )
    (folder / "sets.json").write_text(json.dumps({"sets": sets or []}))
    (folder / "config.toml").write_text(
        text if sets is not None else text.replace('sets = "sets.json"\n', "")
    )
    return read_config(folder / "config.toml")


def topology(config: Config) -> Topology:
    assert config.network is not None
    return config.network.topology


@pytest.mark.parametrize("index", [RECEIVERS, BESIDE])
def test_a_file_is_in_force_from_the_first_start_on(tmp_path: Path, index: str) -> None:
    first = config(tmp_path, FIRST, index)
    (entry,) = first_entries(first, Past(), topology(first))
    assert entry_from_json(json.loads(json.dumps(entry_to_json(entry))), first.index.schema) == entry
    state, ledger = recover(Past(None, [entry]), partial(first.fresh, topology(first)))
    assert state.sets.sets == (("h3",), ("h2", "h1"))
    assert other_sets(first, state, tmp_path, 6.0) is None
    other = config(tmp_path, [["h1"], ["h2", "h3"]], index)
    assert other.base(topology(other)) == first.base(topology(first))
    for past in (Past(snapshot(state, ledger)), Past(None, [entry])):
        assert first_entries(other, past, topology(other)) == []
        again, _ = recover(past, partial(other.fresh, topology(other)))
        assert (again.sets, again.tables) == (state.sets, state.tables)
    why = other_sets(other, again, tmp_path, 6.0)
    assert why is not None
    assert "are not those in force, which stay" in why
    assert "wait 6 seconds" in why


def test_a_controller_that_began_without_a_file_keeps_its_sets(tmp_path: Path) -> None:
    late = config(tmp_path, FIRST)
    asked = Asked(Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("x < 5", late.index.schema)))
    past = Past(None, [asked])
    assert first_entries(late, past, topology(late)) == []
    state, _ = recover(past, partial(late.fresh, topology(late)))
    assert len(state.sets.sets) == 1
    assert other_sets(late, state, tmp_path, 6.0) is not None


@pytest.mark.parametrize("index", [RECEIVERS, BESIDE])
def test_how_many_sets_have_trees_is_remembered_whatever_the_file_says_later(
    tmp_path: Path, index: str
) -> None:
    first = config(tmp_path, None, index, partitions=2)
    (entry,) = first_entries(first, Past(), topology(first))
    entry = entry_from_json(json.loads(json.dumps(entry_to_json(entry))), first.index.schema)
    state, ledger = recover(Past(None, [entry]), partial(first.fresh, topology(first)))
    assert (len(state.sets.sets), state.sets.spread, len(state.set_trees)) == (2, 2, 2)
    assert other_sets(first, state, tmp_path, 6.0) is None
    asked = Asked(Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("x < 5", first.index.schema)))
    for partitions in (None, 1, 3):
        other = config(tmp_path, None, index, partitions)
        pasts = [Past(None, [entry, asked]), Past(snapshot(state, ledger))]
        if index == BESIDE:  # other partitions of dz are other trees, unless a snapshot has them
            del pasts[0]
        for past in pasts:
            assert first_entries(other, past, topology(other)) == []
            again, _ = recover(past, partial(other.fresh, topology(other)))
            assert (again.sets, again.set_trees) == (state.sets, state.set_trees)
            assert again.label_entries("s1") == state.label_entries("s1")
        why = other_sets(other, again, tmp_path, 6.0)
        assert why is not None
        assert (
            f"has receivers in {partitions or 1} sets with trees of their own, which are not those in" in why
        )


def test_a_controller_that_began_with_one_tree_keeps_it(tmp_path: Path) -> None:
    late = config(tmp_path, None, partitions=2)
    asked = Asked(Request(Op.SUBSCRIBE, "s", "h2", Filter.parse("x < 5", late.index.schema)))
    state, _ = recover(Past(None, [asked]), partial(late.fresh, topology(late)))
    assert (len(state.sets.sets), len(state.trees)) == (1, 1)
    assert other_sets(late, state, tmp_path, 6.0) is not None


def test_chosen_sets_have_trees_of_their_own_where_that_is_asked_for(tmp_path: Path) -> None:
    chosen = config(tmp_path, FIRST, partitions=2)
    (entry,) = first_entries(chosen, Past(), topology(chosen))
    state, _ = recover(Past(None, [entry]), partial(chosen.fresh, topology(chosen)))
    assert state.sets.sets == (("h3",), ("h2", "h1"))
    assert (state.sets.spread, len(state.trees)) == (2, 2)
    assert config(tmp_path, FIRST, partitions=1).host_sets == 1
    assert config(tmp_path, [["h1"], ["h2"], ["h3"]], partitions=2).host_sets == 3


def test_hosts_of_a_file_are_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the sets have host 'h9', which the network does not reach"):
        config(tmp_path, [["h9"]])
    with pytest.raises(BadInput, match="host 'h1' is in two sets"):
        config(tmp_path, [["h1"], ["h1"]])
