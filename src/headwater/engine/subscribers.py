"""Who waits for changes of views, and the changes that are kept in memory for them.

A view that keeps its changes has them in a store, which its subscribers read whenever they like: they only want to be
woken. For subscribers of any other view the writer leaves here what an epoch has changed in it, up to a number of rows;
who does not fetch them in time has fallen behind. The writer never waits.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Collection, Mapping

import pyarrow as pa


class Feed:
    """One subscriber's place.

    Attributes:
        view: whose changes.
        room: how many rows are kept for it in memory; None if the changes are in a store.
        lost: changes that it has not fetched are gone.
        dropped: the view is gone.
        left: the subscriber is.
    """

    def __init__(self, view: str, room: int | None) -> None:
        self.view = view
        self.room = room
        self.lost = self.dropped = self.left = False
        self.waiting: deque[tuple[int, pa.Table]] = deque()
        self._rows = 0

    @property
    def over(self) -> bool:
        """Whether nothing comes any more."""
        return self.lost or self.dropped or self.left

    def put(self, epoch: int, change: pa.Table) -> None:
        assert self.room is not None
        if self.waiting and self._rows + change.num_rows > self.room:
            self.lose()
            return
        self.waiting.append((epoch, change))
        self._rows += change.num_rows

    def take(self) -> tuple[int, pa.Table] | None:
        if not self.waiting:
            return None
        epoch, change = self.waiting.popleft()
        self._rows -= change.num_rows
        return epoch, change

    def lose(self) -> None:
        self.lost = True
        self.waiting.clear()


class Hub:
    """All subscribers of a warehouse. Safe to use from any thread; whoever enters holds the engine's lock."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._owner = os.getpid()
        self._feeds: set[Feed] = set()
        self.epoch = 0
        self.closed = False
        #: Views whose changes the writer must leave here.
        self.wanted: frozenset[str] = frozenset()

    def enter(self, view: str, room: int | None) -> Feed:
        """A place for a subscriber, from the epoch after the last one on."""
        feed = Feed(view, room)
        with self._turn:
            self._feeds.add(feed)
            self._count()
        return feed

    def leave(self, feed: Feed) -> None:
        """Give a place up; whoever waits there is woken. In a process that was forked off there is nobody."""
        if os.getpid() != self._owner:
            return
        with self._turn:
            feed.left = True
            feed.waiting.clear()
            self._feeds.discard(feed)
            self._count()
            self._turn.notify_all()

    def publish(self, epoch: int, changes: Mapping[str, pa.Table]) -> None:
        """An epoch is committed: leave what it has changed in the views that are wanted, and wake everybody."""
        with self._turn:
            if epoch > self.epoch + 1:
                self._lose()
            self.epoch = epoch
            for feed in tuple(self._feeds):
                if feed.room is not None and not feed.over and feed.view in changes:
                    feed.put(epoch, changes[feed.view])
            self._count()
            self._turn.notify_all()

    def resume(self, epoch: int) -> None:
        """The warehouse was read again. An epoch that was never published is lost to those who wait here."""
        with self._turn:
            if epoch != self.epoch:
                self._lose()
                self.epoch = epoch
                self._count()
                self._turn.notify_all()

    def drop(self, views: Collection[str]) -> None:
        """Views are gone, and their changes with them."""
        with self._turn:
            for feed in tuple(self._feeds):
                feed.dropped |= feed.view in views
            self._count()
            self._turn.notify_all()

    def close(self) -> None:
        """The warehouse is being closed: nobody waits any longer."""
        with self._turn:
            self.closed = True
            self._turn.notify_all()

    def take(self, feed: Feed) -> tuple[int, pa.Table] | int:
        """The next change that waits at a place, with its epoch; if none does, the last epoch."""
        with self._turn:
            return feed.take() or self.epoch

    def wait(self, feed: Feed, epoch: int, seconds: float | None) -> bool:
        """Wait until there is an epoch after that one, or no more to come; whether that was so in time."""
        with self._turn:
            return self._turn.wait_for(lambda: self.closed or feed.over or self.epoch > epoch, seconds)

    def _lose(self) -> None:
        for feed in tuple(self._feeds):
            if feed.room is not None:
                feed.lose()

    def _count(self) -> None:
        self.wanted = frozenset(one.view for one in tuple(self._feeds) if one.room is not None and not one.over)
