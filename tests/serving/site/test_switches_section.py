"""Switches that are no lab's, from a configuration: who they are, how they are reached, what they call their ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.errors import BadInput, BadScenario
from flowsieve.network.topology import Topology
from flowsieve.serving.config import Config, read_config
from flowsieve.serving.site.site import OwnSite, described, event_groups, host_behind, with_switches

SCHEMA = '[schema]\nprice = { type = "int", min = 0, max = 1023 }\n'
CONTROLLER = '[controller]\nhttp = ["tcp:127.0.0.1:7420"]\nlisten = "tcp:127.0.0.1:6653"\n'
SWITCHES = '[switches.s1]\ndatapath_id = "00:00:00:00:00:00:00:a1"\n[switches.s2]\ndatapath_id = 2\n'
NETWORK = '[network]\nlinks = [["s1", "s2"]]\n[network.hosts]\nann = "s1"\nbob = "s2"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "controller.toml"


def read(path: Path, *parts: str) -> Config:
    path.write_text(SCHEMA + "".join(parts))
    return read_config(path)


def test_switches_are_told_apart_by_datapath_ids_in_any_writing(path: Path) -> None:
    config = read(
        path, CONTROLLER, SWITCHES, '[switches.s3]\ndatapath_id = "0xA3"\naddress = "unix:/run/s3.mgmt"\n'
    )
    assert config.access is not None and config.network is not None
    assert config.access.identities == {"s1": f"{0xA1:016x}", "s2": f"{2:016x}", "s3": f"{0xA3:016x}"}
    assert (config.access.addresses, config.access.listen) == (
        {"s3": "unix:/run/s3.mgmt"},
        "tcp:127.0.0.1:6653",
    )
    assert config.network.topology == Topology.make((), {}, ["s1", "s2", "s3"])
    assert (config.finds_links, config.finds_hosts) == (True, True)


def test_a_described_network_has_the_numbers_that_are_given_and_finds_nothing(path: Path) -> None:
    ports = SWITCHES.replace("[switches.s2]", "ports = { s2 = 17, ann = 4 }\n[switches.s2]")
    config = read(path, CONTROLLER, ports, NETWORK)
    assert config.network is not None and not config.finds
    network = config.network.topology
    assert [network.number("s1", near) for near in ("s2", "ann")] == [17, 4]
    assert [network.number("s2", near) for near in ("s1", "bob")] == [1, 2]
    assert [host_behind(network, *place) for place in (("s1", 4), ("s1", 17), ("s1", 1), ("s9", 1))] == [
        "ann",
        None,
        None,
        None,
    ]


def test_links_may_be_described_and_hosts_be_found_and_the_other_way_round(path: Path) -> None:
    some = read(path, CONTROLLER, SWITCHES, NETWORK.partition("[network.hosts]")[0])
    assert (some.finds_links, some.finds_hosts) == (False, True)
    ports = SWITCHES.replace("[switches.s2]", "ports = { ann = 4 }\n[switches.s2]")
    others = read(path, CONTROLLER, ports, '[network]\ntable_capacity = 50\n[network.hosts]\nann = "s1"\n')
    assert (others.finds_links, others.finds_hosts) == (True, False)
    assert others.network is not None and others.network.capacity == 50
    assert others.network.topology.behind("s1", 4) == "ann"


def test_a_journal_is_about_what_is_described_and_not_about_what_is_found(path: Path) -> None:
    found = read(path, CONTROLLER, SWITCHES)
    small, large = Topology.make((), {}, ["s1", "s2"]), Topology.make([("s1", "s2")], {"ann": "s1"})
    assert found.base(small) == found.base(large)
    fixed = read(path, CONTROLLER, SWITCHES, NETWORK)
    assert fixed.base(small) != fixed.base(large)


def test_hosts_in_another_order_are_another_network_unless_the_journal_has_their_order(path: Path) -> None:
    hosts = ['ann = "s1"\n', 'bob = "s2"\n']
    ports = SWITCHES.replace("[switches.s2]", "ports = { ann = 4 }\n[switches.s2]") + "ports = { bob = 4 }\n"
    bases, groups = [], []
    for links in ('links = [["s1", "s2"]]\n', ""):
        known = None
        for order in (hosts, hosts[::-1]):
            switches = SWITCHES if links else ports
            config = read(path, CONTROLLER, switches, "[network]\n", links, "[network.hosts]\n", *order)
            assert config.network is not None
            now = config.network.topology
            known = known or now
            bases.append(config.base(now))
            groups.append(event_groups(described(known, now), 6))
    assert bases[0] != bases[1] and bases[2] == bases[3]
    assert groups[2] == groups[3]


def test_hosts_that_are_found_take_their_part_of_a_table(path: Path) -> None:
    config = read(path, CONTROLLER, SWITCHES, "[network]\ntable_capacity = 100\n")
    assert config.network is not None
    state = config.fresh(config.network.topology)
    before = state.capacity("s1")
    many = Topology.make([("s1", "s2")], {f"h{n}": "s1" for n in range(20)}, ["s1", "s2"])
    state.grow(many)
    assert (before, state.capacity("s1")) == (100 - 4, 100 - 4 - 3 * 20 - 1)
    assert state.capacity("s1") == 100 - config.service.entries(many, 100)


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ([SWITCHES, '[controller]\nhttp = ["tcp:127.0.0.1:1"]\n'], "switch 's1' has no address, and"),
        (
            [SWITCHES, '[controller]\nlisten = "tcp:127.0.0.1:6653"\n'],
            "of a network that is no lab has no http",
        ),
        ([CONTROLLER], "listen is for switches that are no lab's; right are"),
        ([CONTROLLER, "[switches]\n"], "has none; right is a table for each"),
        ([CONTROLLER, "[switches.s1]\n"], "switch 's1' has no datapath_id; right is"),
        ([CONTROLLER, "[switches.s1]\ndatapath_id = -1\n"], "is -1; right is what the switch calls itself"),
        ([CONTROLLER, '[switches.s1]\ndatapath_id = "x1"\n'], "is 'x1'; right is"),
        ([CONTROLLER, "[switches.s1]\ndatapath_id = true\n"], "is True; right is"),
        ([CONTROLLER, SWITCHES, "[switches.s3]\ndatapath_id = 161\n"], "is that of 's1' and of 's3'"),
        ([CONTROLLER, SWITCHES, '[switches.s3]\ndatapath_id = 3\naddress = "x"\n'], "'x' is no address"),
        ([CONTROLLER, SWITCHES, "[switches.s3]\ndatapath = 3\n"], "has no key 'datapath'"),
        (
            [CONTROLLER, SWITCHES, NETWORK.replace('"s2"]', '"s9"]')],
            "'s9' is not among the switches that are",
        ),
        (
            [CONTROLLER, SWITCHES, '[network.hosts]\nann = "s1"\n'],
            "'ann' has no port, and the links are to be found",
        ),
        (
            [CONTROLLER, SWITCHES, "ports = { s1 = 1, bob = 1 }\n", NETWORK],
            "port 1 of switch 's2' leads to 's1' and to 'bob'",
        ),
        ([CONTROLLER, SWITCHES, "ports = { s1 = 1 }\n", NETWORK], "that to 'bob' has none"),
        ([CONTROLLER, SWITCHES, "ports = { s7 = 1 }\n", NETWORK], "a port to 's7', and that is no neighbour"),
        (
            [CONTROLLER, SWITCHES, '[switches.s3]\ndatapath_id = 3\naddress = "tcp:a..b:6653"\n'],
            "'tcp:a..b:6653' is no address",
        ),
        (
            [CONTROLLER, "inband = false\n", SWITCHES],
            "line 6: hosts are found by what they ask for in band; right is inband = true",
        ),
        (
            [CONTROLLER, SWITCHES, '[names]\n"02:00:00:00:00:01" = "s2"\n'],
            "line 11: 's2' is a switch already; right is another name for 02:00:00:00:00:01",
        ),
        (['[names]\n"02:00:00:00:00:01" = "ann"\n'], "line 3: [names] is for hosts that are found"),
        (
            [CONTROLLER, SWITCHES, '[names]\n"02:00:00:00:00:0a" = "ann"\n"02:00:00:00:00:0A" = "bob"\n'],
            "line 12: 02:00:00:00:00:0A is there twice",
        ),
        (
            [CONTROLLER.replace("7420", "6653"), SWITCHES],
            "line 4: http has tcp:127.0.0.1:6653, and so has listen; right is another",
        ),
        (
            [CONTROLLER.replace('"]', '", "unix:x", "unix:x"]'), SWITCHES],
            "line 4: http has unix:x, and has it twice",
        ),
        (
            [
                CONTROLLER,
                SWITCHES,
                'address = "tcp:[::1]:1"\n[switches.s3]\ndatapath_id = 3\naddress = "tcp:::1:1"\n',
            ],
            "line 13: tcp:::1:1 is the address of 's2' and of 's3'",
        ),
        (
            [CONTROLLER, SWITCHES, "ports = { s1 = 1 }\n"],
            "line 10: switch 's2' has a port to switch 's1', and the links are to be found, with their ports; right",
        ),
        ([CONTROLLER, '[switches.""]\ndatapath_id = 1\n'], "line 6: a switch has no name; right is one"),
        ([CONTROLLER, SWITCHES, '[names]\n"02:00" = "ann"\n'], "'02:00' is no MAC address"),
        ([CONTROLLER, SWITCHES, '[names]\n"02:00:00:00:00:01" = 5\n'], "the name of 02:00:00:00:00:01 is 5"),
    ],
)
def test_mistakes_are_told_by_file_and_line(path: Path, parts: list[str], wrong: str) -> None:
    with pytest.raises(BadScenario) as error:
        read(path, *parts)
    assert wrong in str(error.value)
    assert f"{path}: line" in str(error.value) or str(path) in str(error.value)


def test_switches_and_names_may_be_added_while_it_runs_and_nothing_else(path: Path) -> None:
    site = OwnSite(read(path, CONTROLLER, SWITCHES))
    more = read(
        path,
        CONTROLLER,
        SWITCHES,
        "[switches.s3]\ndatapath_id = 3\n",
        '[names]\n"02:00:00:00:00:01" = "ann"\n',
    )
    assert site.more(more) == ("s3",)
    site.take(more)
    assert site.more(more) == ()
    assert site.names.identity("s3") == f"{3:016x}"
    for other in (
        (CONTROLLER, SWITCHES),
        (CONTROLLER.replace("6653", "6654"), SWITCHES, "[switches.s3]\ndatapath_id = 3\n"),
        (CONTROLLER, SWITCHES, "[switches.s3]\ndatapath_id = 3\n", NETWORK),
        (CONTROLLER, SWITCHES, "[switches.s3]\ndatapath_id = 4\n"),
    ):
        with pytest.raises(BadInput, match="takes a restart"):
            site.more(read(path, *other))


def test_a_switch_may_be_added_anywhere_in_the_file(path: Path) -> None:
    site = OwnSite(read(path, CONTROLLER, SWITCHES))
    more = read(path, CONTROLLER, "[switches.s3]\ndatapath_id = 3\n", SWITCHES)
    assert site.more(more) == ("s3",)
    site.take(more)
    assert site.more(read(path, CONTROLLER, SWITCHES, "[switches.s3]\ndatapath_id = 3\n")) == ()


def test_what_was_found_is_kept_and_what_is_configured_now_is_added_to_it() -> None:
    known = Topology.make([("s1", "s2")], {"ann": "s1"}, numbers={"s1": {"s2": 5, "ann": 7}})
    now = Topology.make((), {"ann": "s1"}, ["s1", "s2", "s3"], {"s1": {"ann": 9}})
    new = described(known, now)
    assert new.switches == ("s1", "s2", "s3")
    assert (new.number("s1", "s2"), new.number("s1", "ann"), new.number("s2", "s1")) == (5, 9, 1)
    assert described(new, now) == new
    assert described(Topology.make([("s1", "s2"), ("s2", "s9")], {"ann": "s1"}), now).switches == (
        "s1",
        "s2",
        "s3",
    )
    assert described(Topology.make([("s1", "s9")], {"ann": "s1", "bob": "s9"}), now).switches == (
        "s1",
        "s9",
        "s2",
        "s3",
    )
    assert with_switches(known, ["s2", "s4"]).switches == ("s1", "s2", "s4")


def test_a_port_that_is_corrected_to_what_it_is_by_default_is_so() -> None:
    wrong = Topology.make([("s1", "s2")], {}, numbers={"s1": {"s2": 49}})
    right = Topology.make([("s1", "s2")], {})
    found = Topology.make(
        [("s1", "s2")], {"ann": "s1"}, numbers={"s1": {"s2": wrong.number("s1", "s2"), "ann": 5}}
    )
    new = described(found, right)
    assert (new.number("s1", "s2"), new.number("s1", "ann")) == (1, 5)


@pytest.mark.parametrize(("name", "finds"), [("described", False), ("found", True)])
def test_the_examples_are_right(name: str, finds: bool) -> None:
    config = read_config(Path(__file__).parents[3] / "examples" / "controller" / f"{name}.toml")
    assert config.access is not None and config.finds is finds
