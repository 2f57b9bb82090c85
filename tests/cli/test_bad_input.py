"""Bad input through the command line: status 2, file, line, value and remedy told, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

Command = Callable[..., Any]


class Spoilt(NamedTuple):
    """A file of the scenario spoilt, and what must be told of it: place, value, what would be right."""

    name: str
    old: str
    new: str | bytes
    told: tuple[str, ...]


GRAPHML = "<graphml><graph><node id='s1'/><node id='s2'/><edge source='s1' target='s9'/></graph></graphml>"
LINKS = 'links = [["s1", "s2"], ["s2", "s3"], ["s3", "s1"]]'
REQUEST = "sub,cheap,bob,price < 100"

MISTAKES = {
    "an unknown attribute": Spoilt(
        "requests.csv", REQUEST, "sub,cheap,bob,prise < 100", ("requests.csv line 4", "'prise'", "did you mean 'price'")
    ),
    "a syntax error": Spoilt(
        "requests.csv", REQUEST, "sub,cheap,bob,price < < 100", ("requests.csv line 4", "price < < 100", "^")
    ),
    "a wrong type": Spoilt(
        "requests.csv", REQUEST, "sub,cheap,bob,price < 'x'", ("requests.csv line 4", "'x'", "price")
    ),
    "a filter that can match nothing": Spoilt(
        "requests.csv", REQUEST, "sub,cheap,bob,price > 1023", ("requests.csv line 4", "price > 1023", "from 0 to 1023")
    ),
    "a duplicate id": Spoilt(
        "requests.csv", REQUEST, f"{REQUEST}\n{REQUEST}", ("requests.csv line 5", "'cheap'", "line 4", "of its own")
    ),
    "an unknown id": Spoilt(
        "requests.csv", REQUEST, f"{REQUEST}\nunsub,cheep,bob,", ("requests.csv line 5", "'cheep'", "'cheap'")
    ),
    "a second event with an id": Spoilt(
        "events.csv", "e2,ann", "e1,ann", ("events.csv line 3", "'e1'", "line 2", "of its own")
    ),
    "an unknown host in a request": Spoilt(
        "requests.csv", REQUEST, "sub,cheap,bop,price < 100", ("requests.csv line 4", "'bop'", "'bob'")
    ),
    "an unknown host in an event": Spoilt("events.csv", "e1,ann", "e1,an", ("events.csv line 2", "'an'", "'ann'")),
    "an unknown switch": Spoilt(
        "scenario.toml", 'cy = "s3"', 'cy = "s8"', ("scenario.toml line 12", "'s8'", "there are s1, s2, s3")
    ),
    "a request from a part that is cut off": Spoilt(
        "scenario.toml", '["s1", "s2"], ["s2", "s3"], ["s3", "s1"]', '["s1", "s3"], ["s2", "s4"]',
        ("requests.csv line", "'bob'", "cut off", "right is a host"),
    ),
    "too many bits": Spoilt("scenario.toml", "bits = 11", "bits = 113", ("scenario.toml line 5", "113", "112")),
    "broken TOML": Spoilt("scenario.toml", "bits = 11", "bits = ", ("scenario.toml line 5", "bits =", "right is")),
    "broken CSV": Spoilt(
        "requests.csv", REQUEST, 'sub,cheap,bob,"price < 100', ("requests.csv line 4", "never closed", "right is")
    ),
    "a row too short": Spoilt("events.csv", "e2,ann,150,buy", "e2,ann,150", ("events.csv line 3", "'150'", "side")),
    "an unknown op": Spoilt(
        "requests.csv", REQUEST, "sbu,cheap,bob,True", ("requests.csv line 4", "'sbu'", "right is one of", "sub")
    ),
    "a value that is no number": Spoilt(
        "events.csv", "e2,ann,150", "e2,ann,15o", ("events.csv line 3", "'15o'", "price")
    ),
    "a filter of 10 MB": Spoilt(
        "requests.csv", REQUEST, "sub,cheap,bob," + "(" * 10_000_000, ("requests.csv line 4", "131,072", "right are")
    ),
    "bytes that are no text": Spoilt(
        "requests.csv", REQUEST, b"sub,cheap,bob,\xff", ("requests.csv line 4", "0xff", "UTF-8")
    ),
    "a file that is not there": Spoilt(
        "scenario.toml", '"events.csv"', '"event.csv"', ("scenario.toml line 17", "event.csv", "'events.csv'")
    ),
    "broken GraphML": Spoilt(
        "scenario.toml", LINKS, 'topology = "net.graphml"', ("net.graphml", "'s9'")
    ),
    "broken Parquet": Spoilt(
        "scenario.toml", '"events.csv"', '"broken.parquet"', ("broken.parquet", "Parquet", "right are")
    ),
    "no number in Parquet": Spoilt(
        "scenario.toml", '"events.csv"', '"words.parquet"', ("words.parquet row 2", "'many'", "price")
    ),
}  # fmt: skip


def spoil(scene: Any, mistake: Spoilt) -> None:
    scene.write("net.graphml", GRAPHML)
    scene.write("broken.parquet", "PAR1 and nothing more PAR1")
    rows = [("e1", "ann", "7", "buy"), ("e2", "ann", "many", "buy")]
    pd.DataFrame(rows, columns=["id", "host", "price", "side"]).to_parquet(scene.folder / "words.parquet")
    text = (scene.folder / mistake.name).read_bytes()
    new = mistake.new if isinstance(mistake.new, bytes) else mistake.new.encode()
    assert mistake.old.encode() in text
    scene.write(mistake.name, text.replace(mistake.old.encode(), new))


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_place_and_remedy_and_nothing_is_written(
    flowsieve: Command, scene: Any, tmp_path: Path, mistake: Spoilt
) -> None:
    spoil(scene, mistake)
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out", "--json")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    for part in mistake.told:
        assert part in answer.err, f"{part!r} is not in:\n{answer.err}"
    assert len(answer.err) < 2000
    assert not (tmp_path / "out").exists()


def test_what_a_former_run_wrote_stays_as_it_was(flowsieve: Command, scene: Any, tmp_path: Path) -> None:
    assert flowsieve("run", scene.scenario, "--out", tmp_path / "out").status == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    spoil(scene, MISTAKES["an unknown attribute"])
    assert flowsieve("run", scene.scenario, "--out", tmp_path / "out").status == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize(
    "command", [("verify",), ("explain", "--host", "ann", "price=1"), ("quote", "--host", "ann", "True")]
)
def test_every_command_checks_the_scenario_before_it_does_anything(
    flowsieve: Command, scene: Any, command: tuple[str, ...]
) -> None:
    spoil(scene, MISTAKES["a wrong type"])
    answer = flowsieve(command[0], scene.scenario, *command[1:], "--json")
    assert (answer.status, answer.out) == (2, "")
    assert "requests.csv line 4" in answer.err


def test_several_mistakes_are_told_at_once(flowsieve: Command, scene: Any, tmp_path: Path) -> None:
    for name in ("an unknown attribute", "an unknown host in an event"):
        spoil(scene, MISTAKES[name])
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out")
    assert answer.status == 2
    assert "requests.csv line 4" in answer.err
    assert "events.csv line 2" in answer.err


@pytest.mark.parametrize(
    ("events", "reasons"),
    [
        ("e1,ann,1024,buy\ne2,ann,-1,buy\n", ["e1: price = 1024 is above 1023", "e2: price = -1 is below 0"]),
        (
            "e1,ann,nan,buy\ne2,ann,inf,buy\n",
            ["e1: price is missing or not a number", "e2: price = inf is not finite"],
        ),
        ("e1,ann,1.5,buy\ne2,ann,1,hold\n", ["e1: price = 1.5 is not a whole number", "e2: side = 'hold'"]),
        (
            "e1,bob,700,buy\ne2,cy,7,buy\n",
            ["e1: outside the advertisements of bob", "e2: cy has advertised nothing"],
        ),
    ],
)
def test_a_well_formed_event_that_may_not_be_sent_is_rejected_and_no_mistake(
    flowsieve: Command, scene: Any, tmp_path: Path, events: str, reasons: list[str]
) -> None:
    scene.write("events.csv", f"id,host,price,side\n{events}")
    answer = flowsieve("run", scene.scenario, "--out", tmp_path / "out", "--json")
    assert answer.status == 0
    assert (answer.json["events"], answer.json["rejected"]) == (2, 2)
    for told, reason in zip(answer.json["first_rejected"], reasons, strict=True):
        assert told.startswith(reason)
