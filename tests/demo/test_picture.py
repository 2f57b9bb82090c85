from __future__ import annotations

import xml.etree.ElementTree as ET

from flowsieve.demo.picture import STEPS, Marks, Scale, draw, legend
from flowsieve.markup import Markup, element
from flowsieve.network.generators import fat_tree, line, ring
from flowsieve.network.topology import Topology


def lanes(picture: Markup) -> dict[str, ET.Element]:
    """The lanes by what they say when one points at them."""
    ways = [g for g in ET.fromstring(picture).iter("g") if g.get("class") == "way"]
    return {"".join(g.find("title").itertext()): g.find("line") for g in ways}


def test_text_is_escaped_and_markup_is_not() -> None:
    assert (
        element("p", "a < b & c", element("b", "d"), title='"')
        == '<p title="&quot;">a &lt; b &amp; c<b>d</b></p>'
    )


def test_a_picture_names_every_switch_and_host_whatever_the_layout() -> None:
    for topology in (fat_tree(4), ring(5, hosts=9)):
        words = set(ET.fromstring(draw(topology, {}, Scale(0), title="idle")).itertext())
        assert words >= {*topology.switches, *topology.hosts}


def test_names_may_hold_anything() -> None:
    topology = Topology.make([("<s>", "a & b")], {'"h"': "<s>"})
    words = set(ET.fromstring(draw(topology, {("<s>", "a & b"): 3}, Scale(3), title="&")).itertext())
    assert words >= {"<s>", "a & b", '"h"', "<s> → a & b: 3 packets"}


def test_more_packets_make_a_wider_and_darker_lane_and_none_make_none() -> None:
    loads = {("s0", "s1"): 10, ("s1", "s0"): 1000, ("s1", "s2"): 0}
    drawn = lanes(draw(line(3), loads, Scale.over(loads), title="a line"))
    assert set(drawn) == {"s0 → s1: 10 packets", "s1 → s0: 1,000 packets"}
    thin, thick = drawn["s0 → s1: 10 packets"], drawn["s1 → s0: 1,000 packets"]
    assert float(thin.get("stroke-width")) < float(thick.get("stroke-width"))
    assert thin.get("class") == "lane load1"
    assert thick.get("class") == f"lane load{STEPS}"


def test_the_two_directions_of_a_link_lie_beside_each_other() -> None:
    loads = {("s0", "s1"): 5, ("s1", "s0"): 5}
    there, back = lanes(draw(line(2), loads, Scale(5), title="a link")).values()
    assert abs(float(there.get("y1")) - float(back.get("y2"))) > 1


def test_a_scale_is_shared_by_pictures_that_are_compared() -> None:
    scale = Scale.over({("a", "b"): 4}, {("a", "b"): 400, ("b", "a"): 7})
    assert scale.top == 400
    assert [scale.step(packets) for packets in (1, 100, 400)] == [1, 1 + STEPS // 2, STEPS]
    assert scale.ticks()[0] == 0
    assert scale.ticks()[-1] == 400
    assert scale.ticks() == sorted(set(scale.ticks()))


def test_a_legend_says_what_the_colours_mean() -> None:
    scale = Scale(20_000)
    root = ET.fromstring(legend(scale))
    assert [polygon.get("class") for polygon in root.iter("polygon")] == [
        f"load{n}" for n in range(1, STEPS + 1)
    ]
    assert [text.text for text in root.iter("text")] == [f"{tick:,}" for tick in scale.ticks()]
    assert legend(Scale(0))


def test_table_sizes_and_roles_and_a_way_are_brought_out() -> None:
    marks = Marks({"h0": "publisher", "h1": "reader"}, frozenset({("h0", "s0"), ("s0", "s1"), ("s1", "h1")}))
    root = ET.fromstring(draw(line(3), {}, Scale(0), title="a way", tables={"s0": 1234}, marks=marks))
    kinds = {g.find("title").text: g.get("class") for g in root.iter("g")}
    assert kinds["switch s0: 1,234 flows"] == "switch met"
    assert kinds["switch s2"] == "switch"
    assert kinds["host h0, publisher"] == "host publisher met"
    assert kinds["host h1, reader"] == "host reader met"
    assert kinds["host h2"] == "host"
    assert len([line for line in root.iter("line") if line.get("class") == "trace"]) == 3


def test_a_small_picture_has_no_text() -> None:
    root = ET.fromstring(draw(fat_tree(4), {("a00", "c0"): 1}, Scale(1), title="small", small=True))
    assert not list(root.iter("text"))
    assert len(list(root.iter("title"))) == 1
