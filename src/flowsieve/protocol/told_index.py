"""What a controller tells a session that addresses events by an index which is not the one of now: how to go over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.content.schema import Schema, shown
from flowsieve.errors import BadInput, BadMessage
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import Encoding, PrefixEncoding
from flowsieve.header.tag import Tag
from flowsieve.index.dzset import DzSet
from flowsieve.index.plan import IndexPlan, plan_from_json, plan_to_json
from flowsieve.protocol.limits import MAX_NUMBER

FIRST_INDEX = 0  # the version of an index that nobody has gone over to: who does not say has this one


@dataclass(frozen=True, slots=True)
class ToldIndex:
    """An index: by which plan events are encoded, and the tag that their addresses begin with.

    Versions grow with each change. A session says which it uses, so that the controller knows when the one before can
    go. `dz` has, for each subscription of the session by its id, the cells that the network owes it under this index.
    """

    version: int
    tag: Tag
    plan: IndexPlan
    dz: Mapping[str, DzSet]

    @property
    def encoding(self) -> Encoding:
        return PrefixEncoding(self.tag)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "tag": str(self.tag.group),
            "plan": plan_to_json(self.plan),
            "dz": {id: cells.texts() for id, cells in self.dz.items()},
        }

    @classmethod
    def parse(cls, data: object, schema: Schema) -> ToldIndex:
        """What `to_json` wrote down, for events of this schema; BadMessage if it is nothing like that."""
        try:
            if not isinstance(data, Mapping):
                raise ValueError(f"it is an object with version, tag, plan and dz, not {shown(data)}")
            version, tag = index_version(data["version"]), Tag(Prefix.parse(data["tag"]))
            plan = plan_from_json(data["plan"], schema, PrefixEncoding(tag).room)
            return cls(version, tag, plan, {_id(id): told_cells(dz) for id, dz in data["dz"].items()})
        except (AttributeError, KeyError, TypeError, ValueError, BadInput) as error:
            raise BadMessage(f"the controller's index cannot be read: {error}") from None


def is_of_schema(data: object, schema: Schema) -> bool:
    """Whether an index that is told is for events of a schema; only then can it be gone over to."""
    plan = data.get("plan") if isinstance(data, Mapping) else None
    return isinstance(plan, Mapping) and plan.get("schema") == schema.digest


def index_version(told: object) -> int:
    """The version of an index; ValueError if it is none."""
    if type(told) is not int or not FIRST_INDEX <= told <= MAX_NUMBER:
        raise ValueError(f"{shown(told)} is no version of an index; it is a whole number from {FIRST_INDEX}")
    return told


def told_cells(told: object) -> DzSet:
    """The dz that a controller tells; ValueError or BadInput if they are none."""
    if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
        raise ValueError(f"{shown(told)} are no dz; they are a list of texts of 0 and 1")
    return DzSet.of(told)


def _id(told: object) -> str:
    if not isinstance(told, str):
        raise ValueError(f"{shown(told)} is no id of a subscription")
    return told
