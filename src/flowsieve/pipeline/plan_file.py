"""Plans in files: the plan itself, and beside it what it was planned on: an evaluation knows what is new to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowsieve.content.schema import Schema
from flowsieve.errors import BadInput, BadPlan, BadSchema
from flowsieve.index.plan import PLANNED, IndexPlan, plan_from_json, plan_to_json
from flowsieve.pipeline.planning.sampling import HoldBack


@dataclass(frozen=True)
class Planned:
    """How a plan came about: by what method, on which events, and which of these were held back."""

    schema: Schema
    method: str
    events: str  # their fingerprint
    held_back: HoldBack

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
        return cls(schema, data["method"], data["events"], HoldBack.from_json(data.get("held_back")))


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
