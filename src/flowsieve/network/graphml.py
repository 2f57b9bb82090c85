"""Topologies from GraphML files, such as those of the Internet Topology Zoo, as they are.

A switch's name is the node's id, for labels are missing or doubled. Self-loops carry nothing and are passed
over, directions are ignored, and a link between two places takes the time that light in fibre needs.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from flowsieve.errors import BadTopology
from flowsieve.network.topology import DEFAULT_LATENCY_MS, Link

EARTH_RADIUS_KM = 6371.0
FIBRE_KM_PER_MS = 200.0  # two thirds of the speed of light


def read_graphml(path: str | Path) -> tuple[tuple[str, ...], tuple[Link, ...]]:
    """The switches and links of a file; parallel links are left for `Topology.make` to merge."""
    graph = _read(Path(path))
    places = _places(graph)
    links = tuple(Link(a, b, _latency_ms(places.get(a), places.get(b))) for a, b in graph.edges() if a != b)
    return tuple(graph.nodes), links


def _read(path: Path) -> Any:
    """The file as a networkx multigraph; whatever is wrong with it becomes an error that names the file."""
    import networkx as nx  # which takes a while, and few need it

    try:
        _check_ids(ElementTree.parse(path).getroot())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # keys without a type are read as text, which is what we expect
            return nx.read_graphml(path, force_multigraph=True)
    except BadTopology as error:
        raise error.at(str(path)) from None
    except OSError as error:
        raise BadTopology(f"cannot be read as a file: {error.strerror or error}", place=str(path)) from None
    except ElementTree.ParseError as error:
        line, column = error.position
        what = str(error).partition(":")[0]
        raise BadTopology(f"is not XML: {what} (column {column + 1})", place=f"{path}: line {line}") from None
    except KeyError as error:
        types = "boolean, int, long, float, double or string"
        raise BadTopology(
            f"has a <key> of the unknown type {error}; right is {types}", place=str(path)
        ) from None
    except (nx.NetworkXException, ValueError, TypeError, LookupError) as error:
        raise BadTopology(f"is not GraphML that can be read: {str(error)[:200]}", place=str(path)) from None


def _check_ids(root: ElementTree.Element) -> None:
    """Reject what networkx would quietly make up: nodes without an id, or named by nothing but an edge."""
    graph = root.find("{*}graph")
    if graph is None:
        raise BadTopology(f"has no <graph> in its <{root.tag.rpartition('}')[2]}>; a GraphML file has one")
    nodes = [node.get("id") for node in graph.iterfind("{*}node")]
    if not nodes:
        raise BadTopology("has a <graph> without a <node>; a topology needs at least one switch")
    if None in nodes or "" in nodes:
        raise BadTopology("has a <node> without an id; the id is the switch's name")
    twice = [name for name, count in Counter(nodes).items() if count > 1]
    if twice:
        raise BadTopology(f"has more than one <node> with the id {twice[0]!r}; ids are unique")
    known = set(nodes)
    for edge in graph.iterfind("{*}edge"):
        for end in ("source", "target"):
            if edge.get(end) not in known:
                raise BadTopology(
                    f"has an <edge> whose {end} is {edge.get(end)!r}, which is the id of no <node>"
                )


def _places(graph: Any) -> dict[str, tuple[float, float]]:
    """Latitude and longitude, in degrees, of the switches that have both."""
    places = {}
    for switch, data in graph.nodes(data=True):
        latitude, longitude = _degrees(data, "Latitude", 90), _degrees(data, "Longitude", 180)
        if latitude is not None and longitude is not None:
            places[switch] = (latitude, longitude)
    return places


def _degrees(data: Mapping[str, object], name: str, most: float) -> float | None:
    """A coordinate, or None where there is none that makes sense."""
    try:
        value = float(str(data.get(name)))
    except ValueError:
        return None
    return value if abs(value) <= most else None


def _latency_ms(a: tuple[float, float] | None, b: tuple[float, float] | None) -> float:
    if a is None or b is None:
        return DEFAULT_LATENCY_MS
    return max(DEFAULT_LATENCY_MS, great_circle_km(a, b) / FIBRE_KM_PER_MS)


def great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The distance over ground of two places, each a latitude and a longitude in degrees (haversine)."""
    (lat_a, lon_a), (lat_b, lon_b) = (tuple(map(math.radians, place)) for place in (a, b))
    chord = (
        math.sin((lat_b - lat_a) / 2) ** 2
        + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(min(1.0, math.sqrt(chord)))
