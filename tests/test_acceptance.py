"""Scenarios played by the command and judged from first principles by a program that shares no code with it.

The judge, `acceptance/oracle.py`, and its scenarios lie beside the project; those made up here are judged as well.
"""

from __future__ import annotations

import csv
import ipaddress
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import networkx as nx
import pytest

from flowsieve.content.filter import Filter
from flowsieve.network.generators import fat_tree
from flowsieve.scenario.read import Scenario, read_scenario

COMMAND = Path(sys.executable).with_name("flowsieve")
SCENARIOS = ["fat-tree-rich", "geant-capacity", "random-zipf-budget", "ring-exact", "tree-ipv4-strays"]
Flows = list[dict[str, Any]]
Key = tuple[int, int, int]  # of an entry: priority, length of the prefix, its bits


@pytest.fixture(scope="module")
def oracle(shared: Path) -> Path:
    path = shared / "acceptance" / "oracle.py"
    if not path.is_file():
        pytest.skip("the oracle in ../shared/acceptance is not there")
    return path


def judge(oracle: Path, scenario: Path, out: Path) -> None:
    verdict = subprocess.run(
        [sys.executable, str(oracle), str(scenario), "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert verdict.returncode == 0, verdict.stdout + verdict.stderr
    assert verdict.stdout.startswith("holds: ")


class Walker:
    """Packets through a dump of tables, in the plainest way: the best entry, never back to where it came from."""

    def __init__(self, scenario: Scenario, flows: Flows) -> None:
        self.scenario = scenario
        self.tables: dict[str, dict[Key, list[str]]] = defaultdict(dict)
        for flow in flows:
            address, length = flow["dst"].split("/")
            key = (flow["priority"], int(length), number(address) >> (self.width - int(length)))
            self.tables[flow["switch"]][key] = flow["out"]
        self.ranks = {
            switch: sorted({key[:2] for key in table})[::-1] for switch, table in self.tables.items()
        }

    @property
    def width(self) -> int:
        return self.scenario.index.encoding.tag.group.width

    def met(self, switch: str, dst: str) -> Key | None:
        """The entry that a packet meets at a switch."""
        keys = ((*rank, number(dst) >> (self.width - rank[1])) for rank in self.ranks.get(switch, ()))
        return next((key for key in keys if key in self.tables[switch]), None)

    def walk(self, source: str, dst: str) -> Iterator[tuple[str, Key, str]]:
        """Each step of a packet: the switch, the entry it meets there and where that sends it; endless on a loop."""
        under_way = deque([(self.scenario.topology.hosts[source], source)])
        while under_way:
            switch, came_from = under_way.popleft()
            key = self.met(switch, dst)
            for out in self.tables[switch][key] if key else ():
                if key is not None and out != came_from:
                    yield switch, key, out
                    if out not in self.scenario.topology.hosts:
                        under_way.append((out, switch))

    def copies(self, source: str, dst: str) -> Counter[str]:
        """How many copies get to each switch and host; in a network so small more than 1000 are a loop."""
        return Counter(out for _, _, out in islice(self.walk(source, dst), 1000))

    def break_for(self, source: str, dst: str, host: str) -> bool:
        """Take out an entry without which the host does not get the packet, if there is one."""
        for switch, key, _ in list(self.walk(source, dst)):
            out = self.tables[switch].pop(key)
            if not self.copies(source, dst)[host]:
                return True
            self.tables[switch][key] = out
        return False

    def dump(self) -> Flows:
        kind = ipaddress.IPv6Address if self.width == 128 else ipaddress.IPv4Address
        return [
            {
                "switch": switch,
                "priority": priority,
                "dst": f"{kind(bits << (self.width - length))}/{length}",
                "out": out,
            }
            for switch, table in self.tables.items()
            for (priority, length, bits), out in table.items()
        ]


class Wish(NamedTuple):
    host: str
    filter: Filter


def interests(scenario: Scenario, op: str) -> list[Wish]:
    """What is advertised or subscribed at a scenario's end, as its files say."""
    found: dict[str, Wish] = {}
    for path in sorted(scenario.path.parent.glob("requests*.csv")):
        for row in rows(path):
            if row["op"] == op:
                found[row["id"]] = Wish(row["host"], Filter.parse(row["filter"], scenario.schema))
            elif row["op"] == f"un{op}":
                del found[row["id"]]
    return list(found.values())


def number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def last_deliveries(scenario: Path, out: Path) -> Iterator[tuple[str, str, str]]:
    """Publisher, address and host of what was wanted and arrived in the last step of events."""
    last = {row["id"]: row["host"] for row in rows(max(scenario.parent.glob("events*.csv")))}
    wanted = {row["event"] for row in rows(out / "matches.csv")}
    for row in rows(out / "deliveries.csv"):
        if row["event"] in last and row["event"] in wanted:
            yield last[row["event"]], row["dst"], row["host"]


def check_loss(verdict: dict[str, Any], walker: Walker) -> None:
    """The witness is an event that its publisher may publish, a host wants, and these tables do not bring there."""
    assert verdict["holds"] is False
    assert verdict["false_negatives"] > 0
    witness, scenario = verdict["witness"], walker.scenario
    event = witness["event"]
    offers, wants = interests(scenario, "adv"), interests(scenario, "sub")
    assert any(offer.host == witness["publisher"] and offer.filter.matches(event) for offer in offers)
    (dz,) = scenario.index.plan.encode(event)
    got = walker.copies(witness["publisher"], scenario.index.encoding.text(dz))
    losing = {want.host for want in wants if want.filter.matches(event) and not got[want.host]}
    assert any(witness["where"].startswith(f"{host} wants it") for host in losing)


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_acceptance_scenario_holds(
    shared: Path, oracle: Path, flowsieve: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    path = shared / "acceptance" / name / "scenario.toml"
    if not path.is_file():
        pytest.skip(f"the scenario ../shared/acceptance/{name} is not there")
    if not COMMAND.exists():
        pytest.skip(f"{COMMAND} is not installed; `make setup` does it")
    ran = subprocess.run(
        [str(COMMAND), "run", str(path), "--out", str(tmp_path)], capture_output=True, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    judge(oracle, path, tmp_path)
    assert flowsieve("verify", path, "--flows", tmp_path / "flows.json", "--json").json["holds"] is True


@pytest.mark.parametrize("name", ["random-zipf-budget"])
def test_an_acceptance_scenario_holds_with_labels_from_some_of_its_hosts(
    shared: Path, oracle: Path, flowsieve: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    there, folder = shared / "acceptance" / name, tmp_path / name
    if not there.is_dir():
        pytest.skip(f"the scenario ../shared/acceptance/{name} is not there")
    folder.mkdir()
    for file in there.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    path = folder / "scenario.toml"
    text = path.read_text()
    assert 'header = "ipv6"\n' in text
    path.write_text(text.replace('header = "ipv6"\n', 'header = "ipv6"\nlabels = ["h1*"]\n'))
    assert flowsieve("run", path, "--out", tmp_path / "out").status == 0
    judge(oracle, path, tmp_path / "out")
    groups = {flow["dst"][:4] for flow in json.loads((tmp_path / "out" / "flows.json").read_text())}
    assert groups == {"ff0e", "ff1e"}
    answer = flowsieve("verify", path, "--flows", tmp_path / "out" / "flows.json", "--json")
    assert answer.json["holds"] is True


def break_and_verify(flowsieve: Callable[..., Any], path: Path, out: Path) -> None:
    """Without an entry that something needs, `verify` says so, and its witness is right."""
    walker = Walker(read_scenario(path), json.loads((out / "flows.json").read_text()))
    assert any(walker.break_for(*delivery) for delivery in last_deliveries(path, out))
    (out / "broken.json").write_text(json.dumps(walker.dump()))
    answer = flowsieve("verify", path, "--flows", out / "broken.json", "--json")
    assert answer.status == 1
    check_loss(answer.json, walker)


def test_in_a_ring_a_flow_too_few_a_port_too_many_and_a_loop_are_seen(
    shared: Path, flowsieve: Callable[..., Any], tmp_path: Path
) -> None:
    path = shared / "acceptance" / "ring-exact" / "scenario.toml"
    if not path.is_file():
        pytest.skip("the scenario ../shared/acceptance/ring-exact is not there")
    assert flowsieve("run", path, "--out", tmp_path).status == 0
    break_and_verify(flowsieve, path, tmp_path)
    walker = Walker(read_scenario(path), json.loads((tmp_path / "flows.json").read_text()))
    topology = walker.scenario.topology

    source, dst = add_a_port(walker, last_deliveries(path, tmp_path))
    assert max(walker.copies(source, dst).values()) == 2
    (tmp_path / "widened.json").write_text(json.dumps(walker.dump()))
    answer = flowsieve("verify", path, "--flows", tmp_path / "widened.json", "--json")
    assert answer.status == 1
    assert (answer.json["duplicates"] > 0, answer.json["loops"]) == (True, 0)
    witness = answer.json["witness"]
    assert witness["kind"] == "duplicate"
    ((address, host),) = re.findall(r"sent to (\S+) it gets to (\S+) more than once", witness["where"])
    assert walker.copies(witness["publisher"], address)[host] == 2

    ring = [link.a for link in topology.links]
    around = [
        {"switch": a, "priority": 3000, "dst": "ff0e:8000::/17", "out": [b]}
        for a, b in pairwise([*ring, ring[0]])
    ]
    (tmp_path / "loop.json").write_text(json.dumps(walker.dump() + around))
    assert sum(Walker(walker.scenario, around).copies("h0", "ff0e:8000::").values()) == 1000
    answer = flowsieve("verify", path, "--flows", tmp_path / "loop.json", "--json")
    assert answer.status == 1
    assert answer.json["loops"] == len(ring)


def add_a_port(walker: Walker, deliveries: Iterator[tuple[str, str, str]]) -> tuple[str, str]:
    """Have an entry output to a neighbour more, such that some host gets two copies of a packet, which is returned."""
    for source, dst, _ in deliveries:
        for switch, key, _ in list(walker.walk(source, dst)):
            out = walker.tables[switch][key]
            for more in walker.scenario.topology.linked(switch):
                walker.tables[switch][key] = sorted({*out, more})
                copies = walker.copies(source, dst)
                if (
                    any(copies[host] == 2 for host in walker.scenario.topology.hosts)
                    and max(copies.values()) == 2
                ):
                    return source, dst
            walker.tables[switch][key] = out
    raise AssertionError("one port more never makes a second copy")


# Scenarios made up here.

SCHEMA = {
    "price": 'price = { type = "int", min = 0, max = 1000 }',
    "size": 'size = { type = "int", min = -20, max = 19 }',
    "ratio": 'ratio = { type = "float", min = -1.5, max = 2.5 }',
    "side": 'side = { type = "enum", values = ["buy", "sell", "hold"] }',
    "live": "live = { type = 'bool' }",
}


def a_term(random: Random, name: str) -> str:
    match name:
        case "live":
            return random.choice(["live", "not live", "live == True"])
        case "side":
            return random.choice(
                ["side == 'buy'", "side in ('sell', 'hold')", "side != 'hold'", "not side == 'sell'"]
            )
        case "ratio":
            low = round(random.uniform(-1.5, 2), 3)
            return random.choice(
                [f"{low} <= ratio < {low + 0.7:.3f}", f"ratio > {low}", f"not ratio > {low}"]
            )
    least, most = (0, 1000) if name == "price" else (-20, 19)
    low = random.randint(least, most - 2)
    high = random.randint(low + 1, most)
    return random.choice(
        [
            f"{low} <= {name} < {high}",
            f"{name} >= {low} and {name} <= {high}",
            f"not ({low} > {name} or {name} > {high})",
        ]
    )


def a_filter(random: Random, names: list[str]) -> str:
    def box() -> str:
        return " and ".join(
            a_term(random, name) for name in random.sample(names, random.randint(1, len(names)))
        )

    return box() if random.random() < 0.7 else f"({box()}) or ({box()})"


def an_event(random: Random, names: list[str]) -> list[object]:
    """Mostly inside the schema's ranges."""
    astray = random.random() < 0.03
    values: dict[str, object] = {
        "price": random.randint(0, 1000) + (5000 if astray else 0),
        "size": random.randint(-20, 19),
        "ratio": round(random.uniform(-1.5, 2.5), 4),
        "side": "none" if random.random() < 0.02 else random.choice(["buy", "sell", "hold"]),
        "live": random.choice([True, False]),
    }
    return [values[name] for name in names]


Links = list[tuple[str, str]]


def mesh(random: Random, n: int) -> Links:
    links = [(f"s{i}", f"s{random.randrange(i)}") for i in range(1, n)]
    return links + [(f"s{i}", f"s{(i + random.randint(2, n - 2)) % n}") for i in range(0, n, 2)]


class Made(NamedTuple):
    """What a scenario is made of."""

    attributes: list[str]
    index: list[str]
    network: list[str]
    links: Callable[[Random], Links]
    graphml: bool = False


def a_scenario(folder: Path, random: Random, made: Made) -> Path:
    """Requests and events in turns, on a network made for it."""
    names = list(made.attributes)
    links = made.links(random)
    switches = sorted({name for link in links for name in link})
    network = {"links": json.dumps(links)}
    if made.graphml:
        graph = nx.MultiGraph(links + links[:3])  # some of them twice, as in Topology Zoo
        nx.write_graphml(graph, folder / "net.graphml")
        network = {"topology": '"net.graphml"'}
    hosts = {f"h{i}": random.choice(switches) for i in range(9)}
    lines = [
        "[schema]",
        *(SCHEMA[name] for name in names),
        "[index]",
        *made.index,
        "[network]",
        *made.network,
    ]
    lines += [f"{key} = {value}" for key, value in network.items()]
    lines += ["[network.hosts]", *(f'{host} = "{switch}"' for host, switch in hosts.items())]
    active: list[tuple[str, str, str]] = []
    asked = 0
    for step in range(1, 4):
        requests = [("op", "id", "host", "filter")]
        for n in range(30):
            if step > 1 and n % 2 and len(active) > 5:
                op, id, host = active.pop(random.randrange(len(active)))
                requests.append((f"un{op}", id, host, ""))
            else:
                asked += 1
                op, host = ("adv" if n < 6 else "sub"), random.choice(list(hosts))
                active.append((op, f"r{asked}", host))
                text = "True" if n == 0 else a_filter(random, names if op == "sub" else names[:1])
                requests.append((*active[-1], text))
        events = [["id", "host", *names]]
        events += [[f"e{step}-{n}", random.choice(list(hosts)), *an_event(random, names)] for n in range(150)]
        for kind, table in (("requests", requests), ("events", events)):
            with (folder / f"{kind}-{step}.csv").open("w", newline="") as file:
                csv.writer(file).writerows(table)
            lines += ["[[step]]", f'{kind} = "{kind}-{step}.csv"']
    path = folder / "scenario.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


MADE = {
    "a ring, exact": Made(
        ["price", "size"],
        ["bits = 10", "max_dz_per_filter = 0"],
        [],
        lambda random: [(f"s{i}", f"s{(i + 1) % 7}") for i in range(7)],
    ),
    "a fat-tree over four trees, every type": Made(
        ["price", "ratio", "side", "live"],
        ["bits = 12", "max_dz_per_filter = 0"],
        ["trees = 4"],
        lambda random: [(link.a, link.b) for link in fat_tree(4).links],
    ),
    "a tree, IPv4, a budget, smallest tables": Made(
        ["size", "ratio", "live"],
        ['header = "ipv4"', "max_dz_per_filter = 8"],
        ['tables = "smallest"'],
        lambda random: [(f"s{i}", f"s{(i - 1) // 2}") for i in range(1, 12)],
    ),
    "a mesh, little room, a dimension left out": Made(
        ["price", "size", "side"],
        ["bits = 30", 'dimensions = ["price", "side"]'],
        ["table_capacity = 25", "trees = 2"],
        lambda random: mesh(random, 10),
    ),
    "GraphML, IPv4, free tables, little room": Made(
        ["price", "side", "live"],
        ['header = "ipv4"', "bits = 13", "max_dz_per_filter = 16"],
        ['tables = "free"', "table_capacity = 12"],
        lambda random: mesh(random, 9),
        graphml=True,
    ),
    "a mesh over four trees, free tables, exact": Made(
        ["ratio", "price"],
        ["bits = 9", "max_dz_per_filter = 0"],
        ['tables = "free"', "trees = 4"],
        lambda random: mesh(random, 8),
    ),
}  # fmt: skip


LABELLED = {
    "a fat-tree, labels, every type": Made(
        ["price", "ratio", "side", "live"],
        ['header = "receivers"'],
        ["table_capacity = 30"],
        lambda random: [(link.a, link.b) for link in fat_tree(4).links],
    ),
    "GraphML, labels": Made(
        ["price", "size"], ['header = "receivers"'], [], lambda random: mesh(random, 9), graphml=True
    ),
}


@pytest.mark.parametrize("name", LABELLED)
def test_a_scenario_made_up_of_labels_holds_and_each_flow_less_is_seen(
    oracle: Path, flowsieve: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    random = Random(name)
    path, out = a_scenario(tmp_path, random, LABELLED[name]), tmp_path / "out"
    report = flowsieve("run", path, "--out", out, "--json").json
    assert (report["refused"], report["false_positives"]) == (0, 0)
    assert report["wanted"] == report["deliveries"] > 100
    judge(oracle, path, out)
    assert flowsieve("verify", path, "--flows", out / "flows.json").status == 0
    flows = json.loads((out / "flows.json").read_text())
    for gone in random.sample(range(len(flows)), 12):
        (tmp_path / "less.json").write_text(json.dumps(flows[:gone] + flows[gone + 1 :]))
        assert flowsieve("verify", path, "--flows", tmp_path / "less.json").status == 1


BLOOM = {
    "a fat-tree, Bloom filters, adaptive copies": Made(
        ["price", "ratio", "side", "live"],
        ['header = "bloom"', 'copies = "adaptive"', "filters_per_packet = 4"],
        [],
        lambda random: [(link.a, link.b) for link in fat_tree(4).links],
    ),
    "a mesh, Bloom filters, two copies of few bits": Made(
        ["price", "size"],
        ['header = "bloom"', "copies = 2", "filters_per_packet = 150"],
        [],
        lambda random: mesh(random, 9),
    ),
}


@pytest.mark.parametrize("name", BLOOM)
def test_a_scenario_made_up_of_bloom_filters_holds_and_a_filter_less_is_seen(
    oracle: Path, flowsieve: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    random = Random(name)
    path, out = a_scenario(tmp_path, random, BLOOM[name]), tmp_path / "out"
    report = flowsieve("run", path, "--out", out, "--json").json
    assert (report["refused"], report["false_negatives"], report["duplicates"]) == (0, 0, 0)
    assert report["wanted"] > 100
    judge(oracle, path, out)
    assert flowsieve("verify", path, "--flows", out / "flows.json").status == 0
    flows = json.loads((out / "flows.json").read_text())
    at_hosts = [n for n, flow in enumerate(flows) if flow["out"] and flow["out"][0].startswith("h")]
    gone = random.choice(at_hosts)  # nothing there is covered by what is wanted elsewhere
    (tmp_path / "less.json").write_text(json.dumps(flows[:gone] + flows[gone + 1 :]))
    assert flowsieve("verify", path, "--flows", tmp_path / "less.json").status == 1


@pytest.mark.parametrize("name", MADE)
def test_a_scenario_made_up_holds_and_a_flow_less_is_seen(
    oracle: Path, flowsieve: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    path = a_scenario(tmp_path, Random(name), MADE[name])
    report = flowsieve("run", path, "--out", tmp_path / "out", "--json").json
    assert report["refused"] == 0
    assert 0 < report["rejected"] < 450
    assert report["wanted"] > 100
    judge(oracle, path, tmp_path / "out")
    assert flowsieve("verify", path, "--flows", tmp_path / "out" / "flows.json").status == 0
    break_and_verify(flowsieve, path, tmp_path / "out")
