"""The story: a building full of sensors, whose readings go over a fat-tree to those who want a part of them.

Everything follows from one seed, so that every run tells the same story.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from flowsieve.content.event import EventBatch
from flowsieve.content.schema import Schema
from flowsieve.network.generators import fat_tree
from flowsieve.network.topology import Topology

SEED = 7
HOSTS = 32
READINGS = 20_000
SUBSCRIPTIONS = 100
SAMPLED = 5_000  # readings of the day before, from which the controller learns where the traffic is
BROKEN_SHARE = 0.0005  # readings in which a sensor says what cannot be
BROKEN_READING = 999.9


@dataclass(frozen=True, slots=True)
class Sensor:
    """A kind of sensor: mean and spread of the temperature (°C) and humidity (%) it reads, and its alarm."""

    temperature: tuple[float, float]
    humidity: tuple[float, float]
    too_hot: float

    def hot(self, far: float) -> int:
        """A temperature so many spreads above the mean."""
        return round(self.temperature[0] + far * self.temperature[1])

    def humid(self, far: float) -> int:
        return round(self.humidity[0] + far * self.humidity[1])


SENSORS: Mapping[str, Sensor] = MappingProxyType(
    {
        "air": Sensor((21.5, 2.5), (45, 11), 28),
        "server": Sensor((47, 10), (34, 6), 71),
        "roof": Sensor((8, 7), (70, 13), 26),
        "boiler": Sensor((71, 8), (30, 7), 91),
        "fridge": Sensor((4.5, 1.8), (62, 8), 9),
        "pump": Sensor((42, 9), (50, 9), 64),
        "window": Sensor((16, 6), (57, 14), 31),
        "pipe": Sensor((52, 11), (54, 12), 79),
    }
)

# What hangs in each room. A gateway speaks for all of it: h0 for the first, each at its own edge switch.
ROOMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "lobby": ("air", "window", "pipe"),
        "office": ("air", "window", "server"),
        "lab": ("air", "fridge", "pump"),
        "kitchen": ("air", "fridge", "boiler"),
        "cellar": ("pump", "boiler", "pipe"),
        "archive": ("air", "window"),
        "server hall": ("server", "air", "pump"),
        "attic": ("roof", "window", "pipe"),
    }
)

SCHEMA = Schema.parse(
    {
        "kind": {"type": "enum", "values": list(SENSORS)},
        "temperature": {"type": "float", "min": -40.0, "max": 120.0},
        "humidity": {"type": "int", "min": 0, "max": 100},
        "alarm": {"type": "bool"},
    }
)

# The event that is followed hop by hop: in the kitchen a fridge stands open.
FOLLOWED_ROOM = "kitchen"
FOLLOWED: Mapping[str, object] = MappingProxyType(
    {"kind": "fridge", "temperature": 7.3, "humidity": 76, "alarm": False}
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A filter that a host states, as a subscription or as an advertisement, and who speaks there."""

    id: str
    host: str
    filter: str
    who: str


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """A network, who publishes and wants what, and what was published yesterday and is published now."""

    topology: Topology
    schema: Schema
    advertisements: tuple[Statement, ...]
    subscriptions: tuple[Statement, ...]
    yesterday: EventBatch
    events: EventBatch
    followed: Mapping[str, object]
    followed_host: str


def make_story(readings: int = READINGS, seed: int = SEED) -> Story:
    """The whole story; another number of readings makes it shorter or longer."""
    dice = np.random.default_rng(seed)
    return Story(
        topology=fat_tree(4, hosts=HOSTS),
        schema=SCHEMA,
        advertisements=advertise_rooms(),
        subscriptions=draw_subscriptions(dice),
        yesterday=draw_readings(dice, SAMPLED, broken_share=0.0),
        events=draw_readings(dice, readings, broken_share=BROKEN_SHARE),
        followed=FOLLOWED,
        followed_host=gateway(FOLLOWED_ROOM),
    )


def gateway(room: str) -> str:
    """The host that speaks for a room."""
    return f"h{list(ROOMS).index(room)}"


def advertise_rooms() -> tuple[Statement, ...]:
    """Each gateway promises the kinds of its room, within temperatures that these can have."""
    found = []
    for room, kinds in ROOMS.items():
        low, high = min(SENSORS[kind].hot(-6) for kind in kinds), max(SENSORS[kind].hot(6) for kind in kinds)
        filter = f"kind in {kinds} and {low} <= temperature <= {high}"
        found.append(
            Statement(f"gw-{room.replace(' ', '-')}", gateway(room), filter, f"gateway of the {room}")
        )
    return tuple(found)


