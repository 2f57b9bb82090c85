"""What the commands of the pipeline share: progress that is shown from the first moment on, to the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flowsieve.cli.view import progress
from flowsieve.errors import PipelineError
from flowsieve.pipeline.runtime.work import Work, working

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_bar_is_there_before_spark_has_begun_and_full_at_the_end(spark: SparkSession) -> None:
    told: list[tuple[str, int, int]] = []
    work = Work(spark, lambda *far: told.append(far), 0.0, None)
    with work.watched("counting"):
        assert told == [("counting", 0, 1)]
        assert spark.range(10).count() == 10
    name, done, of = told[-1]
    assert (name, done) == ("counting", of)
    with pytest.raises(KeyError), work.watched("failing"):
        raise KeyError
    assert told[-1][:2] == ("failing", 0)


def test_what_spark_complains_of_is_an_error_of_ours(spark: SparkSession) -> None:
    with (
        pytest.raises(PipelineError, match=r"Spark failed: .*no_such_column"),
        working(progress, None) as work,
    ):
        work.spark.range(3).select("no_such_column").collect()
