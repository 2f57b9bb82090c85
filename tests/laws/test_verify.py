"""The law of verify: it finds what sending every cell from everywhere finds, in good and in broken tables."""

from collections import Counter

import networkx as nx
from hypothesis import given, settings
from worlds import (
    ENCODING,
    EVENTS,
    FINE,
    PLAN,
    Tables,
    World,
    a_world,
    broken_tables,
    cells,
    good_tables,
    seeds,
)

from flowsieve.flow.flat import look_up
from flowsieve.flow.proof.verify import verify
from flowsieve.flow.view import NetworkView
from flowsieve.flow.wiring import HOP_LIMIT
from flowsieve.index.dz import Dz


def outputs(world: World, tables: Tables, switch: str, came_from: str, cell: Dz) -> list[str]:
    flow = look_up(tables[switch], ENCODING.family, ENCODING.address_of(cell))
    near = world.topology.neighbours(switch)
    return [near[port - 1] for port in (flow.ports if flow else ()) if near[port - 1] != came_from]


def copies(world: World, tables: Tables, host: str, cell: Dz) -> Counter[str]:
    """How many copies each host gets of a packet, counted hop by hop."""
    got: Counter[str] = Counter()
    under_way = Counter({(world.topology.hosts[host], host): 1})
    for _ in range(HOP_LIMIT - 1):
        coming: Counter[tuple[str, str]] = Counter()
        for (switch, came_from), number in under_way.items():
            for to in outputs(world, tables, switch, came_from, cell):
                if to in world.topology.hosts:
                    got[to] += number
                else:
                    coming[to, switch] += number
        under_way = coming
    return got


def looping(world: World, tables: Tables) -> set[str]:
    """Switches on a loop or behind one, for any address."""
    found: set[str] = set()
    for cell in cells(FINE):
        ways = nx.DiGraph()
        for switch in world.topology.switches:
            for came_from in world.topology.linked(switch):
                for to in outputs(world, tables, switch, came_from, cell):
                    if to not in world.topology.hosts:
                        ways.add_edge((came_from, switch), (switch, to))
        for part in nx.strongly_connected_components(ways):
            if len(part) > 1:
                reached = part.union(*(nx.descendants(ways, link) for link in part))
                found |= {switch for _, switch in reached}
    return found


def sampled(world: World, tables: Tables) -> tuple[int, int, int]:
    """False negatives, duplicates and loops, by sending every cell from every publisher."""
    lost, doubled = set(), set()
    for publisher in {each.endpoint for each in world.advertisements}:
        own = [each for each in world.advertisements if each.endpoint == publisher]
        got = {cell: copies(world, tables, publisher, cell) for cell in cells(PLAN.bits)}
        for cell, counted in got.items():
            if any(each.dz.covers(cell) for each in own):
                doubled |= {(publisher, host) for host, number in counted.items() if number > 1}
        for event in EVENTS:
            (cell,) = PLAN.encode(event)
            if any(each.filter.matches(event) for each in own):
                lost |= {
                    (publisher, each.endpoint)
                    for each in world.subscriptions
                    if each.endpoint != publisher
                    and each.filter.matches(event)
                    and not got[cell][each.endpoint]
                }
    return len(lost), len(doubled), len(looping(world, tables))


@given(seeds)
def test_good_tables_hold(random):
    world = a_world(random)
    tables = good_tables(world)
    verdict = verify(
        NetworkView(world.topology, PLAN, ENCODING, tables, world.advertisements, world.subscriptions)
    )
    assert verdict.holds, verdict.witness
    assert verdict.witness is None
    assert sampled(world, tables) == (0, 0, 0)


@settings(max_examples=200)
@given(seeds)
def test_broken_tables_are_judged_as_sending_every_cell_judges_them(random):
    world = a_world(random)
    tables = broken_tables(world, random)
    verdict = verify(
        NetworkView(world.topology, PLAN, ENCODING, tables, world.advertisements, world.subscriptions)
    )
    assert (verdict.false_negatives, verdict.duplicates, verdict.loops) == sampled(world, tables)
    assert verdict.holds == (verdict.witness is None)


@given(seeds)
def test_a_witness_of_a_loss_or_a_second_copy_really_is_one(random):
    world = a_world(random)
    tables = broken_tables(world, random)
    verdict = verify(
        NetworkView(world.topology, PLAN, ENCODING, tables, world.advertisements, world.subscriptions)
    )
    witness = verdict.witness
    if witness is None or witness.kind not in ("false negative", "duplicate"):
        return
    offers = [each for each in world.advertisements if each.endpoint == witness.publisher]
    (cell,) = PLAN.encode(witness.event)
    got = copies(world, tables, witness.publisher, cell)
    if witness.kind == "duplicate":
        assert any(number > 1 and f" {host} " in witness.where for host, number in got.items())
        assert any(each.dz.covers(cell) for each in offers)
    else:
        asking = {each.endpoint for each in world.subscriptions if each.filter.matches(witness.event)}
        assert any(not got[host] and witness.where.startswith(f"{host} ") for host in asking)
        assert any(each.filter.matches(witness.event) for each in offers)
