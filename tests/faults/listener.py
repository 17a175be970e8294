"""A subscriber in another process than the one that is killed: it goes on with whoever comes next."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import headwater as hw
from headwater.serve.remote import RemoteDatabase
from tests.equivalence.bags import Bag
from tests.equivalence.followers import Follower, changes_of

#: The other process is not there, has left, or has not made the view yet.
_NOBODY = ("HW450", "HW453", "HW408", "HW102")
_FAR = 1 << 60


class Listener:
    """Follows a view that keeps its changes through the socket of its warehouse, until it is told to stop.

    Attributes:
        epoch: the last epoch that was delivered whole; all that a program has to remember.
        breaks: how often the other process ended under it.
        epochs: those of which it was told something, in that order.
    """

    def __init__(self, folder: Path, view: str, key: tuple[int, ...] | None) -> None:
        self.epoch = -1
        self.breaks = 0
        self.epochs: list[int] = []
        self.error: BaseException | None = None
        self._follower = Follower(key)
        self._folder, self._view = folder, view
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @property
    def held(self) -> Bag:
        return Counter(self._follower.held)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def catch_up(self, db: hw.Database) -> None:
        """Take in the rest from the process that has the warehouse open."""
        with db.subscribe(self._view, self.epoch + 1, timeout=0) as changes:
            for table in changes.tables():
                self._follow(table["_epoch"][0].as_py(), table)
            self.epoch = changes.epoch

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self._listen()
                time.sleep(0.005)
        except BaseException as error:
            self.error = error

    def _listen(self) -> None:
        met = False
        try:
            with RemoteDatabase(self._folder) as db, db.subscribe(self._view, self.epoch + 1) as changes:
                met = True
                while not self._stop.is_set():
                    table = changes.poll(0.2)
                    if table is not None:
                        self._follow(changes.epoch, table)
                    self.epoch = changes.epoch
        except hw.UserError as error:
            if error.code not in _NOBODY:
                raise
            self.breaks += met

    def _follow(self, epoch: int, table: object) -> None:
        self._follower.follow(changes_of(table), _FAR)
        self.epochs.append(epoch)
