"""[control] in a scenario: who decides changes nothing that arrives, and mistakes are told by file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsieve.control.partitions.division import MOST_PARTITIONS, Division
from flowsieve.errors import BadScenario
from flowsieve.scenario.play import settled
from flowsieve.scenario.read import read_scenario

Command = Callable[..., Any]


def with_control(scene: Any, text: str) -> Path:
    return scene.replace("[network]\n", f"[control]\n{text}\n[network]\n")


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        (
            "partitions = 0",
            "partitions",
            f"partitions is 0; right is a whole number from 1 to {MOST_PARTITIONS}",
        ),
        ("configurators = 0", "configurators", "configurators is 0; right is a whole number from 1 to 64"),
        (f"partitions = {MOST_PARTITIONS + 1}", "partitions", f"partitions is {MOST_PARTITIONS + 1}; right"),
        ("configurators = 65", "configurators", "configurators is 65; right is a whole number"),
        ("partitions = -1", "partitions", "partitions is -1; right is a whole number"),
        ("partitions = true", "partitions", "partitions is True; right is a whole number"),
        ('configurators = "2"', "configurators", "configurators is '2'; right is a whole number"),
        (
            "partitions = 2\nconfigurators = 3",
            "configurators",
            "3 configurators cannot share 2 partitions; right are so many or fewer",
        ),
        ("partition = 2", "partition", "[control] has no key 'partition'; did you mean 'partitions'?"),
        ("slice = 5", "slice", "[control] has no key 'slice'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_what_is_right(
    scene: Any, text: str, key: str, told: str
) -> None:
    path = with_control(scene, text)
    lines = path.read_text().splitlines()
    at = 1 + next(number for number, line in enumerate(lines) if line.startswith(key + " "))
    with pytest.raises(BadScenario) as error:
        read_scenario(path)
    assert f"{path.name} line {at}: " in str(error.value)
    assert told in str(error.value)


def test_partitions_have_trees_of_their_own_so_trees_are_not_said_too(scene: Any) -> None:
    scene.replace("[network]\n", "[network]\ntrees = 2\n")
    with pytest.raises(BadScenario, match=r"so right is without trees in \[network\]"):
        read_scenario(with_control(scene, "partitions = 4"))


@pytest.mark.parametrize("text", ["partitions = 9", "partitions = 9\nconfigurators = 2", "configurators = 9"])
def test_partitions_that_bits_cannot_tell_apart_are_too_many(scene: Any, text: str) -> None:
    scene.replace("bits = 11", "bits = 3")
    with pytest.raises(
        BadScenario, match="9 partitions need more bits than the 3 of a dz; right are 8 or fewer"
    ):
        read_scenario(with_control(scene, text))


@pytest.mark.parametrize(
    ("text", "partitions", "configurators"),
    [
        ("", 1, 1),
        ("partitions = 5", 5, 1),
        ("configurators = 3", 24, 3),
        ("partitions = 5\nconfigurators = 2", 5, 2),
        ("partitions = 1\nconfigurators = 1", 1, 1),
        (f"partitions = {MOST_PARTITIONS}", MOST_PARTITIONS, 1),
    ],
)
def test_what_is_not_said_has_a_default(scene: Any, text: str, partitions: int, configurators: int) -> None:
    found = read_scenario(with_control(scene, text))
    assert (found.trees, found.configurators) == (partitions, configurators)


def run(flowsieve: Command, scene: Any, out: Path) -> dict[str, Any]:
    answer = flowsieve("run", scene.scenario, "--out", out, "--json")
    assert (answer.status, answer.err) == (0, "")
    return answer.json


@pytest.mark.parametrize("text", ["partitions = 5", "partitions = 5\nconfigurators = 2"])
def test_who_decides_changes_nothing_that_arrives(
    flowsieve: Command, scene: Any, tmp_path: Path, text: str
) -> None:
    alone = run(flowsieve, scene, tmp_path / "alone")
    with_control(scene, text)
    shared = run(flowsieve, scene, tmp_path / "shared")
    there = [(tmp_path / side / "matches.csv").read_text().splitlines() for side in ("alone", "shared")]
    assert sorted(there[0]) == sorted(there[1])
    for key in ("requests", "refused", "events", "rejected", "deliveries", "wanted", "false_positives",
                "false_negatives", "duplicates"):  # fmt: skip
        assert shared[key] == alone[key]
    dump = tmp_path / "shared" / "flows.json"
    assert json.loads(dump.read_text())
    judged = flowsieve("verify", scene.scenario, "--flows", dump, "--json")
    assert judged.status == 0
    assert judged.json["holds"]


def test_configurators_make_the_tables_that_one_process_makes(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    with_control(scene, "partitions = 5")
    run(flowsieve, scene, tmp_path / "one")
    scene.replace("partitions = 5\n", "partitions = 5\nconfigurators = 2\n")
    run(flowsieve, scene, tmp_path / "two")

    def tables(side: str) -> list[str]:
        return sorted(map(json.dumps, json.loads((tmp_path / side / "flows.json").read_text())))

    assert tables("one") == tables("two")


def test_no_entry_reaches_beyond_its_partition(scene: Any) -> None:
    with_control(scene, "partitions = 5")
    scenario = read_scenario(scene.scenario)
    division = Division.even(5)
    state = settled(scenario).plane.state
    assert state.partitions == list(division.partitions)
    entries = [dz for switch in state.topology.switches for dz in state.table(switch)]
    assert entries
    for dz in entries:
        division.of_dz(dz)


def test_little_room_is_shared_and_what_there_is_none_for_is_refused(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    scene.replace("[network]\n", "[network]\ntable_capacity = 4\n")
    with_control(scene, "partitions = 2\nconfigurators = 2")
    answer = flowsieve("run", scene.scenario, "--out", tmp_path, "--json")
    assert answer.json["flows_max"] <= 4
    assert answer.json["false_negatives"] == answer.json["duplicates"] == 0
    assert answer.status == (1 if answer.json["refused"] else 0)


def test_a_partition_is_a_set_of_hosts_with_a_tree_of_its_own_where_packets_name_receivers(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "receivers"')
    alone = run(flowsieve, scene, tmp_path / "alone")
    hosts = len(read_scenario(scene.scenario).topology.hosts)
    with_control(scene, "partitions = 2")
    parted = run(flowsieve, scene, tmp_path / "parted")
    assert (
        [each["sets"] for each in (alone, parted)]
        == [each["set_trees"] for each in (alone, parted)]
        == [1, 2]
    )
    assert parted["deliveries"] == alone["deliveries"] > 0
    assert parted["false_positives"] == parted["false_negatives"] == parted["duplicates"] == 0
    flows = tmp_path / "parted" / "flows.json"
    assert flowsieve("verify", scene.scenario, "--flows", flows, "--json").json["holds"]
    scene.replace("partitions = 2", f"partitions = {hosts + 5}\nconfigurators = 2")  # one process will do
    single = run(flowsieve, scene, tmp_path / "single")
    assert (single["sets"], single["deliveries"]) == (hosts, alone["deliveries"])


def test_sets_that_are_chosen_stay_and_have_trees_of_their_own(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    hosts = sorted(read_scenario(scene.scenario).topology.hosts)
    sets = [hosts[:1], hosts[1:2], hosts[2:]]
    (scene.scenario.parent / "sets.json").write_text(json.dumps({"sets": sets}))
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "receivers"\nsets = "sets.json"')
    with_control(scene, "partitions = 2")
    found = run(flowsieve, scene, tmp_path / "chosen")
    assert (found["sets"], found["set_trees"]) == (3, 3)


def test_bloom_filters_say_nothing_of_sets_and_go_along_one_tree(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "bloom"')
    alone = run(flowsieve, scene, tmp_path / "alone")
    with_control(scene, "partitions = 4")
    parted = run(flowsieve, scene, tmp_path / "parted")
    assert [parted[key] for key in ("deliveries", "flows")] == [alone[key] for key in ("deliveries", "flows")]


def test_labels_beside_dz_are_in_sets_with_the_trees_of_partitions(
    flowsieve: Command, scene: Any, tmp_path: Path
) -> None:
    host = min(read_scenario(scene.scenario).topology.hosts)
    scene.replace("max_dz_per_filter = 0", f'max_dz_per_filter = 0\nlabels = ["{host}"]')
    with_control(scene, "partitions = 2")
    found = run(flowsieve, scene, tmp_path / "mixed")
    assert (found["sets"], found["set_trees"], found["label_hosts"]) == (2, 2, 1)
    assert found["false_negatives"] == found["duplicates"] == 0


def test_sets_that_tables_have_no_room_for_are_too_many(scene: Any) -> None:
    scene.replace("bits = 11\nmax_dz_per_filter = 0", 'header = "receivers"')
    scene.replace("[network]\n", "[network]\ntable_capacity = 9\n")
    assert read_scenario(scene.scenario).host_sets == 1
    with_control(scene, "partitions = 3")
    with pytest.raises(BadScenario, match=r"right is so many, fewer partitions in \[control\], or header"):
        read_scenario(scene.scenario)
