"""Many threads, one writer: small inserts are grouped into one epoch.

A thread puts its request into a bounded queue and then takes the engine's lock. Whoever gets the lock serves the queue,
the others find their request done when their turn comes. While an epoch commits, the next ones gather, so that the
group grows with the load by itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from headwater.engine.engine import Engine, Epoch
from headwater.engine.operations import InsertRows, Operation, size
from headwater.errors import HeadwaterError, UserError

#: Rows that may wait; a writer that comes on top of them waits itself.
QUEUE_ROWS = 1_000_000
QUEUE_REQUESTS = 10_000
#: Rows that are grouped into one epoch at most, unless a single request has more.
GROUP_ROWS = 100_000


class Request:
    """One thread's operations, and what became of them."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.rows = sum(size(one) for one in operations)
        self.epoch: Epoch | None = None
        self.error: BaseException | None = None

    @property
    def done(self) -> bool:
        return self.epoch is not None or self.error is not None

    @property
    def groupable(self) -> bool:
        """Inserts commute with each other; anything else is an epoch of its own."""
        return all(isinstance(one, InsertRows) for one in self.operations)


class Writer:
    """The queue in front of an engine."""

    def __init__(self, engine: Engine, queue_rows: int = QUEUE_ROWS, queue_requests: int = QUEUE_REQUESTS) -> None:
        self._engine = engine
        self._limit = queue_rows
        self._most = queue_requests
        self._queue: deque[Request] = deque()
        self._waiting_rows = 0
        self._room = threading.Condition()
        self._closed = False

    @property
    def waiting(self) -> tuple[int, int]:
        """Requests and rows in the queue."""
        with self._room:
            return len(self._queue), self._waiting_rows

    def submit(self, operations: Sequence[Operation]) -> Epoch:
        """Apply operations as a part of one epoch; returns when it is committed.

        An observer of an epoch may call this too: it holds the engine's lock and cannot queue up, so it is served at
        once.
        """
        if self._engine.telling == threading.get_ident():
            return self._engine.run(operations)
        request = Request(operations)
        with self._room:
            while self._queue and (self._waiting_rows + request.rows > self._limit or len(self._queue) >= self._most):
                self._room.wait()
            self._refuse_when_closed()
            self._queue.append(request)
            self._waiting_rows += request.rows
        try:
            with self._engine.lock:
                while not request.done:
                    self._serve(self._take())
        except BaseException:  # interrupted: nobody waits for it any more
            self._withdraw(request)
            raise
        if request.error is not None:
            raise request.error
        assert request.epoch is not None
        return request.epoch

    def close(self) -> None:
        """Refuse new work; what waits is still served by the threads that wait for it."""
        with self._room:
            self._closed = True
            self._room.notify_all()

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise UserError("HW408", "the warehouse is closed", hint="connect again")

    def _take(self) -> list[Request]:
        """The next request, and those behind it that can share its epoch."""
        with self._room:
            group = [self._queue.popleft()]
            rows = group[0].rows
            while group[0].groupable and self._queue and self._queue[0].groupable:
                rows += self._queue[0].rows
                if rows > GROUP_ROWS:
                    break
                group.append(self._queue.popleft())
            self._waiting_rows -= sum(one.rows for one in group)
            self._room.notify_all()
        return group

    def _withdraw(self, request: Request) -> None:
        with self._room:
            if request in self._queue:
                self._queue.remove(request)
                self._waiting_rows -= request.rows
                self._room.notify_all()

    def _put_back(self, group: list[Request]) -> None:
        with self._room:
            self._queue.extendleft(reversed(group))
            self._waiting_rows += sum(one.rows for one in group)

    def _serve(self, group: list[Request]) -> None:
        before = self._engine.epoch
        try:
            epoch = self._engine.run([operation for one in group for operation in one.operations])
        except HeadwaterError as error:
            if len(group) == 1:
                group[0].error = error
            else:  # one of them is at fault: each alone, so that only that one fails
                for one in group:
                    self._serve([one])
            return
        except BaseException:
            # Whoever serves was interrupted. What the others gave is done, or must be served by one of them.
            if self._engine.epoch == before:
                self._put_back(group)
            else:
                done = Epoch(self._engine.epoch, self._engine.clock(), {}, {})
                for one in group:
                    one.epoch = done
            raise
        for one in group:
            one.epoch = epoch
