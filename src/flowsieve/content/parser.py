"""From a filter's text to its boxes. The text is parsed as a Python expression and never evaluated."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from typing import Any

from flowsieve.content.box import Box
from flowsieve.content.cuts import Cuts, compare, complement, union, whole
from flowsieve.content.one_box import one_box
from flowsieve.content.region import LARGEST, Algebra, Region, TooComplex
from flowsieve.content.schema import Attribute, Schema, is_unicode, listed, nearest_of, shown
from flowsieve.errors import BadFilter

LONGEST = 64 * 1024  # bytes of text
DEEPEST = 100  # operators inside one another

MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {  # 5 < a is a > 5
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}
MEMBERSHIP = (ast.In, ast.NotIn)
WANTED = {
    "int": "a number",
    "float": "a number",
    "bool": "True or False",
    "enum": "a text in quotes",
    "string": "a text in quotes",
}
EVERYTHING: Region = [{}]
NOTHING: Region = []
ONE_AT_A_TIME = threading.Lock()  # the filters of `warnings` belong to the whole process


def parse_boxes(text: str, schema: Schema) -> tuple[Box, ...]:
    """The boxes that a filter's text means; never none.

    The work is bounded whatever the text: its length, its depth, the number of boxes at any time and the
    steps taken all have limits, beyond which the filter is refused.
    """
    expression = _expression(text)
    if (box := one_box(expression, schema)) is not None:
        return (box,)
    return _boxes(text, expression, schema)


def _boxes(text: str, expression: ast.expr, schema: Schema) -> tuple[Box, ...]:
    """The boxes of any expression."""
    reader = _Reader(text, schema)
    try:
        boxes = reader.algebra.boxes(reader.region(expression, True, 1))
    except RecursionError:
        raise _too_deep(text) from None
    except TooComplex:
        message = f"the filter is too complex: it makes more than {LARGEST} boxes, or many steps to get there"
        raise BadFilter(f"{message}; split it into several", text=text) from None
    if not boxes:
        raise BadFilter(_matches_nothing(text, expression, schema), text=text)
    return boxes


def _matches_nothing(text: str, expression: ast.expr, schema: Schema) -> str:
    """What is wrong with a filter without boxes: its text, and the ranges of the attributes in it."""
    names = dict.fromkeys(node.id for node in ast.walk(expression) if isinstance(node, ast.Name))
    ranges = [f"{name} is {schema[name].range_text}" for name in names]
    return "; ".join([f"the filter can match nothing: {shown(text)}", *ranges[:4]])


def _expression(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise BadFilter(f"a filter is a text, not {shown(text)}", text=shown(text))
    if len(text) > LONGEST or len(text.encode(errors="replace")) > LONGEST:
        raise BadFilter(f"the filter is longer than {LONGEST} bytes; split it into several", text=text)
    if not text.strip():
        raise BadFilter("the filter is empty; True matches every event", text=text)
    try:
        with ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python only warns of, as in '\d' or 5and, is an error here
            # In brackets of their own, lines may break anywhere, and indentation means nothing.
            body = ast.parse(f"(\n{text}\n)", mode="eval").body
    except SyntaxError as error:
        raise _syntax_error(text, error) from None
    except (RecursionError, MemoryError):
        raise _too_deep(text) from None
    except UnicodeError:
        raise BadFilter("the filter is not valid Unicode", text=text) from None
    except (ValueError, Warning) as error:  # a NUL, a doubtful escape
        raise BadFilter(f"the filter cannot be read: {error}", text=text) from None
    if isinstance(body, ast.Tuple | ast.GeneratorExp):  # these begin with our bracket, too
        raise BadFilter("a filter is one condition: join several by 'and' or 'or', not by ','", text=text)
    if body.lineno == 1:  # what was read begins with our bracket: the text has closed it
        raise BadFilter("syntax error: a ')' closes nothing", text=text)
    return body


def _too_deep(text: str) -> BadFilter:
    return BadFilter(f"the filter is nested deeper than {DEEPEST} levels", text=text)


def _syntax_error(text: str, error: SyntaxError) -> BadFilter:
    """Python's complaint, with its place in the text instead of the bracketed one."""
    message = re.sub(r" on line \d+$| \(detected at line \d+\)$", "", error.msg or "invalid syntax")
    if message.startswith("Exceeds the limit"):
        message = "a number has too many digits"
    starts = _line_starts(text)
    if error.lineno is None:
        column = None
    elif error.lineno == 1:  # our own bracket, since another one took our closing one
        message, column = "a '(' is never closed", len(text) + 1
    elif error.lineno - 2 >= len(starts):  # our closing bracket
        column = len(text.rstrip()) + 1
        unclosed = re.search(r"opening parenthesis ('.')", message)
        if unclosed:
            message = f"a {unclosed[1]} is never closed"
        elif message.startswith("unmatched"):
            message = "a ')' closes nothing"
        else:
            message = "the filter ends too early"
    else:
        column = min(starts[error.lineno - 2] + max(error.offset or 1, 1), len(text) + 1)
    return BadFilter(f"syntax error: {message}", text=text, column=column)


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]


