"""How many tasks Spark has done, while it works."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TellTasks = Callable[[int, int], None]  # tasks done, of so many that are known
PERIOD = 0.3  # seconds


def watched(spark: SparkSession, tell: TellTasks) -> AbstractContextManager[None]:
    """Tell, while the block runs, how many tasks of the stages under way are done."""
    from pyspark.sql.utils import is_remote

    return _remote(spark, tell) if is_remote() else _local(spark, tell)


@contextmanager
def _remote(spark: Any, tell: TellTasks) -> Iterator[None]:
    def hear(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        tell(sum(stage.num_completed_tasks for stage in stages), sum(stage.num_tasks for stage in stages))

    spark.registerProgressHandler(hear)
    try:
        yield
    finally:
        spark.removeProgressHandler(hear)


@contextmanager
def _local(spark: SparkSession, tell: TellTasks) -> Iterator[None]:
    tracker = spark.sparkContext.statusTracker()  # a session that is not remote has a context
    over = threading.Event()

    def look() -> None:
        while not over.wait(PERIOD):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [stage for stage in stages if stage is not None]
            if known:
                tell(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
