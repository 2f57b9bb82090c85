"""What a synthetic workload is to be like, and the numbers that it is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flowsieve.content.schema import Attribute, Schema
from flowsieve.errors import BadInput, nearest

KINDS = ("uniform", "zipf", "zipfsel", "stock", "sensor")
SELECTIVITIES = (0.08, 0.2, 0.5, 1.5, 2.0, 2.0, 3.0, 3.0)  # zipfsel's widths, as shares of the range
CHOICES = {
    "kind": KINDS,
    "variance": ("random", "uniform"),
    "correlation": ("none", "low", "high"),
    "selectivity": ("same", "random"),
}
SYMBOLS = 100
SENSORS = 200
STOCK = {
    "symbol": {"type": "enum", "values": [f"S{i:03d}" for i in range(SYMBOLS)]},
    **{key: {"type": "float", "min": 0.0, "max": 2000.0} for key in ("open", "high", "low", "close")},
    "volume": {"type": "int", "min": 0, "max": 1_000_000_000},
}
SENSOR = {
    "sensor": {"type": "int", "min": 0, "max": SENSORS - 1},
    "temperature": {"type": "float", "min": -40.0, "max": 60.0},
    "humidity": {"type": "float", "min": 0.0, "max": 100.0},
    "light": {"type": "float", "min": 0.0, "max": 2000.0},
    "co2": {"type": "float", "min": 300.0, "max": 3000.0},
    "battery": {"type": "float", "min": 2.0, "max": 4.2},
}


@dataclass(frozen=True)
class Workload:
    """Events and subscriptions to draw.

    *uniform* events and boxes lie anywhere, independent of each other. *zipf* is the popularity of [Expressive]: both
    gather around hotspots of zipfian popularity. *zipfsel* is zipf with widths that are a random permutation of
    `SELECTIVITIES` over the dimensions. *stock* and *sensor* imitate quotes and readings, with a schema of their own.

    `variance`: around a hotspot, events spread alike along all dimensions, or much along some and little along others.
    `correlation`: `high` ties all dimensions but a quarter of them closely together, `low` ties two loosely. `width`
    is a box's mean width as a share of the range; `selectivity` = random gives every dimension another one, as zipfsel
    has. `drift` is how far hotspots move from the first event to the last, as a share of the range.
    """

    kind: str = "uniform"
    attributes: int = 8
    bits: int = 12  # an attribute is an int from 0 to 2^bits - 1
    hotspots: int = 8
    exponent: float = 1.0
    variance: str = "random"
    correlation: str = "none"
    selectivity: str = "same"
    width: float = 0.25
    drift: float = 0.0
    hosts: int = 0  # events and subscriptions belong to so many hosts; 0: to none
    seed: int = 0

    def __post_init__(self) -> None:
        for name, right in CHOICES.items():
            value = getattr(self, name)
            if value not in right:
                raise BadInput(
                    f"{name} is {value!r}; right is one of {', '.join(right)}{nearest(value, right)}"
                )
        for name, least, most in (
            ("attributes", 1, 1000),
            ("bits", 1, 50),
            ("hotspots", 1, 8),
            ("exponent", 0, 10),
            ("width", 0, 1),
            ("drift", -10, 10),
            ("hosts", 0, 1_000_000),
            ("seed", 0, 2**63 - 1),
        ):
            if not least <= getattr(self, name) <= most:
                raise BadInput(f"{name} is {getattr(self, name)}; right is a number from {least} to {most}")

    @property
    def size(self) -> int:
        """How many values an attribute of a generic workload has."""
        return 1 << self.bits

    @property
    def schema(self) -> Schema:
        if self.kind in ("stock", "sensor"):
            return Schema.parse(STOCK if self.kind == "stock" else SENSOR)
        names = [f"a{i}" for i in range(self.attributes)]
        return Schema(tuple(Attribute(name, "int", 0, self.size - 1) for name in names))


@dataclass(frozen=True, eq=False)
class Terrain:
    """The hotspots of a workload (a row each) and the widths of its boxes, in shares of the range."""

    popularity: NDArray[np.float64]  # up to and with each hotspot
    centre: NDArray[np.float64]
    deviation: NDArray[np.float64]
    direction: NDArray[np.float64]  # where drift takes each hotspot
    width: NDArray[np.float64]  # per dimension
    tied: NDArray[np.float64]  # per dimension, how closely it follows what tied dimensions share

    @classmethod
    def of(cls, workload: Workload) -> Terrain:
        """Drawn once, on the driver, from the seed alone."""
        rng = np.random.default_rng([workload.seed, KINDS.index(workload.kind)])
        spots, dimensions = workload.hotspots, workload.attributes
        weight = 1.0 / np.arange(1, spots + 1) ** workload.exponent
        centre = rng.uniform(400, 3700, (spots, dimensions)) / 4096
        if workload.variance == "random":
            deviation = rng.uniform(50, 800, (spots, dimensions)) / 4096
        else:
            deviation = np.full((spots, dimensions), 400 / 4096)
        shares = np.resize(SELECTIVITIES, dimensions)[rng.permutation(dimensions)]
        random = workload.kind == "zipfsel" or workload.selectivity == "random"
        direction = rng.choice([-1.0, 1.0], (spots, dimensions))
        tied = np.zeros(dimensions)
        if workload.correlation != "none":
            high = workload.correlation == "high"
            many = dimensions - max(1, dimensions // 4) if high else 2
            tied[rng.permutation(dimensions)[: max(many, min(2, dimensions))]] = 0.95 if high else 0.5
        return cls(
            np.cumsum(weight / weight.sum()),
            centre,
            deviation,
            direction,
            shares if random else np.full(dimensions, workload.width),
            tied,
        )
