"""What events are addressed by: an index that publishers use, or have used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan
from flowsieve.header.address import Prefix
from flowsieve.header.encoding import PrefixEncoding
from flowsieve.header.tag import DZ_HEADERS, POOLS, Tag
from flowsieve.index.plan import IndexPlan, plan_from_json, plan_to_json


@dataclass(frozen=True, slots=True)
class ServedIndex:
    """A plan, and the tag of the addresses that it makes; versions grow with each change."""

    version: int
    tag: Tag
    plan: IndexPlan

    @property
    def encoding(self) -> PrefixEncoding:
        return PrefixEncoding(self.tag, self.former)

    @property
    def former(self) -> tuple[Tag, ...]:
        """The tags that indexes before this one may have had."""
        return tuple(tag for tag in self._pool if tag != self.tag)

    @property
    def _pool(self) -> tuple[Tag, ...]:
        return next(POOLS[header] for header in DZ_HEADERS if self.tag in POOLS[header])

    def to_json(self) -> dict[str, Any]:
        return {"version": self.version, "tag": str(self.tag.group), "plan": plan_to_json(self.plan)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], schema: Schema) -> ServedIndex:
        """What `to_json` wrote down."""
        tag = Tag(Prefix.parse(data["tag"]))
        plan = plan_from_json(data["plan"], schema, PrefixEncoding(tag).room)
        return cls(int(data["version"]), tag, plan)

    def free_tags(self, *in_use: Tag) -> list[Tag]:
        """The tags that another index could have."""
        return [tag for tag in self.former if tag not in in_use]

    def follower(self, plan: IndexPlan, *in_use: Tag) -> ServedIndex:
        """The index that comes next, under a tag of the same pool that nobody uses; raises BadPlan if it cannot be."""
        free = self.free_tags(*in_use)
        if not free:
            used = ", ".join(str(tag.group) for tag in in_use)
            raise BadPlan(f"no tag is free for another index: some publisher has not left {used} yet")
        room = PrefixEncoding(free[0]).room
        if plan.bits > room:
            raise BadPlan(f"the plan makes dz of {plan.bits} bits, and {free[0].group} has room for {room}")
        if plan.schema != self.plan.schema:
            raise BadPlan("the plan is for another schema than the running one")
        return ServedIndex(self.version + 1, free[0], plan)
