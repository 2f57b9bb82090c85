"""A controller's configuration: read whole, and its mistakes told by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.errors import BadInput, BadScenario
from flowsieve.flow.shares import Shares
from flowsieve.header.bloom import BloomLabels
from flowsieve.network.topology import Topology
from flowsieve.serving.config import Config, ServiceSettings, read_config

SCHEMA = '[schema]\nprice = { type = "int", min = 0, max = 1023 }\n'  # lines 1 and 2
NETWORK = '[network]\nlinks = [["s1", "s2"]]\ntable_capacity = 9\ntrees = 2\n[network.hosts]\nann = "s1"\nbob = "s2"\n'
LAB = Topology.make([("s1", "s2")], {"ann": "s1", "bob": "s2"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "controller.toml"


def read(path: Path, text: str) -> Config:
    path.write_text(text)
    return read_config(path)


def test_a_schema_is_enough(path: Path) -> None:
    config = read(path, SCHEMA)
    assert config.service == ServiceSettings()
    assert config.network is None
    state = config.fresh(LAB)
    assert (state.topology, state.bounded, len(state.trees)) == (LAB, False, 1)


def test_all_that_can_be_said_is_taken(path: Path) -> None:
    config = read(
        path,
        SCHEMA
        + NETWORK
        + """[controller]
