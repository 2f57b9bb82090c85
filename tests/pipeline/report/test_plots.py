"""Reports: cells of plans as they are, figures that are images, and a page that needs nothing else."""

from __future__ import annotations

import json
import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput
from flowsieve.index.plan import IndexPlan, plan_to_json
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.plans.learned import AdaptivePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.pipeline.reading.schema_file import write_schema
from flowsieve.pipeline.report import plots
from flowsieve.pipeline.report.figures import of_plans, of_sweep
from flowsieve.pipeline.report.plan_slices import busiest_axes, middle, slice_of
from flowsieve.pipeline.report.report_page import page
from flowsieve.pipeline.report.sweeps import Measured, Sweep, ladder, read_results, trials_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Flowsieve = Callable[..., Any]
SPACE = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 99},
        "ratio": {"type": "float", "min": 0.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
        "name": {"type": "string"},
    }
)
TREE = [("price", 40), ("ratio", 0.3), None, None, ("side", 1), None, ("price", 80), None, None]
PLANS: dict[str, IndexPlan] = {
    "regular": RegularPlan.make(SPACE, 8),
    "adaptive": AdaptivePlan.make(SPACE, {"price": [5, 9, 70], "ratio": [0.25], "name": 2}),
    "kd": KdPlan.make(SPACE, TREE, 6, {"price": [10, 90], "ratio": [0.5], "side": [], "name": 1}),
    "selective": SelectivePlan.make(
        SPACE, [{"price": (10, 60)}, {"price": (40, 80), "ratio": (0.2, 0.6)}], bits=7
    ),
}


def drawn(count: int = 400) -> EventBatch:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "id": [str(i) for i in range(count)],
            "price": rng.integers(0, 100, count),
            "ratio": rng.random(count),
            "side": rng.choice(["buy", "sell", "hold"], count),
            "name": [f"n{i}" for i in rng.integers(0, 5, count)],
        }
    )
    return EventBatch.from_frame(SPACE, frame, needs_host=False)


def filters() -> list[Filter]:
    texts = [f"{low} <= price < {low + 20} and ratio > {low / 100}" for low in range(0, 90, 7)]
    return [Filter.parse(text, SPACE) for text in [*texts, "side == 'buy'", "name == 'n1'", "True"]]


