"""`python -m flowsieve.demo`: what a network carries that filters by content, and what it does not."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from flowsieve.cli import view
from flowsieve.config.files import make_folder, writing
from flowsieve.demo import acts, kernels
from flowsieve.demo.page import render
from flowsieve.demo.story import make_story
from flowsieve.demo.telling import Telling
from flowsieve.errors import BadInput


def main(arguments: Sequence[str] | None = None) -> int:
    """Tell the story: 0 if everything holds, 1 if something was lost or the proof fails, 2 for bad input."""
    options = _parser().parse_args(arguments)
    page = options.out / "index.html" if options.page else None
    try:
        if page is not None:
            make_folder(page.parent)
        if not kernels.are_compiled():
            view.err.print("compiling what the demo runs (once, half a minute) ...")
            kernels.compile_kernels()
        return 0 if tell(Telling(make_story()), page) else 1
    except BadInput as error:
        view.error(error)
        return 2


def tell(telling: Telling, page: Path | None) -> bool:
    """The acts in the terminal, then the page; whether everything holds."""
    start, out = time.perf_counter(), view.out
    acts.open_act(out, 1, "A network, and what is wanted from it")
    acts.network(out, telling)
    acts.open_act(out, 2, "What arrived")
    acts.arrivals(out, telling)
    acts.open_act(out, 3, "What the network did not carry")
    acts.savings(out, telling)
    acts.open_act(out, 4, "One reading, hop by hop")
    acts.journey(out, telling)
    acts.open_act(out, 5, "The tables, proved")
    acts.proof(out, telling)
    if page is not None:
        text = render(telling)
        with writing(page):
            page.write_text(text, encoding="utf-8")
    out.print()
    acts.last_word(out, page, time.perf_counter() - start)
    return telling.holds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flowsieve.demo",
        description="A sensor network on a fat-tree: what arrives, what the network did not carry, and why.",
        epilog="example: python -m flowsieve.demo --out out/demo",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/demo"),
        metavar="DIR",
        help="where to write index.html (default: %(default)s)",
    )
    parser.add_argument("--no-page", dest="page", action="store_false", help="write no page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