def draw_subscriptions(dice: np.random.Generator) -> tuple[Statement, ...]:
    """A hundred filters of those who look after the building, dealt to the hosts that are no gateways."""
    hosts = [f"h{number}" for number in range(len(ROOMS), HOSTS)]
    kinds = list(SENSORS)
    found: dict[str, str] = {}
    while len(found) < SUBSCRIPTIONS:
        who, write = CALLINGS[len(found) % len(CALLINGS)]
        found.setdefault(write(kinds[dice.integers(len(kinds))], dice), who)
    return tuple(
        Statement(f"{who}-{number}", hosts[(number + number // len(CALLINGS)) % len(hosts)], filter, who)
        for number, (filter, who) in enumerate(found.items(), 1)
    )


def _out_of_band(kind: str, dice: np.random.Generator) -> str:
    sensor, far = SENSORS[kind], dice.uniform(1.3, 2.0)
    return f"kind == {kind!r} and not {sensor.hot(-far)} <= temperature <= {sensor.hot(far)}"


def _overheated(kind: str, dice: np.random.Generator) -> str:
    return f"temperature > {SENSORS[kind].hot(dice.uniform(1.0, 2.0))} and kind == {kind!r}"


def _alarms(kind: str, dice: np.random.Generator) -> str:
    other = list(SENSORS)[dice.integers(len(SENSORS))]
    return f"alarm and kind in {(kind, other)}" if other != kind else f"alarm and kind == {kind!r}"


def _damp(kind: str, dice: np.random.Generator) -> str:
    return f"kind == {kind!r} and humidity >= {SENSORS[kind].humid(dice.uniform(1.0, 2.0))}"


def _dry(kind: str, dice: np.random.Generator) -> str:
    return f"kind == {kind!r} and humidity < {SENSORS[kind].humid(-dice.uniform(1.0, 2.0))}"


def _strained(kind: str, dice: np.random.Generator) -> str:
    sensor, far = SENSORS[kind], dice.uniform(1.3, 2.0)
    return f"kind == {kind!r} and (temperature > {sensor.hot(far)} or humidity > {sensor.humid(far)})"


def _band(kind: str, dice: np.random.Generator) -> str:
    low, dry = SENSORS[kind].hot(dice.uniform(-1, 1)), SENSORS[kind].humid(dice.uniform(-1, 1))
    return f"{low} <= temperature < {low + 5} and {dry} <= humidity < {dry + 10}"


def _fire(kind: str, dice: np.random.Generator) -> str:
    return f"alarm and temperature >= {dice.integers(55, 95)} and kind != {kind!r}"


# Who subscribes, and how such a one writes a filter about a kind of sensor.
CALLINGS: tuple[tuple[str, Callable[[str, np.random.Generator], str]], ...] = (
    ("thermostat", _out_of_band),
    ("cooling", _overheated),
    ("guard", _alarms),
    ("mould-watch", _damp),
    ("humidifier", _dry),
    ("maintenance", _strained),
    ("study", _band),
    ("fire-desk", _fire),
)


def draw_readings(dice: np.random.Generator, number: int, broken_share: float) -> EventBatch:
    """Readings of all rooms, mixed; a broken sensor says a temperature that cannot be."""
    placed = [(gateway(room), kind) for room, kinds in ROOMS.items() for kind in kinds]
    hosts, kinds = np.array(placed, dtype=object)[dice.integers(len(placed), size=number)].T
    sensors = [SENSORS[kind] for kind in kinds]
    temperature, spread = np.array([sensor.temperature for sensor in sensors]).reshape(-1, 2).T
    humidity, sway = np.array([sensor.humidity for sensor in sensors]).reshape(-1, 2).T
    temperature = np.round(dice.normal(temperature, spread), 1)
    humidity = np.clip(np.round(dice.normal(humidity, sway)), 0, 100)
    alarm = (temperature > [sensor.too_hot for sensor in sensors]) | (humidity >= 97)
    broken = dice.random(number) < broken_share
    columns = {
        "kind": np.array([SCHEMA["kind"].places[kind] for kind in kinds], dtype=np.float64),
        "temperature": np.where(broken, BROKEN_READING, temperature),
        "humidity": humidity,
        "alarm": alarm.astype(np.float64),
    }
    ids = np.array([f"r{i}" for i in range(number)], dtype=object)
    return EventBatch(SCHEMA, ids, hosts, columns)
