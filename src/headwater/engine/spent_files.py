"""Files of what lies away that do not count: not yet, no longer, or never.

A file counts from the commit that lists it until one that lists it no more. What a transaction wrote that was undone is
removed at once; what counts no longer, after a while, as somebody may read it; what tasks left that died or were run
twice, when it is old, or when the warehouse is opened.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence, Set

from headwater.engine.parcels import RETURNED
from headwater.engine.segment_files import attempt_of
from headwater.engine.sending import SENDING
from headwater.errors import UserError
from headwater.store.storage import LOCAL, finish, remove_files, storage_of

#: Files that count no longer are removed after so many seconds: somebody may still read them.
GRACE_SECONDS = 60.0
#: What tasks leave that died, or were run twice, is looked for after so many seconds, and removed if it is as old.
SWEEP_SECONDS = 600.0
#: Below a folder of segments: what tasks are told of an epoch, and plans.
EPOCHS, PLANS = "epochs", "plans"


class SpentFiles:
    """Which files somebody needs, and who removes the others."""

    def __init__(self, folder: str) -> None:
        """Of which folder of segments."""
        self._folder = folder
        #: What the transaction under way writes, by attempts of tasks and of our own.
        self._attempts: list[str] = []
        #: What is being put together beside the epochs: attempts whose files are in no list yet.
        self.merging: set[str] = set()
        #: Files that count no longer, and since when.
        self.spent: list[tuple[float, str]] = []
        #: Files that somebody reads, and how many do.
        self._held: Counter[str] = Counter()
        #: Theirs: who reads must not wait for an epoch.
        self._holding = threading.Lock()
        self._swept = time.monotonic()

    def attempt(self) -> str:
        """A name that no other attempt has, for what the transaction under way writes."""
        self._attempts.append(uuid.uuid4().hex[:12])
        return self._attempts[-1]

    def hold(self, paths: Sequence[str]) -> None:
        """Somebody reads some files: they stay until these are released, whether they count or not."""
        with self._holding:
            self._held.update(paths)

    def release(self, paths: Sequence[str]) -> None:
        with self._holding:
            self._held -= Counter(paths)

    def committed(self, spent: Sequence[str], listed: Callable[[], Set[str]]) -> None:
        """A transaction is done: what it replaced may go after a while.

        Args:
            spent: what it replaced.
            listed: says what counts now.
        """
        self._attempts.clear()
        now = time.monotonic()
        self.spent += [(now, path) for path in spent]
        kept: list[tuple[float, str]] = []
        gone: list[str] = []
        with self._holding:
            for since, path in self.spent:
                if since < now - GRACE_SECONDS and path not in self._held:
                    gone.append(path)
                else:
                    kept.append((since, path))
            remove_files(gone)
        self.spent = kept
        if self._swept < now - SWEEP_SECONDS:
            with contextlib.suppress(UserError):
                self._sweep(listed(), time.time() - SWEEP_SECONDS)

    def undone(self, listed: Set[str] | None) -> None:
        """A transaction is undone: what it wrote counts nowhere.

        Args:
            listed: what counts all the same; None if that is not known, so that files stay until it is.
        """
        storage = storage_of(self._folder)
        with contextlib.suppress(UserError):  # a storage that is not reached: they are swept up later
            for attempt in self._attempts if listed is not None else ():
                storage.remove([one for one in storage.segments(self._folder, attempt) if one not in (listed or ())])
                storage.remove_tree(f"{self._folder}/{RETURNED}/{attempt}")
        self._attempts.clear()

    def remove_leftovers(self, listed: Set[str]) -> None:
        """Remove what attempts that never counted have left.

        Args:
            listed: what counts.
        """
        self._sweep(listed, None)
        storage = storage_of(self._folder)
        for name in (EPOCHS, RETURNED, SENDING, PLANS):
            storage.remove_tree(f"{self._folder}/{name}")
        finish(self._folder)  # what comes now must not go with it
        LOCAL.remove_tree(f"{storage.scratch(self._folder)}/{SENDING}")

    def _sweep(self, listed: Set[str], before: float | None) -> None:
        """Remove segments that count nowhere; those that were written before a moment, if one is given."""
        self._swept = time.monotonic()
        listed = listed | {path for _, path in self.spent}
        storage = storage_of(self._folder)
        for path in storage.segments(self._folder):
            if path in listed or attempt_of(path) in self.merging:
                continue
            with contextlib.suppress(OSError):
                if before is None or storage.written_at(path) < before:
                    storage.remove([path])
