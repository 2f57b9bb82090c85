"""An index plan: how the content space is halved, a value that planner, controller and publishers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.event import EventBatch
from flowsieve.content.filter import Filter
from flowsieve.content.schema import Schema
from flowsieve.errors import BadPlan, nearest
from flowsieve.index.covers.walk import Cell, DzColumn, Spans, Walk
from flowsieve.index.dz import MAX_LENGTH, Dz
from flowsieve.index.dzset import DzSet
from flowsieve.index.extent import Extent
from flowsieve.index.plans.kd import KdPlan
from flowsieve.index.plans.learned import AdaptivePlan, LevelwisePlan
from flowsieve.index.plans.regular import RegularPlan
from flowsieve.index.plans.selective import SelectivePlan
from flowsieve.index.plans.splitter import Splitter
from flowsieve.index.sample import EventSample


class IndexPlan(Walk, Protocol):
    """What everything outside the index knows of a plan.

    The one law: an event that a filter matches has a dz that the filter's cover covers, whatever the budget
    and the sample.
    """

    @property
    def kind(self) -> str: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The attributes that the plan cuts."""

    @property
    def bits(self) -> int:
        """The longest dz that the plan can make; an event's dz have this length."""

    @property
    def one_dz(self) -> bool:
        """Whether every event has exactly one dz."""

    @property
    def single_places(self) -> bool:
        """Whether the cell of a dz of full length is a single place on each axis."""

    @property
    def splitter(self) -> Splitter:
        """Where cells are cut, in a form that kernels take."""

    @property
    def axis_last(self) -> NDArray[np.uint64]:
        """The last place on each axis."""

    def encode(self, values: Mapping[str, object]) -> tuple[Dz, ...]:
        """The dz of an event: one, several, or none if the plan does not send it."""

    def encode_batch(self, events: EventBatch) -> DzColumn:
        """`encode` for many events at once."""

    def cover(self, wanted: Filter, budget: int, sample: EventSample | None = None) -> DzSet:
        """The dz that stand for a filter: at most `budget`; if that is 0, just the cells that it touches."""

    def count_cover(self, wanted: Filter) -> int:
        """How many dz the exact cover has."""

    def touches(self, wanted: Filter, cells: DzSet) -> NDArray[np.bool_]:
        """Which dz of a set name cells that the filter touches."""

    def places(self, events: EventBatch) -> NDArray[np.uint64]:
        """Where events lie on the axes that the plan cuts: a row for each dz that `encode_batch` gives."""

    def cells(self, places: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The first and the last places of the cells of full length that such places lie in."""

    def boxes(self, wanted: Filter) -> tuple[Spans, ...]:
        """What a filter wants, as boxes of places on the plan's axes."""

    def extents(self, cell: Cell) -> tuple[Extent, ...]:
        """The parts of the content space that a cell stands for; none if no event lies in it."""

    def shortened(self, bits: int) -> IndexPlan:
        """The plan with at most as many bits as it has."""

    def to_json(self) -> dict[str, Any]: ...


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
