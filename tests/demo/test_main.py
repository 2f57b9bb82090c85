from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.demo.__main__ import main, tell
from flowsieve.demo.telling import Telling
from flowsieve.flow.diff import FlowOp, OpKind


def test_the_demo_tells_its_story_and_writes_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path / "demo")]) == 0
    page = tmp_path / "demo" / "index.html"
    assert page.read_text().startswith("<!doctype html>")
    told = capsys.readouterr().out
    for words in (
        "20 switches, 32 links, 32 hosts",
        "100 subscriptions",
        "20,000 readings",
        "nothing wanted lost, nothing doubled",
        "all 100 saw exactly what their filters match",
        "central broker",
        "Proved in",
    ):
        assert words in told
    assert all(len(line) <= 80 for line in told.splitlines() if str(tmp_path) not in line)


def test_without_a_page_nothing_is_written(
    told: Telling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tell(told, None)
    assert not list(tmp_path.iterdir())
    assert "as a page" not in capsys.readouterr().out


def test_a_network_that_loses_something_fails_the_demo(
    untold: Telling, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = untold.pubsub.network
    switch = untold.story.topology.hosts[untold.story.subscriptions[0].host]
    network.apply(switch, [FlowOp(OpKind.REMOVE, flow) for flow in network.read(switch)])
    assert not tell(untold, tmp_path / "index.html")
    assert "The tables do not hold" in capsys.readouterr().out
    assert "The tables do not hold" in (tmp_path / "index.html").read_text()


def test_a_place_that_cannot_be_written_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["--out", str(tmp_path / "file" / "demo")]) == 2
    assert "cannot be written" in " ".join(capsys.readouterr().err.split())


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        main(["--help"])
    assert leaving.value.code == 0
    assert "example: python -m flowsieve.demo" in capsys.readouterr().out
