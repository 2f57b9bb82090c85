"""A tag on the Spark jobs of several threads, by which all of them can be cancelled at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.utils import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class JobTag:
    """A tag of our own; `known` are the tags of the thread that made it, which other threads do not inherit."""

    spark: SparkSession
    word: str
    known: frozenset[str]

    @classmethod
    def of(cls, spark: SparkSession) -> JobTag:
        return cls(spark, f"flowsieve-{uuid4().hex}", frozenset(spark.getTags()))

    def put(self) -> None:
        """Tag all jobs that this thread starts from now on."""
        for word in self.known:
            self.spark.addTag(word)
        if is_remote():
            self.spark.addTag(self.word)
        else:  # a session's tags belong to one thread, and no other can cancel by them
            self.spark.sparkContext.addJobTag(self.word)

    def end(self) -> None:
        """Cancel the running jobs that have the tag."""
        if is_remote():
            self.spark.interruptTag(self.word)
        else:
            self.spark.sparkContext.cancelJobsWithTag(self.word)