def size(png: bytes) -> tuple[int, int]:
    """The size of an image whose every chunk is sound."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, kinds = 8, []
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + data) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        kinds.append(kind)
        at += 12 + length
    assert kinds[-1] == b"IEND"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def measured(label: str, **changed: Any) -> Measured:
    known = {
        "kind": "kd", "bits": 8, "dimensions": 2, "max_dz": 32, "fpr": 0.25, "false_positives": 25,
        "deliveries": 100, "matches": 75, "prefixes": 40, "prefixes_max": 9,
    }  # fmt: skip
    return Measured(label, **(known | changed))


@pytest.mark.parametrize("kind", PLANS)
def test_the_rectangles_of_a_slice_hold_the_events_of_their_dz(kind: str) -> None:
    plan, events = PLANS[kind], drawn()
    at = middle(events)
    for x, y in (("price", "ratio"), ("side", "price")):
        found = slice_of(plan, x, y, at)
        finest = {}
        for one in found.rectangles:
            if one.dz.length == plan.bits:
                finest.setdefault(one.dz, []).append(one)
        assert found.bits == plan.bits
        for row in range(0, 400, 3):
            event = {**at, x: events.event(row)[x], y: events.event(row)[y]}
            point = [SPACE[name].point(event[name]) for name in (x, y)]
            dz = plan.encode(event)
            for own in dz:
                assert any(
                    one.x0 <= point[0] <= one.x1 and one.y0 <= point[1] <= one.y1 for one in finest[own]
                ), (event, own)
            over = [
                one.dz
                for ones in finest.values()
                for one in ones
                if one.x0 < point[0] < one.x1 and one.y0 < point[1] < one.y1 and not one.under
            ]
            assert set(over) <= set(dz), (event, over)


def test_a_slice_with_too_many_cells_stops_before_it() -> None:
    plan = RegularPlan.make(SPACE, 10, ["price", "ratio"])
    found = slice_of(plan, "price", "ratio", middle(drawn()), most=100)
    assert (found.bits, found.cells) == (6, 64)


def test_what_is_cut_most_finely_is_drawn() -> None:
    at = middle(drawn())
    assert busiest_axes([RegularPlan.make(SPACE, 6, ["ratio", "side"])], at) == ("ratio", "side")
    assert busiest_axes([RegularPlan.make(SPACE, 4, ["name"])], at)[0] == "name"
    with pytest.raises(BadInput, match="did you mean 'price'"):
        slice_of(PLANS["kd"], "pric", "ratio", at)
    with pytest.raises(BadInput, match="both axes are 'price'"):
        slice_of(PLANS["kd"], "price", "price", at)


@pytest.mark.parametrize("axes", [("price", "ratio"), ("side", "name")])
def test_every_kind_of_plan_has_its_picture(axes: tuple[str, str]) -> None:
    shown = list(of_plans(PLANS, drawn(), filters(), axes))
    assert [figure.file for figure in shown] == [f"plan-{label}.png" for label in PLANS]
    assert len({figure.png for figure in shown}) == len(PLANS)
    for figure in shown:
        assert min(size(figure.png)) > 900
    assert plots.cells(slice_of(PLANS["kd"], *axes, middle(drawn())), "kd", drawn(0), []) != shown[2].png


def test_a_sweep_gives_three_figures_and_they_show_what_was_measured() -> None:
    plans = (measured("one"), measured("two", fpr=0.5, bits=6))
    curves = tuple(measured("one", bits=bits, fpr=1 / bits) for bits in (2, 4, 8))
    shown = list(of_sweep(Sweep(plans, curves, curves, curves, 10)))
    assert [figure.file for figure in shown] == ["bits.png", "dimensions.png", "entries.png"]
    for figure in shown:
        assert min(size(figure.png)) > 600
    other = list(of_sweep(Sweep(plans[:1], curves, curves, curves, 10)))
    assert all(figure.png != was.png for figure, was in zip(other, shown, strict=True))
    again = list(of_sweep(Sweep(plans, curves, curves, curves, 10)))
    assert again == shown


def test_the_page_needs_nothing_but_itself() -> None:
    plans = [measured("a <b>", fpr=0.125), measured("worse", fpr=0.5)]
    shown = list(of_sweep(Sweep(tuple(plans))))
    text = page(plans, shown, ["on 5 & more"])
    assert "a &lt;b&gt;" in text
    assert "12.50%" in text
    assert "on 5 &amp; more" in text
    assert not re.search(r"https?://|<script|<link|url\(", text)
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert [b64decode(image) for image in images] == [figure.png for figure in shown]
    assert len(re.findall(r"<img", text)) == len(images)
    assert "No plan was measured" in page([], [], [])


def test_plans_are_tried_with_one_thing_changed_at_a_time() -> None:
    trials = list(trials_of({"kd": PLANS["kd"], "si": PLANS["selective"]}, 32))
    bits = [trial.plan.bits for trial in trials if trial.group == "bits" and trial.label == "kd"]
    assert bits == ladder(6) == [1, 2, 3, 4, 5, 6]
    assert ladder(23)[-1] == 23
    budgets = [trial.max_dz for trial in trials if trial.group == "budget" and trial.label == "kd"]
    assert budgets == [1, 2, 4, 8, 16, 32, 64, 128]
    keys = {trial.key for trial in trials if trial.plan is PLANS["kd"]}
    assert len(keys) == len(budgets)  # the plan as it is, and with all its bits, is measured once


def test_results_are_read_as_evaluate_prints_them(tmp_path: Path) -> None:
    row = {
        "plan": "out/asi.json", "kind": "adaptive", "bits": 8, "fpr": 0.5, "false_positives": 5, "deliveries": 10,
        "matches": 5, "prefixes": 3, "prefixes_max": 2,
    }  # fmt: skip
    path = tmp_path / "r.json"
    path.write_text(json.dumps(row | {"max_dz": 4, "plans": [row, row | {"plan": "kd.json"}]}))
    assert [(found.label, found.max_dz) for found in read_results(path)] == [("asi", 4), ("kd", 4)]
    path.write_text(json.dumps([row | {"dimensions": ["a", "b"]}]))
    assert read_results(path)[0].dimensions == 2
    for wrong, message in (
        ([1], "has 1 for a result"),
        ({**row, "fpr": "x"}, "fpr is 'x' in a result"),
        ({"kind": "kd"}, "a result has no 'bits'"),
    ):
        path.write_text(json.dumps(wrong))
        with pytest.raises(BadInput, match=message):
            read_results(path)


def test_a_report_is_written_from_plans_and_results(
    spark: SparkSession, flowsieve: Flowsieve, tmp_path: Path
) -> None:
    events, texts = drawn(300), filters()
    frame = pd.DataFrame([{"id": f"e{i}", **events.event(i)} for i in range(300)])
    frame.to_csv(tmp_path / "events.csv", index=False)
    rows = pd.DataFrame({"id": range(len(texts)), "filter": [wanted.text for wanted in texts]})
    rows.to_csv(tmp_path / "subscriptions.csv", index=False)
    (tmp_path / "plan.json").write_text(
        json.dumps(plan_to_json(RegularPlan.make(SPACE, 3, ["price", "ratio"])))
    )
    write_schema(tmp_path / "schema.toml", SPACE)
    data = ["--events", tmp_path / "events.csv", "--subscriptions", tmp_path / "subscriptions.csv"]
    given = [*data, "--schema", tmp_path / "schema.toml", "--plan", tmp_path / "plan.json"]
    judged = flowsieve("evaluate", *given, "--json")
    (tmp_path / "r.json").write_text(judged.out)
    out = tmp_path / "out"
    answer = flowsieve("report", *given, "--results", tmp_path / "r.json", "--out", out, "--json")
    assert answer.status == 0, answer.err
    assert answer.json["events"] == 300
    first, second = answer.json["plans"]
    for name in ("fpr", "false_positives", "deliveries", "matches", "prefixes", "prefixes_max"):
        assert first[name] == second[name] == judged.json[name]
    assert first["false_positives"] > 0
    names = {"report.html", "bits.png", "dimensions.png", "entries.png", "plan-regular.png"}
    assert {path.name for path in out.iterdir()} == names
    fprs = [found["fpr"] for found in answer.json["by_bits"]]
    assert fprs == sorted(fprs, reverse=True)
    again = flowsieve("report", *given, "--out", out)
    assert again.status == 2
    assert "--overwrite" in again.err
    drawn_only = flowsieve("report", "--results", tmp_path / "r.json", "--out", tmp_path / "two")
    assert drawn_only.status == 0
    assert "plan-regular" not in drawn_only.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "nothing to draw"),
        (["--plan", "p.json"], "give --events E and --subscriptions F"),
        (["--results", "none.json"], "cannot be read"),
        (["--results", "none.json", "--axes", "price"], "right are two attributes"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    flowsieve: Flowsieve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = flowsieve("report", *given, "--out", "out")
    assert answer.status == 2
    assert message in answer.err
    assert not list(tmp_path.iterdir())
