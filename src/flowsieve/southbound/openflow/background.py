"""An asyncio loop in a thread of its own, for callers that wait in theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from flowsieve.errors import SwitchError, TaskDied

T = TypeVar("T")


class Background:
    """Runs `main` from `start` to `stop`, and beside it what is submitted; all of it is cancelled in the end.

    `main` calls what it is given once it is ready for more.
    """

    def __init__(self, main: Callable[[Callable[[], None]], Awaitable[None]], name: str) -> None:
        self._main = main
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._failure: BaseException | None = None  # what `main` ended of, if it did

    def start(self) -> None:
        """Return when `main` is ready, or raise why it cannot be."""
        self._thread.start()
        self._started.wait()
        self._check()

    def stop(self) -> None:
        if self.running:
            assert self._loop is not None and self._end is not None
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    @property
    def running(self) -> bool:
        return self._started.is_set() and self._thread.is_alive()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin with something, after all that was submitted before."""
        if not self.running:
            work.close()
            self._check()
            raise SwitchError("the connections to the switches are closed")
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something and wait for what comes out."""
        try:
            return self.submit(work).result()
        except CancelledError:
            self._check()
            raise SwitchError("the connections to the switches were closed meanwhile") from None

    def _check(self) -> None:
        """Raise what `main` ended of, if it did."""
        if isinstance(self._failure, OSError | SwitchError):
            raise SwitchError(f"no connections to switches: {self._failure}")
        if self._failure is not None:
            raise TaskDied(self._thread.name, self._failure)

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            try:
                runner.run(self._work())
            except BaseException as error:  # it is raised where somebody calls
                self._failure = error
            finally:
                self._started.set()  # also where it failed: nobody should wait for it

    async def _work(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        main = asyncio.ensure_future(self._main(self._started.set))
        ended = asyncio.ensure_future(self._end.wait())
        done, _ = await asyncio.wait({main, ended}, return_when=asyncio.FIRST_COMPLETED)
        if main in done:
            main.result()
