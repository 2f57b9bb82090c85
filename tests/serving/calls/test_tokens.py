"""Tokens: each host's own, bound to its port, and the secret behind them."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flowsieve.errors import BadInput
from flowsieve.network.topology import EndpointKind, Topology
from flowsieve.serving.calls.tokens import SECRET_BYTES, Tokens, kept_secret

LINKS = [("s1", "s2")]
NETWORK = Topology.make(LINKS, {"ann": "s1", "bob": "s2"})
TOKENS = Tokens(b"s" * SECRET_BYTES, NETWORK)


def test_a_token_is_its_hosts_alone() -> None:
    assert TOKENS.valid("ann", TOKENS.of("ann"))
    assert not TOKENS.valid("bob", TOKENS.of("ann"))
    assert not TOKENS.valid("ann", TOKENS.of("ann").upper())
    assert len(TOKENS.of("ann")) == 32


def test_only_hosts_have_tokens() -> None:
    network = Topology.make(LINKS, {"ann": "s1", "north": "s2"}, kinds={"north": EndpointKind.BORDER})
    with pytest.raises(BadInput, match="'north' is a border, and tokens are for hosts"):
        Tokens(b"s" * SECRET_BYTES, network).of("north")


@pytest.mark.parametrize("token", ["", "x", "0" * 32, "ä" * 32, "\ud800" * 32, "\x00"])
def test_whatever_else_is_no_token(token: str) -> None:
    assert not TOKENS.valid("ann", token)


def test_a_token_is_worth_nothing_at_another_port_or_under_another_secret() -> None:
    elsewhere = Topology.make(LINKS, {"bob": "s2", "ann": "s2"})
    behind = Topology.make(LINKS, {"new": "s1", "ann": "s1", "bob": "s2"})
    for other in (
        Tokens(b"s" * SECRET_BYTES, elsewhere),
        Tokens(b"s" * SECRET_BYTES, behind),
        Tokens(b"t" * SECRET_BYTES, NETWORK),
    ):
        assert not other.valid("ann", TOKENS.of("ann"))
    assert Tokens(b"s" * SECRET_BYTES, NETWORK).valid("ann", TOKENS.of("ann"))


def test_a_host_that_moves_keeps_its_token_and_has_that_of_its_place_as_well() -> None:
    after = Topology.make(LINKS, {"ann": "s2", "bob": "s2"})
    homes = {"ann": (NETWORK.attached["ann"], NETWORK.number(NETWORK.attached["ann"], "ann"))}
    tokens = Tokens(b"s" * SECRET_BYTES, after, homes)
    assert tokens.valid("ann", TOKENS.of("ann")) and tokens.valid("ann", tokens.of("ann"))
    assert not tokens.valid("bob", TOKENS.of("ann")) and not tokens.valid("ann", TOKENS.of("bob"))


def test_a_secret_stays_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "secret"
    secret = kept_secret(path)
    assert len(secret) == SECRET_BYTES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert kept_secret(path) == secret
    assert kept_secret(tmp_path / "other") != secret
    assert list(path.parent.iterdir()) == [path]


def test_of_many_that_make_a_secret_at_once_all_have_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(kept_secret, [tmp_path / "secret"] * 32))) == 1


def test_what_is_no_secret_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the secret cannot be kept in .*: Is a directory"):
        kept_secret(tmp_path)
    (tmp_path / "file").write_bytes(b"short")
    with pytest.raises(BadInput, match="a secret of 5 bytes is too short"):
        Tokens(kept_secret(tmp_path / "file"), NETWORK)
    with pytest.raises(BadInput, match="cannot be kept in"):
        kept_secret(tmp_path / "file" / "secret")
