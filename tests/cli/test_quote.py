"""`flowsieve quote`: the price of a subscription before it is made."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


@pytest.fixture
def quote(flowsieve: Command, scene: Any) -> Command:
    def call(host: str, text: str, *options: str) -> Any:
        return flowsieve("quote", scene.scenario, "--host", host, text, *options)

    return call


@pytest.mark.parametrize("text", ["price == 500", "side == 'sell'", "90 <= price < 700"])
@pytest.mark.parametrize("tables", ["overlay", "smallest", "free"])
def test_the_entries_are_those_that_the_subscription_then_takes(
    flowsieve: Command, quote: Command, scene: Any, tmp_path: Path, text: str, tables: str
) -> None:
    scene.replace("[network]\n", f'[network]\ntables = "{tables}"\n')

    def sizes() -> Counter[str]:
        assert flowsieve("run", scene.scenario, "--out", tmp_path).status == 0
        return Counter(flow["switch"] for flow in json.loads((tmp_path / "flows.json").read_text()))

    before, answer = sizes(), quote("dee", text, "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json.keys() >= {"entries", "false_positive_share", "fits"}
    assert (answer.json["fits"], answer.json["reason"]) == (True, None)
    scene.write("requests.csv", (scene.folder / "requests.csv").read_text() + f'sub,new,dee,"{text}"\n')
    after = sizes()
    changed = {switch: n for switch in ("s1", "s2", "s3") if (n := after[switch] - before[switch])}
    assert {switch: n for switch, n in answer.json["entries"].items() if n} == changed != {}


def test_the_share_is_what_the_dz_bring_unwanted(quote: Command, scene: Any) -> None:
    scene.replace("bits = 11", "bits = 2")
    answer = quote("dee", "price < 100", "--json")
    # Of e1, e2 and e3, which lie in the lower half, e2 is not wanted.
    assert answer.json["false_positive_share"] == pytest.approx(1 / 3)


def test_what_does_not_fit_is_status_1_with_the_reason(quote: Command, scene: Any) -> None:
    scene.replace("[network]\n", "[network]\ntrees = 4\ntable_capacity = 3\n")
    scene.write("requests.csv", "op,id,host,filter\nadv,all,ann,True\nsub,cheap,bob,price < 100\n")
    answer = quote("bob", "True", "--json")
    assert answer.status == 1
    assert (answer.json["fits"], answer.json["entries"]) == (False, {})
    assert "needs at least 5 entries and has room for 3" in answer.json["reason"]
    people = quote("bob", "True")
    assert people.status == 1
    words = " ".join(people.out.split())
    assert "no: switch s1 needs at least 5 entries and has room for 3" in words
    assert "raise table_capacity" in words
    assert quote("bob", "price < 50").status == 0


def test_people_read_what_it_costs(quote: Command) -> None:
    answer = quote("dee", "side in ['sell']")
    words = " ".join(answer.out.split())
    assert answer.status == 0
    assert "dee would subscribe to side in ['sell']" in words
    assert "fits yes" in words
    assert "flow operations" in words
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_a_bad_filter_is_shown_with_its_place(quote: Command) -> None:
    answer = quote("dee", "price < 100 and prise > 3")
    assert (answer.status, answer.out) == (2, "")
    told, text, mark = answer.err.splitlines()
    assert "'prise'" in told
    assert "did you mean 'price'?" in told
    assert text[mark.index("^") :].startswith("prise")


def test_an_unknown_host_is_bad_input(quote: Command) -> None:
    answer = quote("eve", "price < 3")
    assert answer.status == 2
    assert "there is no host 'eve' in the scenario; did you mean 'dee'?" in answer.err
