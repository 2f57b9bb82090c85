"""Every key of a TOML file is found on its line, whatever strings, comments and brackets stand before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsieve.config.toml import Lines, TomlKey

TEXT = '''\
# a comment [
a = 1
"q.x" = """
multi "" [
"""
b.c = { d = 1, e = [1, 2] } # ]
raw = \'\'\'
[[step]]
\'\'\'
[t]
links = [
  # hi ]
  ["a", "]"], ["b",
  "c"],

  ["d", "e"],
]
s = 'C:\\' # "
[[step]]
k = "a\\"b # no comment"
[step.sub]
z = ""
[[step]]
k = [
  { x = 1 },
  { x = 2 }]
[u]
[u.v]
w = 1979-05-27
'''


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("a",), 2),
        (("q.x",), 3),
        (("b",), 6),
        (("b", "c", "e"), 6),
        (("raw",), 7),
        (("t",), 10),
        (("t", "links"), 11),
        (("t", "links", 0), 13),
        (("t", "links", 1), 13),
        (("t", "links", 2), 16),
        (("t", "s"), 18),
        (("step", 0), 19),
        (("step", 0, "k"), 20),
        (("step", 0, "sub", "z"), 22),
        (("step", 1, "k"), 24),
        (("step", 1, "k", 1), 26),
        (("u", "v", "w"), 29),
    ],
)
def test_a_key_is_found_on_its_line(keys: tuple[TomlKey, ...], line: int, ends: str) -> None:
    assert Lines(Path("f.toml"), TEXT.replace("\n", ends)).place(keys) == f"f.toml line {line}"


def test_a_key_that_is_not_there_is_placed_in_what_is_around_it() -> None:
    lines = Lines(Path("f.toml"), TEXT)
    assert lines.place(("step", 1, "nothing")) == "f.toml line 23"
    assert lines.place(("nothing",)) == "f.toml"
