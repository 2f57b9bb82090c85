"""From text to boxes: what is read, what is refused, where the error points, and how soon."""

from __future__ import annotations

import time
import warnings

import pytest

from flowsieve.content.box import Box, Interval, Text
from flowsieve.content.parser import DEEPEST, LONGEST, parse_boxes
from flowsieve.content.schema import Schema
from flowsieve.errors import BadFilter

SCHEMA = Schema.parse(
    {
        "price": {"type": "int", "min": 0, "max": 1023},
        "size": {"type": "int", "min": 0, "max": 9999},
        "ratio": {"type": "float", "min": -1.0, "max": 1.0},
        "side": {"type": "enum", "values": ["buy", "sell", "hold"]},
        "live": {"type": "bool"},
        "name": {"type": "string"},
        "symbol": {"type": "string", "prefix": True},
        "größe": {"type": "int", "min": 0, "max": 9},
    }
)
PLACES = {name: i for i, name in enumerate(SCHEMA.names)}


def box(**constraints: Interval | Text) -> Box:
    whole = list(SCHEMA.whole)
    for name, constraint in constraints.items():
        whole[PLACES[name]] = constraint
    return tuple(whole)


def refused(text: str) -> BadFilter:
    with pytest.raises(BadFilter) as caught:
        parse_boxes(text, SCHEMA)
    return caught.value


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("True", [box()]),
        ("not False", [box()]),
        ("50 <= price < 100", [box(price=Interval(50, 99))]),
        ("100 > price >= 50", [box(price=Interval(50, 99))]),
        ("price > 50 < size", [box(price=Interval(51, 1023), size=Interval(51, 9999))]),
        ("5 < price", [box(price=Interval(6, 1023))]),
        ("price < 10.5", [box(price=Interval(0, 10))]),
        ("price > -7", [box()]),
        ("price < 1e999", [box()]),
        ("price != +7", [box(price=Interval(0, 6)), box(price=Interval(8, 1023))]),
        ("not (price <= 6 or price > 7)", [box(price=Interval(7, 7))]),
        ("not 3 < price < 1023", [box(price=Interval(0, 3)), box(price=Interval(1023, 1023))]),
        ("price in (1, 2, 3, 7, 7, 5000)", [box(price=Interval(1, 3)), box(price=Interval(7, 7))]),
        ("price not in [0, 1023]", [box(price=Interval(1, 1022))]),
        ("price in {4} or price in []", [box(price=Interval(4, 4))]),
        ("ratio >= .5", [box(ratio=Interval(0.5, 1.0))]),
        ('side == "sell"', [box(side=Interval(1, 1))]),
        ('side > "buy"', [box(side=Interval(1, 2))]),
        ('side != "sell"', [box(side=Interval(0, 0)), box(side=Interval(2, 2))]),
        ("live", [box(live=Interval(1, 1))]),
        ("not live", [box(live=Interval(0, 0))]),
        ("live == False", [box(live=Interval(0, 0))]),
        ("True != live", [box(live=Interval(0, 0))]),
        ("live in (True, False)", [box()]),
        ("name == 'x'", [box(name=Text(equals="x"))]),
        ("name not in ('x', 'y') and name != 'z'", [box(name=Text(none_of=frozenset("xyz")))]),
        ("'AB' <= symbol < 'AC'", [box(symbol=Text(low="AB", high="AC"))]),
        ("symbol > 'A' and symbol <= 'B'", [box(symbol=Text(low="A\0", high="B\0"))]),
        ("symbol >= 'A' and symbol <= 'A'", [box(symbol=Text(equals="A"))]),
        ("'a' 'b' == name", [box(name=Text(equals="ab"))]),
        ("größe > 5", [box(größe=Interval(6, 9))]),
        ("  price > 5  # dear", [box(price=Interval(6, 1023))]),
        ("\n  price > 5\n  and live  # now\n", [box(price=Interval(6, 1023), live=Interval(1, 1))]),
        (
            "(price < 5 or size < 5) and live",
            [box(size=Interval(0, 4), live=Interval(1, 1)), box(price=Interval(0, 4), live=Interval(1, 1))],
        ),
    ],
)
def test_a_filter_means_boxes(text: str, boxes: list[Box]) -> None:
    assert sorted(parse_boxes(text, SCHEMA), key=repr) == sorted(boxes, key=repr)


