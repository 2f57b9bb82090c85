"""Plans in files, each with what it was planned on, so that an evaluation can use events that are new to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadPlan, BadSchema
from flowsieve.index.plan import PLANNED, IndexPlan, plan_from_json, plan_to_json
from flowsieve.pipeline.planning.holdout import Holdout, fingerprint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Planned:
    """How a plan came about: by what method, on which events, and which of these were held back."""

    schema: Schema
    method: str
    events: str  # their fingerprint
    held_back: Holdout

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "events": self.events,
            "held_back": self.held_back.to_json(),
            "schema": self.schema.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> Planned:
        if not isinstance(data, dict) or not all(
            isinstance(data.get(key), str) for key in ("method", "events")
        ):
            raise BadPlan(f"{PLANNED} = {data!r}; it has a method, events, what was held back, and a schema")
        schema = Schema.parse(data.get("schema"))
        return cls(schema, data["method"], data["events"], Holdout.from_json(data.get("held_back")))


def write_plan(path: Path, plan: IndexPlan, planned: Planned) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plan_to_json(plan) | {PLANNED: planned.to_json()}) + "\n")


def read_plan(path: Path, schema: Schema | None) -> tuple[IndexPlan, Planned | None]:
    """A plan, and how it came about if that is known; its schema is needed only where it is not."""
    try:
        data = json.loads(path.read_text())
        planned = Planned.from_json(data[PLANNED]) if isinstance(data, dict) and PLANNED in data else None
        space = schema or (planned.schema if planned else None)
        if space is None:
            raise BadPlan("the plan does not say its schema; give --schema S.toml")
        return plan_from_json(data, space), planned
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", place=str(path)) from None
    except json.JSONDecodeError as error:
        raise BadInput(f"is no JSON: {error}", place=str(path)) from None
    except (BadPlan, BadSchema) as error:
        raise error.at(str(path)) from None


class Contenders(NamedTuple):
    """Plans of one schema that are to be judged together, each with how it came about if that is known."""

    schema: Schema
    plans: tuple[IndexPlan, ...]
    planned: tuple[Planned | None, ...]

    @property
    def methods(self) -> list[str]:
        """What made each of them, or else its kind."""
        pairs = zip(self.plans, self.planned, strict=True)
        return [planned.method if planned else plan.kind for plan, planned in pairs]

    def held_back(self, events: DataFrame) -> list[Holdout | None]:
        """For each plan, which of the events are new to it: those held back if it was made from these, else all."""
        rules = [planned.held_back if planned else None for planned in self.planned]
        if not any(rule and rule.share for rule in rules):
            return [None] * len(rules)
        name = fingerprint(events)
        return [
            rule if planned and planned.events == name and rule and rule.share else None
            for rule, planned in zip(rules, self.planned, strict=True)
        ]


def read_plans(paths: Sequence[Path], schema: Schema | None) -> Contenders:
    """Plans that are for the same events; the schema is needed only where a plan does not say its own."""
    plans, planned = zip(*(read_plan(path, schema) for path in paths), strict=True)
    if any(plan.schema != plans[0].schema for plan in plans):
        raise BadInput("the plans are for different schemas; right is one")
    return Contenders(plans[0].schema, plans, planned)


def judged_on(rule: Holdout | None) -> str:
    """On which events a plan is judged, in words."""
    return "all of them" if rule is None else f"held back from planning: {rule.text}"
