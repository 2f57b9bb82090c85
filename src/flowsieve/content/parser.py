"""From a filter's text to its boxes. The text is parsed as a Python expression and never evaluated."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any, NoReturn

from flowsieve.content.box import Box
from flowsieve.content.cuts import Cuts, compare, complement, union, whole
from flowsieve.content.region import LARGEST, Algebra, Region, TooComplex
from flowsieve.content.schema import Attribute, Schema, is_unicode, listed, nearest_of, shown
from flowsieve.errors import BadFilter

LONGEST = 64 * 1024  # bytes of text
DEEPEST = 100  # operators inside one another

SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}
EVERYTHING: Region = [{}]
NOTHING: Region = []


def parse_boxes(text: str, schema: Schema) -> tuple[Box, ...]:
    """The boxes that a filter's text means; never none.

    The work is bounded whatever the text: its length, its depth, the number of boxes at any time and the steps
    taken all have limits, beyond which the filter is refused.
    """
    reader = _Reader(text, schema)
    try:
        boxes = reader.algebra.boxes(reader.region(_expression(text), True, 1))
    except TooComplex:
        raise BadFilter(
            f"the filter is too complex: it makes more than {LARGEST} boxes, or takes too long to work out; "
            "split it into several",
            text=text,
        ) from None
    if not boxes:
        raise BadFilter("the filter can match nothing", text=text)
    return boxes


def _expression(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise BadFilter(f"a filter is a text, not {shown(text)}", text=str(shown(text)))
    if len(text) > LONGEST or (not text.isascii() and is_unicode(text) and len(text.encode()) > LONGEST):
        raise BadFilter(f"the filter is longer than {LONGEST} bytes; split it into several", text=text)
    if not text.strip():
        raise BadFilter("the filter is empty; True matches every event", text=text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what Python only warns of, as in '\d' or 5and, is an error here
            # In brackets of their own, lines may break anywhere, and indentation means nothing.
            body = ast.parse(f"(\n{text}\n)", mode="eval").body
    except SyntaxError as error:
        raise _syntax_error(text, error) from None
    except (RecursionError, MemoryError):
        raise BadFilter(f"the filter is nested deeper than {DEEPEST} levels", text=text) from None
    except (ValueError, Warning) as error:  # a NUL, half a surrogate pair, a doubtful escape
        raise BadFilter(f"the filter cannot be read: {error}", text=text) from None
    if body.lineno == 1:  # what was read begins with our bracket, so that the text closed it
        raise BadFilter("a ')' closes nothing, or a ',' makes a tuple of it", text=text)
    return body


def _syntax_error(text: str, error: SyntaxError) -> BadFilter:
    """Python's complaint, with its place in the text instead of the bracketed one."""
    message = (error.msg or "invalid syntax").split(" (<unknown>")[0]
    if error.lineno is None:
        return BadFilter(f"syntax error: {message}", text=text)
    if error.lineno == 1:  # our own bracket, since another one took our closing one
        return BadFilter("syntax error: a '(' is never closed", text=text, column=len(text) + 1)
    starts = _line_starts(text)
    if error.lineno - 2 >= len(starts):
        column = len(text.rstrip()) + 1
        message = "the filter ends too early" if message.startswith("invalid syntax") else message
    else:
        column = min(starts[error.lineno - 2] + max(error.offset or 1, 1), len(text) + 1)
    message = re.sub(r" on line \d+$", "", message)
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
            self._fail(node, f"the filter is nested deeper than {DEEPEST} levels")
        if isinstance(node, ast.Compare):
            return self._comparison(node, positive)
        if isinstance(node, ast.BoolOp):
            parts = [self.region(value, positive, depth + 1) for value in node.values]
            return self._joined(parts, isinstance(node.op, ast.And) == positive)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.region(node.operand, not positive, depth + 1)
        if isinstance(node, ast.Name):
            position = self._position(node)
            attribute = self._schema.attributes[position]
            if attribute.kind != "bool":
                self._fail(node, f"{attribute.name} alone is no condition: it is {attribute.range_text}; compare it")
            return [{position: compare(attribute, ast.Eq, int(positive))}]
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return EVERYTHING if node.value == positive else NOTHING
        self._fail(
            node,
            f"{self._source(node)} is no condition: use comparisons of attributes with constants, and, or, not, in, True",
        )

    def _joined(self, parts: list[Region], all_of: bool) -> Region:
        return self.algebra.all_of(parts) if all_of else self.algebra.any_of(parts)

    def _comparison(self, node: ast.Compare, positive: bool) -> Region:
        """`a < 5`, `5 > a`, and chains of them: each operator stands between an attribute and a constant."""
        parts: list[Region] = []
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            parts.append(self._pair(left, type(operator), right, positive))
            left = right
        return parts[0] if len(parts) == 1 else self._joined(parts, positive)

    def _pair(self, left: ast.expr, operator: type[ast.cmpop], right: ast.expr, positive: bool) -> Region:
        if isinstance(left, ast.Name):
            position = self._position(left)
            name, other = left, right
        elif isinstance(right, ast.Name):
            position = self._position(right)
            name, other = right, left
            if operator in (ast.In, ast.NotIn):
                self._fail(right, f"in wants a list of constants, such as {right.id} in (1, 2)")
            operator = MIRRORED.get(operator, operator)
        else:
            for side in (left, right):
                if not self._is_constant(side):
                    self._fail(side, f"{self._source(side)} is neither an attribute nor a constant")
            self._fail(left, f"{self._source(left)} and {self._source(right)} are compared, and neither is an attribute")
        attribute = self._schema.attributes[position]
        if isinstance(other, ast.Name):
            self._two_names(attribute, other)
        if operator in (ast.In, ast.NotIn):
            cuts = self._members(attribute, other)
            positive = positive == (operator is ast.In)
        elif operator in MIRRORED:
            cuts = compare(attribute, operator, self._point(attribute, operator, other))
        else:
            self._fail(name, "is and is not compare identities; use == and !=")
        if not positive:
            cuts = complement(attribute, cuts)
        if not cuts:
            return NOTHING
        return EVERYTHING if cuts == whole(attribute) else [{position: cuts}]

    def _members(self, attribute: Attribute, node: ast.expr) -> Cuts:
        if not isinstance(node, ast.Tuple | ast.List | ast.Set):
            self._fail(node, f"in wants a list of constants, such as {attribute.name} in (…, …), not {self._source(node)}")
        if not node.elts:
            return ()
        return union([compare(attribute, ast.Eq, self._point(attribute, ast.Eq, value)) for value in node.elts])

    def _position(self, node: ast.Name) -> int:
        position = self._schema.positions.get(node.id)
        if position is None:
            hint = nearest_of(node.id, (*self._schema.names, "True", "False"))
            self._fail(node, f"there is no attribute {shown(node.id)}{hint}")
        return position

    def _two_names(self, attribute: Attribute, other: ast.Name) -> NoReturn:
        if other.id in self._schema.positions:
            self._fail(other, f"{attribute.name} and {other.id} are both attributes; compare each with constants")
        if attribute.kind in ("enum", "string"):
            self._fail(other, f'there is no attribute {shown(other.id)}; a text stands in quotes: "{other.id[:40]}"')
        self._position(other)
        raise AssertionError("unreachable")

    def _point(self, attribute: Attribute, operator: type[ast.cmpop], node: ast.expr) -> Any:
        """The constant on the attribute's line."""
        value = self._constant(node)
        kind = attribute.kind
        if kind in ("int", "float"):
            if type(value) is int or type(value) is float:
                return value
        elif kind == "enum":
            if isinstance(value, str):
                if value in attribute.places:
                    return attribute.places[value]
                hint = nearest_of(value, attribute.values)
                self._fail(node, f"{shown(value)} is none of the values of {attribute.name}: {listed(attribute.values)}{hint}")
        elif kind == "bool":
            if isinstance(value, bool):
                return int(value)
        elif isinstance(value, str):
            if "\0" in value or not is_unicode(value):
                self._fail(node, f"{shown(value)} has a character that filters cannot have")
            if not attribute.prefix and operator not in (ast.Eq, ast.NotEq):
                self._fail(
                    node,
                    f"{attribute.name} is a string without order: {SIGNS[operator]} needs prefix = true in the schema",
                )
            return value
        wanted = {"int": "a number", "float": "a number", "bool": "True or False"}.get(kind, "a text in quotes")
        self._fail(node, f"{attribute.name} is {attribute.range_text}: compare it with {wanted}, not with {shown(value)}")

    def _constant(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if type(value) is int or type(value) is float:
                if isinstance(node.op, ast.USub):
                    return -value
                if isinstance(node.op, ast.UAdd):
                    return value
        self._fail(node, f"{self._source(node)} is not a constant")

    def _is_constant(self, node: ast.expr) -> bool:
        while isinstance(node, ast.UnaryOp):
            node = node.operand
        return isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Set)

    def _source(self, node: ast.expr) -> str:
        """The node's text, shortened."""
        start, end = self._offset(node.lineno, node.col_offset), len(self._text)
        if node.end_lineno is not None and node.end_col_offset is not None:
            end = self._offset(node.end_lineno, node.end_col_offset)
        source = " ".join(self._text[start:end].split())
        return source if len(source) <= 40 else f"{source[:39]}…"

    def _offset(self, line: int, byte: int) -> int:
        """Where a place that `ast` names by line and UTF-8 byte stands in the text; ours begins on line 2."""
        start = _line_starts(self._text)[line - 2]
        return start + len(self._text[start:].encode()[:byte].decode(errors="ignore"))

    def _fail(self, node: ast.expr, message: str) -> NoReturn:
        raise BadFilter(message, text=self._text, column=self._offset(node.lineno, node.col_offset) + 1)
