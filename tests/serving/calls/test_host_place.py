"""Where a host is, or will be: a token is bound to it."""

from __future__ import annotations

import pytest

from flowsieve.errors import BadInput
from flowsieve.network.names import Names
from flowsieve.network.topology import Topology
from flowsieve.serving.calls.host_place import host_place
from flowsieve.serving.calls.tokens import SECRET_BYTES, Tokens

NETWORK = Topology.make([("s1", "s2")], {"ann": "s1"})
NAMES = Names({}, {"02:00:00:00:00:02": "bob"})


@pytest.mark.parametrize("host", ["bob", "h020000000003"])
def test_a_token_made_before_a_host_is_found_is_the_one_it_has_then(host: str) -> None:
    place = host_place(host, "s2:2", NETWORK, NAMES)
    before = Tokens(b"s" * SECRET_BYTES, NETWORK).at(host, *place)
    after = Tokens(b"s" * SECRET_BYTES, Topology.make([("s1", "s2")], {"ann": "s1", host: "s2"}))
    assert after.valid(host, before)
    elsewhere = Tokens(b"s" * SECRET_BYTES, Topology.make([("s1", "s2")], {"ann": "s1", host: "s1"}))
    assert not elsewhere.valid(host, before)


def test_a_host_that_is_known_needs_no_place() -> None:
    assert host_place("ann", None, NETWORK, None) == host_place("ann", "s1:2", NETWORK, NAMES) == ("s1", 2)


@pytest.mark.parametrize(
    ("host", "at", "names", "wrong"),
    [
        ("ann", "s2:2", NAMES, "'ann' is at port 2 of switch s1, not at s2:2"),
        ("bob", None, NAMES, "not found yet, and a token is bound to a port; say where it will be"),
        ("bob", "s2:2", None, "there is no host 'bob'"),
        ("bib", "s2:2", NAMES, "none will be found by that name; did you mean 'bob'"),
        ("x", "s2:2", NAMES, r"a name in \[names\], or h and a MAC address"),
        ("bob", "s9:2", NAMES, "no switch 's9'"),
        ("bob", "s2", NAMES, "no switch ''"),
        ("bob", "s2:x", NAMES, "has no port"),
        ("bob", "s2:0", NAMES, "has no port"),
        ("bob", "s1:2", NAMES, "at port 2 of switch s1 is ann"),
        ("bob", "s1:1", NAMES, "at port 1 of switch s1 is s2"),
    ],
)
def test_what_is_wrong_is_said(host: str, at: str | None, names: Names | None, wrong: str) -> None:
    with pytest.raises(BadInput, match=wrong):
        host_place(host, at, NETWORK, names)
