"""Subscriptions as server-sent events: one event for each epoch that changes the view.

id: 7
event: changes
data: {"epoch": 7, "changes": [
data: {"_epoch": 7, "_op": "+", "shop": "north", "euros": 10, "_old": null}
data: ]}

An event counts only when its empty line is there, so an epoch is delivered whole or not at all, and its id says which
one was the last. A client that comes again with Last-Event-ID goes on right after it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pyarrow as pa
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from headwater.errors import HeadwaterError, UserError
from headwater.http.backend import Backend
from headwater.http.failures import as_error, error_json
from headwater.http.limits import Limits
from headwater.serve.changes import Changes
from headwater.serve.lines import jsonl_lines
from headwater.serve.wire import CLOSED

T = TypeVar("T")
#: So many bytes of an event are sent at a time.
_PIECE_BYTES = 64 << 10
#: The last of these is for proxies, some of which hold answers back until they are complete.
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
]


class Followers:
    """The subscriptions of a server, a thread for each."""

    def __init__(self, backend: Backend, limits: Limits) -> None:
        self._backend = backend
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.subscriptions, "headwater-follower")
        self._places = limits.subscriptions
        self._open: set[Changes] = set()
        self._stopping = False

    @property
    def count(self) -> int:
        """How many there are."""
        return self._limits.subscriptions - self._places

    async def follow(self, view: str, from_epoch: int | None) -> Stream:
        """Begin a subscription.

        Raises:
            HeadwaterError: HW488, there are as many as there may be; or why the view cannot be followed so.
        """
        if self._stopping:
            raise UserError(CLOSED, "the server is being stopped", hint="try again")
        if not self._places:
            raise UserError("HW488", f"{self.count} subscriptions are open, as many as there may be", hint="try again")
        self._places -= 1
        try:
            changes = await self.run(
                lambda: self._backend.call(
                    lambda warehouse: warehouse.subscribe(view, from_epoch, buffer_rows=self._limits.buffer_rows),
                    again=True,
                )
            )
        except BaseException:
            self._places += 1
            raise
        self._open.add(changes)
        return Stream(self, changes, self._limits)

    async def run(self, work: Callable[[], T]) -> T:
        """Do something in a thread of the followers."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def leave(self, changes: Changes) -> None:
        """Give a subscription up; a thread that waits for its changes is told."""
        if changes in self._open:
            self._open.discard(changes)
            self._places += 1
        changes.close()

    @property
    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        """End all subscriptions."""
        self._stopping = True
        for changes in list(self._open):
            changes.close()

    def close(self) -> None:
        """Wait for the threads."""
        self._threads.shutdown(wait=True)


class Stream:
    """One subscription as an answer that goes on."""

    def __init__(self, followers: Followers, changes: Changes, limits: Limits) -> None:
        self._followers = followers
        self._changes = changes
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client leaves, takes nothing any longer, or the server stops."""
        if scope["method"] == "HEAD":
            self._followers.leave(self._changes)
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body", "body": b""})
            return
        telling = asyncio.create_task(self._tell(send))
        leaving = asyncio.create_task(_left(Request(scope, receive)))
        try:
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._followers.leave(self._changes)
            for task in (telling, leaving):
                task.cancel()
            await asyncio.gather(telling, leaving, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        try:
            await _piece(send, b"retry: 1000\n\n")
            while True:
                table = await self._followers.run(lambda: self._changes.poll(self._limits.heartbeat_seconds))
                if table is not None:
                    # Made in the thread, too: a large epoch must not keep others from being answered.
                    pieces = event_pieces(table, self._changes.epoch)
                    while piece := await self._followers.run(partial(next, pieces, b"")):
                        await _piece(send, piece)
                elif self._followers.stopping:
                    break
                else:
                    await _piece(send, f": nothing new\nid: {self._changes.epoch}\n\n".encode())
        except Exception as error:
            await _piece(send, _error_event(as_error(error)))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _piece(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def event_pieces(table: pa.Table, epoch: int) -> Iterator[bytes]:
    """The changes of an epoch as one event, piece by piece."""
    held = bytearray(f'id: {epoch}\nevent: changes\ndata: {{"epoch": {epoch}, "changes": [\n'.encode())
    lines = jsonl_lines(table)
    last = next(lines)
    for line in lines:
        held += f"data: {last},\n".encode("utf-8", "replace")
        last = line
        if len(held) > _PIECE_BYTES:
            yield bytes(held)
            held.clear()
    held += f"data: {last}\ndata: ]}}\n\n".encode("utf-8", "replace")
    yield bytes(held)


def _error_event(error: HeadwaterError) -> bytes:
    return f"event: error\ndata: {error_json(error)}\n\n".encode("utf-8", "replace")


async def _left(request: Request) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        while (await request.receive())["type"] != "http.disconnect":
            pass
