"""An index plan: how the content space is halved, a value that planner, controller and publishers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan, nearest
from flowsieve.index.dz import MAX_LENGTH
from flowsieve.index.plans.cell_plan import CellPlan
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan

IndexPlan = CellPlan  # everything outside the index knows a plan by this name, whatever its kind

# What the file of a plan may say beside the plan: how it came about.
PLANNED = "planned"

# A new kind of plan joins here: how it is read.
KINDS: dict[str, Callable[[Mapping[str, Any], Schema, int], IndexPlan]] = {
    RegularPlan.kind: RegularPlan.from_json,
    AdaptivePlan.kind: AdaptivePlan.from_json,
    LevelwisePlan.kind: LevelwisePlan.from_json,
    KdPlan.kind: KdPlan.from_json,
    SelectivePlan.kind: SelectivePlan.from_json,
}


def plan_to_json(plan: IndexPlan) -> dict[str, Any]:
    """A plan as a plain value: its kind, the digest of its schema, and what the kind needs."""
    return plan.to_json()


def plan_from_json(data: object, schema: Schema, room: int = MAX_LENGTH) -> IndexPlan:
    """The plan that `plan_to_json` wrote down, for this schema and a header with room for so many bits."""
    if not isinstance(data, Mapping):
        raise BadPlan(
            f"a plan is an object with a kind, such as {{'kind': 'regular', …}}, not {type(data).__name__}"
        )
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = nearest(kind, KINDS) if isinstance(kind, str) else ""
        raise BadPlan(f"there is no plan of kind {kind!r}, only {', '.join(KINDS)}{hint}")
    if data.get("schema") != schema.digest:
        raise BadPlan(
            f"the plan is for a schema with digest {data.get('schema')!r}; this one has {schema.digest!r}"
        )
    own = {key: value for key, value in data.items() if key != PLANNED}
    return KINDS[kind](own, schema, room)
