"""The public names of the package, and the ten lines that a newcomer writes first."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
import typing

import pytest

import flowsieve
from flowsieve import PubSub, Schema, fat_tree
from flowsieve.client import pubsub

NAMES = [
    "Advertisement", "Attribute", "BadFilter", "BadInput", "BadValue", "Busy", "Client", "ControlLost", "Denied", "Dz",
    "DzSet", "Event", "Filter", "FlowsieveError", "HostError", "LocalSubscription", "OtherVersion", "PubSub",
    "Published", "Refused", "RegularPlan", "Schema", "Settings", "Stats", "Subscription", "Tables", "Topology",
    "TreeMap", "connect", "fat_tree", "grid", "line", "ring", "star", "tree",
]  # fmt: skip


def test_the_public_names_are_these_and_all_of_them_are_there() -> None:
    assert sorted(flowsieve.__all__) == sorted(NAMES)
    assert dir(flowsieve) == flowsieve.__all__
    for name in NAMES:
        found = getattr(flowsieve, name)
        assert found.__name__ == name
        assert getattr(importlib.import_module(found.__module__), name) is found


def test_a_client_subscribes_with_a_subscription() -> None:
    """`flowsieve.Subscription` is what applications hold, not the one of a network in this process."""
    assert typing.get_type_hints(flowsieve.Client.subscribe)["return"] is flowsieve.Subscription


def test_a_name_that_is_not_there_is_told() -> None:
    with pytest.raises(AttributeError, match="module 'flowsieve' has no attribute 'Pubsub'"):
        flowsieve.Pubsub  # type: ignore[attr-defined]  # noqa: B018


def test_names_are_loaded_when_they_are_asked_for() -> None:
    """A schema needs no compiled kernel, so asking for one loads none."""
    script = "import sys; from flowsieve import Schema; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_ten_lines_publish_and_subscribe() -> None:
    schema = Schema.parse(
        {
            "room": {"type": "string"},
            "celsius": {"type": "float", "min": -40, "max": 60},
            "on_fire": {"type": "bool"},
        }
    )
    pubsub = PubSub(schema, fat_tree(4))
    pubsub.advertise("h0")
    warm = pubsub.subscribe("h9", "celsius > 30 or on_fire")
    kitchen = pubsub.subscribe("h15", "room == 'kitchen' and not 10 <= celsius < 25")
    pubsub.publish("h0", room="kitchen", celsius=31.5, on_fire=False)
    pubsub.publish("h0", room="kitchen", celsius=21.0, on_fire=False)
    assert warm.received == kitchen.received == [{"room": "kitchen", "celsius": 31.5, "on_fire": False}]
    assert pubsub.verify().holds


def test_the_example_of_the_module_says_the_truth() -> None:
    found = doctest.testmod(pubsub)
    assert found.attempted >= 8
    assert found.failed == 0


def test_a_command_does_not_wait_for_what_others_need() -> None:
    """A controller reads no tables of events, and what only shows help compiles nothing."""
    for modules, others in (
        ("flowsieve.cli.main", "numba pandas pyarrow pyspark fastapi os_ken"),
        ("flowsieve.cli.main, flowsieve.serving.daemon", "pandas pyarrow pyspark matplotlib networkx"),
    ):
        script = f"import sys, {modules}; print(*set({others.split()!r}) & sys.modules.keys())"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == ""
