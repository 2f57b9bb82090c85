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

# Where the public names live. A name is loaded when it is first asked for, so that a part can be used without
# the whole.
_HOMES = {
    "client.inbox": "Event",
    "client.interests": "Advertisement Subscription",
    "client.pubsub": "LocalSubscription PubSub Published",
    "client.session": "Client connect",
    "client.stats": "Stats",
    "content.filter": "Filter",
    "content.schema": "Attribute Schema",
    "control.state": "Settings",
    "errors": "BadFilter BadInput BadValue Busy ControlLost Denied FlowsieveError HostError OtherVersion Refused",
    "flow.tables.compiler": "Tables",
    "index.dz": "Dz",
    "index.dzset": "DzSet",
    "index.plans.regular": "RegularPlan",
    "network.generators": "fat_tree grid line ring star tree",
    "network.topology": "Topology",
    "network.tree": "TreeMap",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = [
    "Advertisement", "Attribute", "BadFilter", "BadInput", "BadValue", "Busy", "Client", "ControlLost", "Denied",
    "Dz", "DzSet", "Event", "Filter", "FlowsieveError", "HostError", "LocalSubscription", "OtherVersion", "PubSub",
    "Published", "Refused", "RegularPlan", "Schema", "Settings", "Stats", "Subscription", "Tables", "Topology",
    "TreeMap", "connect", "fat_tree", "grid", "line", "ring", "star", "tree",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'flowsieve' has no attribute {name!r}")
    return getattr(import_module(f"flowsieve.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