def test_parts_that_touch_become_one_box() -> None:
    assert parse_boxes("price < 5 or 5 <= price <= 9 or price == 10", SCHEMA) == (box(price=Interval(0, 10)),)
    assert parse_boxes("live and price < 5 or not live and price < 5", SCHEMA) == (box(price=Interval(0, 4)),)
    assert parse_boxes("price < 5 or price >= 5", SCHEMA) == (box(),)
    assert parse_boxes("price < 5 or price < 3 and live", SCHEMA) == (box(price=Interval(0, 4)),)


@pytest.mark.parametrize(
    "text",
    [
        "False",
        "price > 5 and price < 3",
        "price > 1023",
        "price == 2.5",
        "price in ()",
        "ratio > 1e999",
        "live and not live",
        "side < 'buy'",
        "name == 'a' and name == 'b'",
        "name == 'a' and name != 'a'",
        "name in ('a', 'b') and name not in ('b', 'a', 'c')",
        "symbol < ''",
        "symbol >= 'b' and symbol < 'a'",
        "symbol > 'a' and symbol <= 'a'",
    ],
)
def test_a_filter_that_can_match_nothing_is_refused(text: str) -> None:
    told = refused(text).message
    assert told.startswith(f"the filter can match nothing: {text!r}")
    assert text == "False" or " is " in told


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("prise > 5", "prise", "there is no attribute 'prise'; did you mean 'price'?"),
        ("live and prise > 5", "prise", "did you mean 'price'"),
        ("größe > 5 and größee < 4", "größee", "did you mean 'größe'"),
        ("price > 1 and\n  sise < 3", "sise", "did you mean 'size'"),
        ("price > 1 or\r\n'ü' == name or sise < 3", "sise", "did you mean 'size'"),
        ("true", "true", "did you mean 'True'"),
        ("price > size", "size", "price and size are both attributes"),
        ("1 < price < size", "size", "price and size are both attributes"),
        ("5 < 6", "5", "5 is no attribute"),
        ("price < 5 < 6", "5", "5 is no attribute"),
        ("price == 'x'", "'x'", "price is an int from 0 to 1023; compare it with a number, not with 'x'"),
        ("price == True", "True", "compare it with a number, not with True"),
        ("price == None", "None", "compare it with a number, not with None"),
        ("price == 5j", "5j", "compare it with a number"),
        ("ratio < 'x'", "'x'", "ratio is a float from -1.0 to 1.0"),
        ("side < 5", "5", "side is one of buy, sell, hold; compare it with a text in quotes, not with 5"),
        (
            'side == "bug"',
            '"bug"',
            "'bug' is no value of side, which has buy, sell, hold; did you mean 'buy'",
        ),
        ('side in ("buy", "cell")', '"cell"', "did you mean 'sell'"),
        ("side == buy", "buy", 'a text stands in quotes: "buy"'),
        ("live == 1", "1", "live is True or False"),
        ("name == 5", "5", "name is a string"),
        ("name == b'x'", "b'x'", "name is a string"),
        ("name < 'a'", "'a'", "only with prefix = true"),
        ("name == f'{price}'", "f'", "is not a constant"),
        ("name == 'a\\0'", "'a", "no filter can have"),
        ("name == '\\ud800'", "'\\ud", "no filter can have"),
        ("price", "price", "price alone is no condition"),
        ("price and live", "price", "price alone is no condition"),
        ("5", "5", "5 is no condition"),
        ("'buy'", "'buy'", "'buy' is no condition"),
        ("price == 5 + 3", "5 + 3", "5 \\+ 3 is not a constant"),
        ("price == -True", "-True", "-True is not a constant"),
        ("price in 5", "5", "wants a list of constants"),
        ("price in size", "size", "wants a list of constants"),
        ("price in (1, size)", "size", "both attributes"),
        ("5 in price", "5", "in wants an attribute on its left"),
        ("5 in (6, 7)", "5", "in wants an attribute on its left"),
        ("(price > 5) == True", "price > 5", "price > 5 is neither an attribute nor a constant"),
        ("price is 5", "price", "write == for is"),
        ("price.real > 5", "price.real", "neither an attribute nor a constant"),
        ("print(price)", "print", "is no condition"),
        ("(lambda: live)()", "(lambda", "is no condition"),
        ("live if live else live", "live if", "is no condition"),
        ("price >", "", "the filter ends too early"),
        ("(price > 5", "", "'\\(' is never closed"),
        ("price > 5)", "", "'\\)' closes nothing"),
        ("price > [5", "", "'\\[' is never closed"),
        ("price in (5]", "]", "does not match"),
        ("price = 5", "price", "syntax error: .*"),
        ("price > 5\nand and live", "and live", "syntax error: .*"),
        ("name == 'a", "'a", "unterminated string"),
        ("price == 5and live", "5", "syntax error: .*"),
    ],
)
def test_an_error_points_at_the_place(text: str, place: str, message: str) -> None:
    error = refused(text)
    with pytest.raises(BadFilter, match=message):
        raise error
    assert error.column == (text.rindex(place) + 1 if place else len(text) + 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "price > 5) or (live",
        "price > 5, live",
        "x for x in price",
        "price > \0",
        "name == '\ud800'",
        "name == '\\d'",
        "price == " + "9" * 5000,
        "side == 0x" + "f" * 50_000,
        "price > 5; live",
        "price := 5",
        "import os",
        "é" * (LONGEST // 2 + 1),
        "x" * (LONGEST + 1),
        "z" * 60_000 + " > 5",
        "(" * 5000,
        "not " * 5000 + "live",
        "-" * 5000 + "1 < price",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_whatever_cannot_be_read_is_a_bad_filter_and_its_message_stays_short(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(str(refused(text))) < 400


def test_a_filter_is_a_text() -> None:
    with pytest.raises(BadFilter, match="a filter is a text, not 5"):
        parse_boxes(5, SCHEMA)  # type: ignore[arg-type]


def test_parsing_leaves_the_warning_filters_alone() -> None:
    before = list(warnings.filters)
    parse_boxes("price > 5", SCHEMA)
    assert warnings.filters == before


def test_depth_is_limited_and_length_of_a_chain_is_not_depth() -> None:
    assert parse_boxes("not " * (DEEPEST - 2) + "live", SCHEMA)
    assert "deeper than 100" in refused("not " * DEEPEST + "live").message
    assert parse_boxes(" and ".join(["live"] * 5000), SCHEMA) == (box(live=Interval(1, 1)),)
    assert parse_boxes("(" * 150 + "live" + ")" * 150, SCHEMA) == (box(live=Interval(1, 1)),)


def test_many_exclusions_of_one_attribute_stay_linear() -> None:
    text = " and ".join(f"size != {2 * i}" for i in range(1, 3000))
    assert len(parse_boxes(text, SCHEMA)) == 3000
    text = " and ".join(f"name != '{i}'" for i in range(3000))
    assert parse_boxes(text, SCHEMA) == (box(name=Text(none_of=frozenset(map(str, range(3000))))),)


HOSTILE = {
    "a product of exclusions": " and ".join(f"price != {2 * i} and size != {2 * i}" for i in range(100)),
    "a conjunction of disjunctions": " and ".join(f"(price == {i} or size == {i})" for i in range(40)),
    "a hard conjunction of disjunctions": " and ".join(
        f"(price > {i} or size < {9000 - i})" for i in range(900)
    ),
    "a negated disjunction of conjunctions": "not ("
    + " or ".join(f"(price == {i} and size == {i} and ratio == 0.{i})" for i in range(1, 900))
    + ")",
    "a long list": f"size in ({','.join(str(i) for i in range(0, 9999, 2))})" + " and live" * 3000,
    "long lists that meet": " and ".join(
        f"(size in ({','.join(str(i) for i in range(k, 9999, 13))}) or ratio > 0.{k})" for k in range(12)
    ),
    "a region met again and again": f"(size in ({','.join(str(i) for i in range(0, 8000, 4))}) and ratio > 0)"
    + "".join(
        f" and (size < 2000 and ratio < 0.{i} or size >= 2000 and ratio < 0.{i}1)" for i in range(100, 800)
    ),
    "a region joined again and again": "(" * 45
    + " or ".join(f"(price == {i} and size == {i * 7})" for i in range(1000))
    + "".join(f" or price == {i} and size == {i}) and (ratio < 0.{i} or live)" for i in range(9, 54)),
    "a long chain": "price" + " < 5 > price" * 5000,
    "prefixes": " or ".join(f"('a{i:04}' <= symbol < 'b{i:04}' and name != '{i}')" for i in range(1000)),
    "ten megabytes": "price > 5 and " * 750_000 + "live",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_filter_is_read_or_refused_soon(text: str) -> None:
    started = time.process_time()
    try:
        assert 0 < len(parse_boxes(text, SCHEMA)) <= 4096
    except BadFilter as error:
        assert error.message.startswith(
            ("the filter is too complex", "the filter is longer", "the filter can match")
        )
    assert time.process_time() - started < 5  # not the minutes that it could be made to take
