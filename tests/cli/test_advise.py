"""The command advise: which way to address packets suits a workload and a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Command = Callable[..., Any]
ATTRIBUTES = 6


def wide(scene: Any) -> None:
    """Halves and quarters of one attribute, which dz can say."""
    wishes = [
        f"sub,w{i},{('ann', 'bob', 'cy', 'dee')[i % 4]},{i % 4 * 256} <= price < {i % 4 * 256 + 256}"
        for i in range(16)
    ]
    scene.write("requests.csv", "\n".join(["op,id,host,filter", "adv,all,ann,True", *wishes]) + "\n")
    events = [f"e{i},ann,{i * 37 % 1024},buy" for i in range(400)]
    scene.write("events.csv", "\n".join(["id,host,price,side", *events]) + "\n")


def narrow(scene: Any) -> None:
    """Narrow boxes in many attributes, which few prefixes cannot say."""
    dice = np.random.default_rng(2)
    names = [f"a{i}" for i in range(ATTRIBUTES)]
    schema = "".join(f'{name} = {{ type = "int", min = 0, max = 255 }}\n' for name in names)
    scene.replace(
        'price = { type = "int", min = 0, max = 1023 }\nside = { type = "enum", values = ["buy", "sell"] }\n',
        schema,
    )
    scene.replace("bits = 11\nmax_dz_per_filter = 0", "max_dz_per_filter = 8")
    wishes = []
    for i in range(60):
        low = dice.integers(0, 150, ATTRIBUTES)
        box = " and ".join(f"{at} <= {name} < {at + 100}" for name, at in zip(names, low, strict=True))
        wishes.append(f"sub,n{i},{('bob', 'cy', 'dee')[i % 3]},{box}")
    scene.write("requests.csv", "\n".join(["op,id,host,filter", "adv,all,ann,True", *wishes]) + "\n")
    events = [f"e{i},ann," + ",".join(map(str, dice.integers(0, 256, ATTRIBUTES))) for i in range(600)]
    scene.write("events.csv", "\n".join(["id,host," + ",".join(names), *events]) + "\n")


@pytest.mark.parametrize(("load", "right"), [(wide, "dz"), (narrow, "receivers")])
def test_what_filters_are_like_decides(flowsieve: Command, scene: Any, load: Any, right: str) -> None:
    load(scene)
    answer = flowsieve("advise", scene.scenario, "--json")
    assert answer.status == 0, answer.err
    found = answer.json
    assert found["recommended"] == right, found
    headers = found["headers"]
    assert list(headers) == ["dz", "receivers", "bloom"]
    assert headers["receivers"]["unwanted_per_wanted"] == headers["receivers"]["operations_per_request"] == 0
    assert headers["dz"]["filters_held"] == 0 < headers["receivers"]["filters_held"]
    assert headers["dz"]["operations_per_request"] >= headers["dz"]["operations_busiest_switch"]
    if right == "receivers":
        assert headers["dz"]["unwanted_per_wanted"] > 1
        assert headers["dz"]["carried_per_wanted"] > headers["receivers"]["carried_per_wanted"]


def test_the_figures_are_those_of_a_run(flowsieve: Command, scene: Any, tmp_path: Any) -> None:
    narrow(scene)
    advised = flowsieve("advise", scene.scenario, "--json").json
    text = (scene.folder / "events.csv").read_text().splitlines()
    scene.write("events.csv", "\n".join([text[0], *text[301:]]) + "\n")  # the later half
    scene.replace("max_dz_per_filter = 8", 'header = "receivers"')
    report = flowsieve("run", scene.scenario, "--out", tmp_path / "out", "--json").json
    row = advised["headers"]["receivers"]
    assert advised["workload"]["events"] == {"sampled": 300, "sent": 300}
    assert row["entries_max"] == report["flows_max"]
    assert row["link_packets_per_event"] == report["link_packets"] / 300
    assert row["carried_per_wanted"] == (report["link_packets"] + report["deliveries"]) / report["wanted"]


def test_people_read_one_word_and_the_reasons(flowsieve: Command, scene: Any) -> None:
    narrow(scene)
    words = " ".join(flowsieve("advise", scene.scenario).out.split())
    assert "take receivers" in words
    assert "dz carries" in words
    assert "a publisher holds the filters, with their hosts" in words
    private = flowsieve("advise", scene.scenario, "--private").out
    assert "take dz" in private


def test_tables_too_small_leave_what_fits_or_nothing(flowsieve: Command, scene: Any) -> None:
    wide(scene)
    scene.replace("[network]\n", "[network]\ntable_capacity = 1\n")
    answer = flowsieve("advise", scene.scenario, "--json")
    assert (answer.status, answer.json["recommended"]) == (0, "dz")
    assert "whatever is subscribed; it has room for 1" in answer.json["headers"]["receivers"]["obstacle"]
    scene.replace("table_capacity = 1", "table_capacity = 0")
    answer = flowsieve("advise", scene.scenario, "--json")
    assert (answer.status, answer.json["recommended"]) == (1, None)
    assert len(answer.json["reasons"]) == 3


def test_what_is_missing_is_named(flowsieve: Command, scene: Any) -> None:
    scene.write("requests.csv", "op,id,host,filter\nadv,all,ann,True\n")
    answer = flowsieve("advise", scene.scenario)
    assert answer.status == 2
    assert "nobody subscribes in the scenario's steps; give --subscriptions F" in " ".join(answer.err.split())
    scene.replace('[[step]]\nevents = "events.csv"\n', "")
    answer = flowsieve("advise", scene.scenario)
    assert answer.status == 2
    assert "give --events E" in answer.err
    assert "--churn is -1" in flowsieve("advise", scene.scenario, "--churn", -1).err
