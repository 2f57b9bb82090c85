"""A word on jobs that several threads start, by which all of them can be ended at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.utils import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class JobTag:
    """A word of our own; `known` are those of the thread that made it, which others do not have by themselves."""

    spark: SparkSession
    word: str
    known: frozenset[str]

    @classmethod
    def of(cls, spark: SparkSession) -> JobTag:
        return cls(spark, f"flowsieve-{uuid4().hex}", frozenset(spark.getTags()))

    def put(self) -> None:
        """Put it on all that this thread starts from now on."""
        for word in self.known:
            self.spark.addTag(word)
        if is_remote():
            self.spark.addTag(self.word)
        else:  # a tag of a session is one of the thread that put it, and no other can end what has it
            self.spark.sparkContext.addJobTag(self.word)

    def end(self) -> None:
        """End the jobs that have it and are under way."""
        if is_remote():
            self.spark.interruptTag(self.word)
        else:
            self.spark.sparkContext.cancelJobsWithTag(self.word)
