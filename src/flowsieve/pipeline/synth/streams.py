"""Streams that look like real ones: quotes of shares, and readings of sensors; and what people ask of them.

Values of one share or sensor hang together over time without any state: they follow sines whose phases are drawn once
for each of them, so that any row can be made by itself.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from flowsieve.pipeline.synth.hashed_random import HashedRandom, clipped
from flowsieve.pipeline.synth.workload import SENSORS, SYMBOLS

if TYPE_CHECKING:
    from pyspark.sql import Column

DAY, YEAR = 1440, 525_600  # in rows of one sensor, which reads once a minute
WAVES = {1.0: 0.5, 3.0: 0.3, 11.0: 0.12, 47.0: 0.05}  # of a share: turns in the whole time, and height


def quote(draws: HashedRandom, passed: Column) -> dict[str, Column]:
    """A share's day: popular shares are quoted more often, prices follow slow waves, volume belongs to the share."""
    symbol = _symbol(draws)
    opening = _price(symbol, passed) * F.exp(0.01 * draws.normal("open"))
    closing = opening * F.exp(0.02 * draws.normal("close"))
    high = F.greatest(opening, closing) * F.exp(0.01 * F.abs(draws.normal("high")))
    low = F.least(opening, closing) * F.exp(-0.01 * F.abs(draws.normal("low")))
    prices = {"open": opening, "high": high, "low": low, "close": closing}
    quoted = {name: clipped(F.round(price, 2), 0.0, 2000.0) for name, price in prices.items()}
    volume = F.floor(_volume(symbol) * F.exp(0.8 * draws.normal("volume")))
    return {"symbol": _name(symbol), **quoted, "volume": clipped(volume, 0, 10**9).cast("bigint")}


def stock_filter(draws: HashedRandom) -> Column:
    """A share, and for half of the people one condition on its high, its low or its volume."""
    symbol = _symbol(draws)
    price = F.round(_price(symbol, draws.uniform("when")) * F.exp(0.1 * draws.normal("limit")), 2)
    volume = F.floor(_volume(symbol) * F.exp(0.5 * draws.normal("limit"))).cast("bigint")
    what = F.floor(draws.uniform("what") * 6)
    condition = (
        F.when(what == 0, _compared("high > ", price))
        .when(what == 1, _compared("low < ", price + 0.01))
        .when(what == 2, _compared("volume > ", volume))
    )
    return F.concat_ws(" and ", F.concat(F.lit("symbol == '"), _name(symbol), F.lit("'")), condition)


def reading(draws: HashedRandom, row: Column) -> dict[str, Column]:
    """A sensor's minute: warm by day and in summer, dry when warm, light by day, co2 when there are people."""
    sensor = F.pmod(row, F.lit(SENSORS)).cast("bigint")
    minute = F.floor(row / SENSORS).cast("double")
    return _reading(draws, sensor, minute)


def sensor_filter(draws: HashedRandom) -> Column:
    """A zone of neighbouring sensors, and a range of one or two of the values that they read."""
    first = F.floor(draws.uniform("zone") * SENSORS).cast("bigint")
    last = F.least(
        F.lit(SENSORS - 1), first + F.floor(draws.uniform("zone.size") ** 2 * SENSORS).cast("bigint")
    )
    read = _reading(draws, first, F.floor(draws.uniform("when") * YEAR))
    reach = {"temperature": 4.0, "humidity": 10.0, "light": 200.0, "co2": 150.0}
    one = F.floor(draws.uniform("one") * len(reach))
    two = F.floor(draws.uniform("two") * len(reach))
    said = [F.concat(first.cast("string"), F.lit(" <= sensor <= "), last.cast("string"))]
    for number, (name, width) in enumerate(reach.items()):
        half = width * (0.25 + draws.uniform(f"{name}.reach"))
        low, high = F.round(read[name] - half, 1), F.round(read[name] + half, 1)
        text = F.concat(_number(low), F.lit(f" <= {name} <= "), _number(high))
        said.append(F.when((one == number) | (two == number), text))
    return F.concat_ws(" and ", *said)


def _symbol(draws: HashedRandom) -> Column:
    """A share's number: number k comes up about k times as rarely as the first."""
    return F.least(
        F.lit(SYMBOLS - 1), F.floor(F.pow(F.lit(SYMBOLS + 1.0), draws.uniform("symbol"))) - 1
    ).cast("bigint")


def _name(symbol: Column) -> Column:
    return F.concat(F.lit("S"), F.lpad(symbol.cast("string"), 3, "0"))


def _price(symbol: Column, passed: Column) -> Column:
    """The same for events and for subscriptions, whose limits lie where the prices are."""
    shared = HashedRandom(0, "shares")
    level = 2.5 + 1.0 * shared.normal("level", symbol)
    for turns, height in WAVES.items():
        phase = 2 * math.pi * shared.uniform(f"phase{turns}", symbol)
        level = level + height * F.sin(2 * math.pi * turns * passed + phase)
    return F.exp(level)


def _volume(symbol: Column) -> Column:
    return F.exp(10.0 + 1.5 * HashedRandom(0, "shares").normal("volume", symbol))


def _reading(draws: HashedRandom, sensor: Column, minute: Column) -> dict[str, Column]:
    own = HashedRandom(0, "sensors")
    day = F.sin(2 * math.pi * (minute / DAY - 0.25))
    year = F.sin(2 * math.pi * (minute / YEAR - 0.25))
    temperature = (
        12 + 10 * year + 6 * day + 3 * own.normal("warm", sensor) + 0.5 * draws.normal("temperature")
    )
    humidity = 75 - 1.5 * temperature + 5 * own.normal("damp", sensor) + 2 * draws.normal("humidity")
    light = F.greatest(F.lit(0.0), 600 * day + 300 * own.normal("bright", sensor)) * (
        0.8 + 0.4 * draws.uniform("light")
    )
    people = F.when(
        (day > 0) & (own.uniform("office", sensor) < 0.6), 400 + 200 * own.uniform("crowd", sensor)
    )
    co2 = 420 + F.coalesce(people, F.lit(0.0)) * (0.5 + draws.uniform("people")) + 15 * draws.normal("co2")
    battery = 4.2 - F.pmod(minute / YEAR + own.uniform("battery", sensor), F.lit(1.0)) * 1.8
    return {
        "sensor": sensor,
        "temperature": clipped(F.round(temperature, 1), -40.0, 60.0),
        "humidity": clipped(F.round(humidity, 1), 0.0, 100.0),
        "light": clipped(F.round(light, 1), 0.0, 2000.0),
        "co2": clipped(F.round(co2, 1), 300.0, 3000.0),
        "battery": clipped(F.round(battery, 2), 2.0, 4.2),
    }


def _compared(text: str, limit: Column) -> Column:
    return F.concat(F.lit(text), _number(limit))


def _number(value: Column) -> Column:
    """A number as a filter has it, without an exponent."""
    return value.cast("decimal(20,2)").cast("string")
