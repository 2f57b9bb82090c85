"""What the commands of the pipeline share: a session to work in, progress, and reading with checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flowsieve.content.schema import Schema
from flowsieve.pipeline.runtime.spark_failure import failures, told
from flowsieve.pipeline.runtime.spark_session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flowsieve.pipeline.reading.ingest import IngestedEvents
    from flowsieve.pipeline.reading.subscriptions import Subscribed


Tell = Callable[[str, int, int], None]  # a name for what is done, how far it is, of how much


@dataclass(frozen=True)
class Work:
    """A session, who is told of its progress, and how files are read."""

    spark: SparkSession
    tell: Tell
    max_bad: float
    time_column: str | None

    @contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Show under a name how far Spark is with the work of the block, from its first moment."""
        from flowsieve.pipeline.runtime.progress import watched

        tasks = 1

        def hear(done: int, of: int) -> None:
            nonlocal tasks
            tasks = max(1, of)
            self.tell(what, done, tasks)

        self.tell(what, 0, tasks)
        with watched(self.spark, hear):
            yield
        self.tell(what, tasks, tasks)

    def subscriptions(self, path: Path, schema: Schema, hosts: Collection[str] | None = None) -> Subscribed:
        """The subscriptions in a file, found good enough; where `hosts` are given, each of one of them."""
        from flowsieve.pipeline.reading.subscriptions import read_subscriptions

        with self.watched("subscriptions"):
            subscribed = read_subscriptions(self.spark, path, schema, hosts)
        subscribed.checked(self.max_bad)
        return subscribed

    def events(
        self,
        path: Path,
        schema: Schema,
        adjusted: Callable[[IngestedEvents], IngestedEvents] = lambda ingested: ingested,
    ) -> IngestedEvents:
        """The events in a file, found good enough, also after what `adjusted` does to them."""
        from flowsieve.pipeline.reading.ingest import read_events

        ingested = adjusted(read_events(self.spark, path, schema, time=self.time_column))
        with self.watched("reading"):
            ingested.checked(self.max_bad)
        return ingested


@contextmanager
def working(
    progress: Callable[[], AbstractContextManager[Tell]],
    master: str | None,
    max_bad: float = 0.0,
    time_column: str | None = None,
) -> Iterator[Work]:
    """A session for the time of the block, its progress shown; an error of Spark becomes one of ours."""
    with progress() as bars:
        bars("Spark", 0, 1)
        spark = session(master)
        bars("Spark", 1, 1)
        try:
            yield Work(spark, bars, max_bad, time_column)
        except failures() as error:
            raise told(error) from None
