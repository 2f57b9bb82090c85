"""Where Spark is asked to run: names that are none, and addresses at which nobody answers."""

from __future__ import annotations

import socket

import pytest

from flowsieve.errors import BadInput, PipelineError
from flowsieve.pipeline.runtime.master import check_master


@pytest.mark.parametrize(
    "text", ["local", "local[*]", "local[4]", "local[2,3]", "yarn", "k8s://https://host:6443"]
)
def test_what_spark_takes_is_taken(text: str) -> None:
    check_master(text)


@pytest.mark.parametrize(
    "text",
    [
        "local[x]",
        "local[0]",
        "local[2,x]",
        "local[",
        "localhost",
        "spark://",
        "spark://host",
        "k8s://x",
        "sc://",
    ],
)
def test_what_is_no_master_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput, match=r"there is no master .*; right is local\[\*\]"):
        check_master(text)


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_an_address_where_nobody_answers_is_told_at_once(scheme: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and not listening: nobody else gets it
        text = f"{scheme}://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(PipelineError, match=f"nobody answers at {text}: Connection refused; start Spark"):
            check_master(text)


def test_one_of_several_masters_that_answers_is_enough() -> None:
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0)) as open_:
        closed.bind(("127.0.0.1", 0))
        check_master(f"spark://127.0.0.1:{closed.getsockname()[1]},127.0.0.1:{open_.getsockname()[1]}")