state = "memory"
http = ["tcp:[::1]:7420", "unix:/run/x.sock"]
lease = 2.5
deadline = 7
inband = false
inband_rate = 5
most_calls = 10
event_mac = false
key_rotation = 3600
guard = false
guard_rate = 0
failover = true
[[step]]
requests = "not-there.csv"
""",
    )
    assert config.service == ServiceSettings(
        state=path.parent / "memory",
        http=("tcp:[::1]:7420", "unix:/run/x.sock"),
        lease=2.5,
        deadline=7.0,
        inband=False,
        inband_rate=5,
        most_calls=10,
        event_mac=False,
        key_rotation=3600.0,
        guard=False,
        guard_rate=0,
        failover=True,
    )
    config.check_network(LAB)
    state = config.fresh(LAB)
    assert (state.capacity("s1"), len(state.trees)) == (9 - config.service.entries(LAB, 9), 2)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("state = 5", "state is 5; right is a text"),
        ('http = "tcp:127.0.0.1:80"', "right is a list of addresses"),
        ("http = [5]", "right is a list of addresses"),
        ('http = ["127.0.0.1:80"]', "'127.0.0.1:80' is no address; right is unix:"),
        ("lease = 0", "lease is 0; right is a number of seconds up to 86400"),
        ("event_mac = 1", "event_mac is 1; right is true or false"),
        ("key_rotation = 0", "key_rotation is 0; right is a number of seconds up to"),
        ("lease = inf", "lease is inf"),
        ("lease = nan", "lease is nan"),
        ("lease = true", "lease is True"),
        ('deadline = "long"', "deadline is 'long'"),
        ('inband = "no"', "inband is 'no'; right is true or false"),
        ("inband = 0", "inband is 0"),
        ("inband_rate = 0", "inband_rate is 0; right is a whole number from 1 to 1000000"),
        ("most_calls = 1.5", "most_calls is 1.5"),
        ("failover = 1", 'failover is 1; right is true, false or "auto"'),
        ('guard = "on"', "guard is 'on'; right is true, false or \"auto\""),
        ("guard_rate = -1", "guard_rate is -1; right is a whole number from 0 to 1000000"),
        ("leese = 3", "[controller] has no key 'leese'; did you mean 'lease'?"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(path: Path, line: str, wrong: str) -> None:
    with pytest.raises(BadScenario) as told:
        read(path, f"{SCHEMA}[controller]\n\n{line}\n")
    assert str(told.value).startswith(f"{path} line 5: ")
    assert wrong in str(told.value)
    assert "\n" not in str(told.value)


def test_several_mistakes_are_told_at_once(path: Path) -> None:
    with pytest.raises(BadScenario) as told:
        read(path, SCHEMA + "[controler]\n[controller]\nlease = 0\ninband = 1\n")
    assert [line.split(": ")[0] for line in str(told.value).splitlines()] == [
        f"{path} line {n}" for n in (3, 5, 6)
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "schema"),
        ("[controller]\nlease = 3\n", "schema"),
        (SCHEMA + "controller = 5\n[x", "is not TOML"),
        ("controller = 5\n" + SCHEMA, "controller is 5; right is a table, [controller]"),
        (SCHEMA + '[network]\nlinks = [["s1", "s2"]]\n', "there is no [network.hosts]"),
        (SCHEMA + "[index]\nbits = 0\n" + NETWORK, "2 trees need 1 bits, and a dz has 0"),
        (SCHEMA + '[index]\nplan = "not-there.json"\n', "not-there.json"),
        (
            SCHEMA + '[index]\nheader = "ipv5"\n',
            "header is 'ipv5'; right is 'ipv6' or 'ipv4' or 'receivers'",
        ),
    ],
)
def test_what_cannot_be_used_is_told(path: Path, text: str, wrong: str) -> None:
    with pytest.raises(BadScenario) as told:
        read(path, text)
    assert str(told.value).startswith(str(path))
    assert wrong in str(told.value)


def test_a_file_that_is_not_there_is_told(path: Path) -> None:
    with pytest.raises(BadInput, match=r"controller\.toml"):
        read_config(path)


def test_another_network_than_the_one_there_is_told(path: Path) -> None:
    config = read(path, SCHEMA + NETWORK)
    config.check_network(LAB)
    other = Topology.make([("s1", "s2")], {"ann": "s1"})
    with pytest.raises(BadInput, match="is not the one that is there"):
        config.check_network(other)
    read(path, SCHEMA).check_network(other)


def test_a_journal_is_about_contents_network_and_addresses_and_nothing_else(path: Path) -> None:
    base = read(path, SCHEMA).base(LAB)
    assert read(path, SCHEMA + "[controller]\nlease = 3\n").base(LAB) == base
    assert read(path, SCHEMA + NETWORK).base(LAB) == base
    others = [
        read(path, SCHEMA.replace("1023", "1022")).base(LAB),
        read(path, SCHEMA + '[index]\nheader = "ipv4"\n').base(LAB),
        read(path, SCHEMA + "[index]\nbits = 5\n").base(LAB),
        read(path, SCHEMA).base(Topology.make([("s1", "s2")], {"ann": "s2", "bob": "s2"})),
        read(path, SCHEMA).base(Topology.make([("s1", "s3")], {"ann": "s1", "bob": "s3"})),
        read(path, SCHEMA).base(Topology.make([("s1", "s2")], {"bob": "s2", "ann": "s1"})),
    ]
    assert len({base, *others}) == 7


ONE_TREE = NETWORK.replace("trees = 2\n", "")
LABELS = '[index]\nheader = "receivers"\n'
RULE = '[[policy.may_send]]\nfrom = ["ann"]\nto = ["bob"]\n'


def test_a_policy_says_whom_hosts_may_address_and_what_it_takes_is_counted(path: Path) -> None:
    config, free = (read(path, SCHEMA + LABELS + ONE_TREE + more) for more in (RULE, ""))
    policy = config.fresh(LAB).settings.policy
    assert (policy.allows("ann", "bob"), policy.allows("bob", "ann")) == (True, False)
    assert free.fresh(LAB).settings.policy.open
    guards = config.guarding(lambda topology: {})(LAB)
    assert guards is not None and free.guarding(lambda topology: {})(LAB) is None  # there is little room
    assert config.service.entries(LAB, 9) > free.service.entries(LAB, 9)


def test_packets_may_name_their_receivers(path: Path) -> None:
    config = read(path, SCHEMA + '[index]\nheader = "receivers"\n' + NETWORK.replace("trees = 2\n", ""))
    state = config.fresh(LAB)
    assert (state.labelled, state.plan.bits, config.index.encoding.tag.group.bits) == (True, 0, 0xFF1E)
    assert set(state.labels.hosts) == {"ann", "bob"}


def test_packets_may_have_the_bits_of_filters(path: Path) -> None:
    index = '[index]\nheader = "bloom"\ncopies = 3\nfilters_per_packet = 4\n'
    state = read(path, SCHEMA + index + NETWORK.replace("trees = 2\n", "")).fresh(LAB)
    assert (state.labelled, state.plan.bits, state.bounded) == (True, 0, True)
    assert state.bloom is not None
    assert (state.bloom.settings.copies, state.bloom.settings.labels) == (Shares(4, 3), BloomLabels.tuned(4))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[index]\nheader = "bloom"\nbits = 3\n', "bits means nothing with header 'bloom'"),
        ('[index]\nheader = "bloom"\ncopies = 0\n', "copies is 0; right is a whole number from 1"),
        ('[index]\nheader = "bloom"\n' + NETWORK, "labels that are Bloom filters go along one tree"),
        ('[index]\nheader = "receivers"\nbits = 3\n', "bits means nothing with header 'receivers'"),
        ('[index]\nheader = "receivers"\n' + NETWORK, "labels that name receivers go along one tree"),
        (RULE, "packets name no hosts here, so no switch can tell to whom they are sent"),
        (LABELS + "[policy]\n", "has no rule, so that nobody may send anything to anybody"),
        (
            LABELS + '[[policy.may_send]]\nfrom = "ann"\nto = ["bob"]\n',
            "from is 'ann'; right is a list of hosts",
        ),
        (LABELS + "[controller]\nguard = false\n" + RULE, "nothing but the guard holds hosts to it"),
        (LABELS + ONE_TREE + RULE.replace("bob", "bub"), "names host 'bub', and there is none"),
    ],
)
def test_what_labels_cannot_have_is_refused(path: Path, text: str, why: str) -> None:
    with pytest.raises(BadScenario, match=why):
        read(path, SCHEMA + text)