class _Reader:
    """Reads one filter: turns each node of its syntax tree into a region."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.algebra = Algebra(schema)
        self._text = text
        self._schema = schema

    def region(self, node: ast.expr, positive: bool, depth: int) -> Region:
        """What the node means, or if not `positive` its negation."""
        if depth > DEEPEST:
            raise _too_deep(self._text)
        if isinstance(node, ast.Compare):
            return self._chain(node, positive)
        if isinstance(node, ast.BoolOp):
            parts = [self.region(value, positive, depth + 1) for value in node.values]
            return self._joined(parts, isinstance(node.op, ast.And) == positive)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.region(node.operand, not positive, depth + 1)
        if isinstance(node, ast.Name):
            position = self._position(node)
            attribute = self._schema.attributes[position]
            if attribute.kind != "bool":
                raise self._bad(node, f"{attribute.name} alone is no condition: {self._is(attribute)}")
            return [{position: compare(attribute, ast.Eq, int(positive))}]
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return EVERYTHING if node.value == positive else NOTHING
        right = "compare attributes with constants, and join by and, or, not"
        raise self._bad(node, f"{self._source(node)} is no condition: {right}")

    def _joined(self, parts: list[Region], all_of: bool) -> Region:
        return self.algebra.all_of(parts) if all_of else self.algebra.any_of(parts)

    def _chain(self, node: ast.Compare, positive: bool) -> Region:
        """`a < 5`, `5 > a`, `1 <= a < 5`: each operator stands between an attribute and a constant."""
        terms = [node.left, *node.comparators]
        parts = [
            self._comparison(left, type(operator), right, positive)
            for left, operator, right in zip(terms, node.ops, terms[1:], strict=False)
        ]
        return parts[0] if len(parts) == 1 else self._joined(parts, positive)

    def _comparison(
        self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr, positive: bool
    ) -> Region:
        if isinstance(left, ast.Name):
            name, other = left, right
        elif isinstance(right, ast.Name) and operator not in MEMBERSHIP:
            name, other, operator = right, left, MIRRORED.get(operator, operator)
        else:
            raise self._no_attribute(left, operator, right)
        position = self._position(name)
        attribute = self._schema.attributes[position]
        if operator in MEMBERSHIP:
            cuts = self._members(attribute, other)
            positive = positive == (operator is ast.In)
        elif operator in MIRRORED:
            cuts = compare(attribute, operator, self._point(attribute, operator, other))
        else:
            raise self._bad(name, "filters know no identity: write == for is, and != for is not")
        if not positive:
            cuts = complement(attribute, cuts)
        if not cuts:
            return NOTHING
        return EVERYTHING if cuts == whole(attribute) else [{position: cuts}]

    def _position(self, node: ast.Name) -> int:
        position = self._schema.positions.get(node.id)
        if position is None:
            hint = nearest_of(node.id, (*self._schema.names, "True", "False"))
            raise self._bad(node, f"there is no attribute {shown(node.id)}{hint}")
        return position

    def _members(self, attribute: Attribute, node: ast.expr) -> Cuts:
        if not isinstance(node, ast.Tuple | ast.List | ast.Set):
            what = f"{attribute.name} in wants a list of constants in brackets"
            raise self._bad(node, f"{what}, not {self._source(node)}")
        points = [self._point(attribute, ast.Eq, value) for value in node.elts]
        return union([compare(attribute, ast.Eq, point) for point in points])

    def _point(self, attribute: Attribute, operator: type[ast.cmpop], node: ast.expr) -> Any:
        """A constant on the attribute's line; it may lie beyond the ends, or between two values."""
        value = self._constant(attribute, node)
        kind = attribute.kind
        if kind in ("int", "float") and (type(value) is int or type(value) is float):
            return value
        if kind == "bool" and isinstance(value, bool):
            return int(value)
        if kind not in ("enum", "string") or not isinstance(value, str):
            raise self._bad(node, f"{self._is(attribute)}, not with {shown(value)}")
        if kind == "enum":
            if value not in attribute.places:
                hint = f"{listed(attribute.values)}{nearest_of(value, attribute.values)}"
                raise self._bad(node, f"{shown(value)} is no value of {attribute.name}, which has {hint}")
            return attribute.places[value]
        if "\0" in value or not is_unicode(value):
            raise self._bad(node, f"{shown(value)} has a character that no filter can have")
        if not attribute.prefix and operator not in (ast.Eq, ast.NotEq):
            order = "a string has an order only with prefix = true in the schema"
            raise self._bad(node, f"{attribute.name} can be compared by ==, != and in: {order}")
        return value

    def _constant(self, attribute: Attribute, node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(node.op, ast.USub | ast.UAdd) and (type(value) is int or type(value) is float):
                return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.Name):
            if attribute.kind in ("enum", "string") and node.id not in self._schema:
                quoted = f'a text stands in quotes: "{node.id[:40]}"'
                raise self._bad(node, f"there is no attribute {shown(node.id)}; {quoted}")
            other = self._schema.attributes[self._position(node)]
            both = f"{attribute.name} and {other.name} are both attributes"
            raise self._bad(node, f"{both}; compare each with constants")
        raise self._bad(node, f"{self._source(node)} is not a constant; {self._is(attribute)}")

    def _no_attribute(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr) -> BadFilter:
        for side in (left, right):
            constant = side.operand if isinstance(side, ast.UnaryOp) else side
            if not isinstance(constant, ast.Constant | ast.Tuple | ast.List | ast.Set | ast.Name):
                return self._bad(side, f"{self._source(side)} is neither an attribute nor a constant")
        right_way = "in wants an attribute on its left" if operator in MEMBERSHIP else "compare one with it"
        return self._bad(left, f"{self._source(left)} is no attribute; {right_way}")

    def _is(self, attribute: Attribute) -> str:
        return f"{attribute.name} is {attribute.range_text}; compare it with {WANTED[attribute.kind]}"

    def _source(self, node: ast.expr) -> str:
        """The node's text, shortened."""
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        source = " ".join(self._text[start:end].split())
        return source if len(source) <= 40 else f"{source[:39]}…"

    def _offset(self, line: int, byte: int) -> int:
        """Where a place stands in the text that `ast` names by line and UTF-8 byte; ours begins on line 2."""
        start = _line_starts(self._text)[line - 2]
        return start + len(self._text[start:].encode()[:byte].decode(errors="ignore"))

    def _bad(self, node: ast.expr, message: str) -> BadFilter:
        return BadFilter(message, text=self._text, column=self._offset(node.lineno, node.col_offset) + 1)
