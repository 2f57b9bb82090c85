"""GraphML as it is found in the world, the Internet Topology Zoo's first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest

from flowsieve.errors import BadTopology
from flowsieve.network.graphml import great_circle_km, read_graphml
from flowsieve.network.topology import DEFAULT_LATENCY_MS, Link, Topology
from flowsieve.network.tree import center_tree

Writer = Callable[[str | bytes], Path]
SHARED = Path(__file__).parents[2].parent / "shared"
ZOO = SHARED / "data" / "topologies"
HEAD = '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
KEYS = (
    '<key attr.name="Latitude" attr.type="double" for="node" id="d0"/>'
    '<key attr.name="Longitude" attr.type="double" for="node" id="d1"/>'
)


def place(name: str, latitude: float, longitude: float) -> str:
    return f'<node id="{name}"><data key="d0">{latitude}</data><data key="d1">{longitude}</data></node>'


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "net.graphml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def zoo_files() -> list[Path]:
    return sorted(ZOO.glob("*.graphml"))


@pytest.mark.skipif(not ZOO.is_dir(), reason="../shared/data/topologies is not here")
def test_all_twenty_zoo_files_are_there() -> None:
    assert len(zoo_files()) == 20


@pytest.mark.parametrize("path", zoo_files(), ids=lambda path: path.stem)
def test_a_zoo_file_gives_the_simple_graph_beneath_it(path: Path) -> None:
    switches, links = read_graphml(path)
    topology = Topology.make(links, {f"h{name}": name for name in switches}, switches)
    simple = nx.Graph(nx.read_graphml(path, force_multigraph=True))
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    assert set(topology.switches) == set(simple.nodes)
    assert {frozenset((link.a, link.b)) for link in topology.links} == set(map(frozenset, simple.edges))
    assert set(topology.components()) == set(map(frozenset, nx.connected_components(simple)))
    assert all(DEFAULT_LATENCY_MS <= link.latency_ms < 100 for link in topology.links)
    assert len(center_tree(topology).edges) == len(topology.main) - 1


def test_parallel_edges_and_self_loops_are_as_they_are(write: Writer) -> None:
    path = write(
        HEAD + '<graph edgedefault="undirected"><node id="0"/><node id="1"/><node id="2"/>'
        '<edge source="0" target="1"/><edge source="1" target="0"/><edge source="2" target="2"/>'
        "</graph></graphml>"
    )
    switches, links = read_graphml(path)
    assert switches == ("0", "1", "2")
    assert links == (Link("0", "1"), Link("0", "1"))
    assert Topology.make(links, {}, switches).links == (Link("0", "1"),)


def test_a_directed_graph_is_read_as_if_it_were_not(write: Writer) -> None:
    path = write(
        HEAD + '<graph edgedefault="directed"><node id="a"/><node id="b"/>'
        '<edge source="a" target="b"/><edge source="b" target="a"/></graph></graphml>'
    )
    switches, links = read_graphml(path)
    assert Topology.make(links, {}, switches).links == (Link("a", "b"),)


def test_latency_is_the_time_of_light_in_fibre_where_both_ends_have_a_place(write: Writer) -> None:
    path = write(
        f'{HEAD}{KEYS}<graph edgedefault="undirected">{place("berlin", 52.52, 13.405)}'
        f'{place("rome", 41.9, 12.5)}{place("pankow", 52.5201, 13.405)}<node id="nowhere"/>'
        '<edge source="berlin" target="rome"/><edge source="berlin" target="pankow"/>'
        '<edge source="rome" target="nowhere"/></graph></graphml>'
    )
    latency = {(link.a, link.b): link.latency_ms for link in read_graphml(path)[1]}
    assert latency["berlin", "rome"] == pytest.approx(1182 / 200, rel=0.01)
    assert latency["berlin", "pankow"] == DEFAULT_LATENCY_MS
    assert latency["rome", "nowhere"] == DEFAULT_LATENCY_MS


def test_a_switch_without_a_sensible_place_is_near_to_all(write: Writer) -> None:
    nodes = place("a", 52.5, 13.4) + place("b", 99, 0) + place("c", float("nan"), 0) + '<node id="d"/>'
    edges = "".join(f'<edge source="a" target="{end}"/>' for end in "bcd")
    path = write(f'{HEAD}{KEYS}<graph edgedefault="undirected">{nodes}{edges}</graph></graphml>')
    assert [link.latency_ms for link in read_graphml(path)[1]] == [DEFAULT_LATENCY_MS] * 3


def test_keys_without_a_type_are_read_all_the_same(write: Writer) -> None:
    untyped = KEYS.replace(' attr.type="double"', "")
    nodes = place("a", 1, 2) + place("b", 1, 20) + '<edge source="a" target="b"/>'
    path = write(f'{HEAD}{untyped}<graph edgedefault="undirected">{nodes}</graph></graphml>')
    assert [link.latency_ms for link in read_graphml(path)[1]] == [pytest.approx(2001 / 200, rel=0.01)]


def test_great_circles_are_as_long_as_the_earth_is_round() -> None:
    assert great_circle_km((0, 0), (0, 180)) == pytest.approx(20015, rel=1e-3)
    assert great_circle_km((90, 0), (0, 77)) == pytest.approx(10008, rel=1e-3)
    assert great_circle_km((12, 34), (12, 34)) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + '\n<graph>\n<node id="1"></graph></graphml>', "line 3: is not XML: mismatched tag"),
        ("", "line 1: is not XML: no element found"),
        (b"\x00\xff\x80 no text", "line 1: is not XML"),
        ("a,b\n1,2\n", "line 1: is not XML: syntax error"),
        ("<svg/>", "has no <graph> in its <svg>"),
        (HEAD + "</graphml>", "has no <graph> in its <graphml>"),
        (HEAD + '<graph edgedefault="undirected"/></graphml>', "has a <graph> without a <node>"),
        (HEAD + "<graph><node/></graph></graphml>", "has a <node> without an id"),
        (
            HEAD + '<graph><node id="7"/><node id="7"/></graph></graphml>',
            "more than one <node> with the id '7'",
        ),
        (
            HEAD + '<graph><node id="7"/><edge source="7" target="8"/></graph></graphml>',
            "has an <edge> whose target is '8', which is the id of no <node>",
        ),
        (HEAD + '<graph><node id="7"/><edge target="7"/></graph></graphml>', "whose source is None"),
        (
            HEAD + KEYS.replace("double", "angle") + '<graph><node id="7"/></graph></graphml>',
            "has a <key> of the unknown type 'angle'; right is boolean, int,",
        ),
        (
            HEAD + '<graph><node id="7"><data key="d9">x</data></node></graph></graphml>',
            "is not GraphML that can be read",
        ),
        (f'{HEAD}{KEYS}<graph><node id="7"><data key="d0">north</data></node></graph></graphml>', "north"),
    ],
)
def test_a_broken_file_is_refused_by_name_with_what_is_wrong(
    write: Writer, text: str | bytes, message: str
) -> None:
    path = write(text)
    with pytest.raises(BadTopology) as caught:
        read_graphml(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_path_without_a_file_is_refused_by_name(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.graphml", tmp_path):
        with pytest.raises(BadTopology) as caught:
            read_graphml(path)
        assert str(caught.value).startswith(f"{path}: cannot be read as a file: ")
