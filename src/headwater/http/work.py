"""Requests at work: in threads, so many at a time, so long, and while somebody waits for the answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request

from headwater.errors import HeadwaterError, UserError
from headwater.http.limits import Limits
from headwater.serve.wire import CLOSED
from headwater.store.budget import TOO_LONG, Budget, spending, took_too_long

T = TypeVar("T")
#: How often work that was stopped is told so, until it has ended.
_TELL_SECONDS = 0.05
#: So long the answer waits for work that was stopped: it may wait for a lock, and hears of it only then.
_PATIENCE_SECONDS = 2.0


class GoneError(Exception):
    """Nobody waits for the answer any longer."""


class Work:
    """The threads of a server, and who may use them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.stopping = False
        # Apart from each other, so that nobody who reads waits behind those who wait for the writer.
        self._readers = ThreadPoolExecutor(limits.running, "headwater-http-read")
        self._writers = ThreadPoolExecutor(limits.running, "headwater-http-write")
        self._waiting = 0
        self._budgets: set[Budget] = set()

    @property
    def waiting(self) -> int:
        """Requests that are worked on or wait for it."""
        return self._waiting

    @contextlib.asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """A place among the requests that are dealt with.

        Raises:
            UserError: HW488, there is none; HW408, the server is being stopped.
        """
        if self.stopping:
            raise _stopping()
        if self._waiting >= self.limits.requests:
            raise UserError(
                "HW488", f"{self._waiting} requests are being dealt with, as many as there may be", hint="try again"
            )
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def read(self, request: Request, work: Callable[[], T]) -> T:
        """Do what only reads: it is stopped when its time is up, or nobody waits for it any longer.

        Raises:
            GoneError: the client has left.
            UserError: HW487, it took too long; HW486, the answer is too large.
        """
        limits = self.limits
        budget = Budget(limits.result_rows, limits.result_bytes, limits.seconds)
        self._budgets.add(budget)

        def limited() -> T:
            if budget.reason is not None:  # it was stopped while it waited for a thread
                raise budget.reason
            with spending(budget):
                return work()

        job = self._readers.submit(limited)
        future = asyncio.wrap_future(job)
        gone = asyncio.create_task(_gone(request))
        both: set[asyncio.Future[Any]] = {future, gone}
        try:
            await asyncio.wait(both, timeout=limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            left = gone.done()
            reason = _gone_error() if left else took_too_long(limits.seconds)
            if not job.cancel():
                await _stopped(future, budget, reason)
            if left:
                raise GoneError
            raise reason
        finally:
            gone.cancel()
            self._budgets.discard(budget)

    async def write(self, work: Callable[[], T]) -> T:
        """Do what changes something: it is finished, whoever waits for it. What it reads besides is stopped in time.

        Raises:
            UserError: HW487, it is not done when its time is up; HW486, an answer beside it is too large.
        """
        limits = self.limits
        budget = Budget(limits.result_rows, limits.result_bytes, limits.seconds)
        self._budgets.add(budget)

        def limited() -> T:
            with spending(budget):
                return work()

        job = self._writers.submit(limited)
        job.add_done_callback(lambda _: self._budgets.discard(budget))
        future = asyncio.wrap_future(job)
        done, _ = await asyncio.wait({future}, timeout=limits.seconds)
        if done:
            return future.result()
        if job.cancel():
            raise UserError(TOO_LONG, "the request waited too long for its turn", hint="nothing was done: try again")
        future.add_done_callback(_unheard)
        await _stopped(future, budget, took_too_long(limits.seconds))
        raise UserError(
            TOO_LONG,
            f"the request is not done after {self.limits.seconds:g} seconds, and goes on",
            hint="look later whether it was carried out",
        )

    async def stop(self, seconds: float) -> None:
        """Let what is under way end: reading for some seconds, writing as long as it takes."""
        self.stopping = True
        end = time.monotonic() + seconds
        while self._waiting and time.monotonic() < end:
            await asyncio.sleep(_TELL_SECONDS)
        for budget in list(self._budgets):
            budget.stop(_stopping())

    def close(self) -> None:
        """Wait for what is under way."""
        self._readers.shutdown(wait=True)
        self._writers.shutdown(wait=True)


async def _stopped(future: asyncio.Future[T], budget: Budget, reason: HeadwaterError) -> None:
    """Stop what is being read, and wait a moment until it has ended."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not future.done() and time.monotonic() < end:
        budget.stop(reason)
        await asyncio.wait({future}, timeout=_TELL_SECONDS)
    future.add_done_callback(_unheard)


def _unheard(ended: asyncio.Future[T]) -> None:
    """Nobody else asks how it ended, and asyncio complains of errors that nobody has looked at."""
    if not ended.cancelled():
        ended.exception()


def _stopping() -> HeadwaterError:
    return UserError(CLOSED, "the server is being stopped", hint="try again")


def _gone_error() -> HeadwaterError:
    return UserError(TOO_LONG, "nobody waits for the answer any longer", hint="ask again")


async def _gone(request: Request) -> None:
    """Returns when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
