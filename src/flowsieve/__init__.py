"""flowsieve: content-based publish/subscribe whose filtering happens inside the network."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowsieve.client.inbox import Event
    from flowsieve.client.interests import Advertisement, Subscription
    from flowsieve.client.pubsub import LocalSubscription, Published, PubSub
    from flowsieve.client.session import Client, connect
    from flowsieve.client.stats import Stats
    from flowsieve.content.filter import Filter
    from flowsieve.content.schema import Attribute, Schema
    from flowsieve.control.state import Settings
    from flowsieve.errors import (
        BadFilter,
        BadInput,
        BadValue,
        Busy,
        ControlLost,
        Denied,
        FlowsieveError,
        HostError,
        OtherVersion,
        Refused,
    )
    from flowsieve.flow.tables.compiler import Tables
    from flowsieve.index.dz import Dz
    from flowsieve.index.dzset import DzSet
    from flowsieve.index.plans.regular import RegularPlan
    from flowsieve.network.generators import fat_tree, grid, line, ring, star, tree
    from flowsieve.network.topology import Topology
    from flowsieve.network.tree import TreeMap

if ".zip/" in str(__file__):  # on an executor, before it compiles anything
    import_module("flowsieve.pipeline.runtime.shipped_kernels")

# Where each public name lives. It is loaded when it is first asked for, so that a part can be used without
# the whole.
_HOMES = {
    "Advertisement": "client.interests",
    "Attribute": "content.schema",
    "BadFilter": "errors",
    "BadInput": "errors",
    "BadValue": "errors",
    "Busy": "errors",
    "Client": "client.session",
    "ControlLost": "errors",
    "Denied": "errors",
    "Dz": "index.dz",
    "DzSet": "index.dzset",
    "Event": "client.inbox",
    "Filter": "content.filter",
    "FlowsieveError": "errors",
    "HostError": "errors",
    "LocalSubscription": "client.pubsub",
    "OtherVersion": "errors",
    "PubSub": "client.pubsub",
    "Published": "client.pubsub",
    "Refused": "errors",
    "RegularPlan": "index.plans.regular",
    "Schema": "content.schema",
    "Settings": "control.state",
    "Stats": "client.stats",
    "Subscription": "client.interests",
    "Tables": "flow.tables.compiler",
    "Topology": "network.topology",
    "TreeMap": "network.tree",
    "connect": "client.session",
    "fat_tree": "network.generators",
    "grid": "network.generators",
    "line": "network.generators",
    "ring": "network.generators",
    "star": "network.generators",
    "tree": "network.generators",
}

__all__ = [
    "Advertisement",
    "Attribute",
    "BadFilter",
    "BadInput",
    "BadValue",
    "Busy",
    "Client",
    "ControlLost",
    "Denied",
    "Dz",
    "DzSet",
    "Event",
    "Filter",
    "FlowsieveError",
    "HostError",
    "LocalSubscription",
    "OtherVersion",
    "PubSub",
    "Published",
    "Refused",
    "RegularPlan",
    "Schema",
    "Settings",
    "Stats",
    "Subscription",
    "Tables",
    "Topology",
    "TreeMap",
    "connect",
    "fat_tree",
    "grid",
    "line",
    "ring",
    "star",
    "tree",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'flowsieve' has no attribute {name!r}")
    return getattr(import_module(f"flowsieve.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
