"""Segments are put together beside the epochs: tasks write the new files, and a short transaction lists them.

Nobody waits for the tasks. They put together what was committed when they began; epochs go on meanwhile, and add
segments behind it. Between two epochs the new file takes the place of those that are in it, if all of these still
count, in the same generation, and the copy is written as it was; else it is thrown away. A kill at any moment leaves
files that are in no list, which are removed at the next opening.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.engine import faults
from headwater.engine.away import Away
from headwater.engine.engine import Engine
from headwater.engine.merges import Merge, first_due
from headwater.engine.moves import shared_out
from headwater.engine.tasks import CopyPlan
from headwater.errors import HeadwaterError
from headwater.store.segments import Segment
from headwater.store.storage import storage_of

log = logging.getLogger("headwater")

#: What could not be done is tried again after so many seconds.
RETRY_SECONDS = 60.0
#: A job does so many partitions at most, and so many bytes unless one has more: so it does not take long.
MOST_MERGES, MOST_BYTES = 32, 128 << 20
#: It has tasks for this share of what runs at a time: the rest is left to epochs.
SHARE = 0.5


#: The segments of a copy.
Partitions = Mapping[int, tuple[Segment, ...]]


@dataclass
class Made:
    """What tasks have written, and what for; it counts nowhere yet."""

    attempt: str
    pairs: list[tuple[Merge, Segment]] = field(default_factory=list)


class Merger:
    """The background thread of a warehouse whose maps lie away."""

    def __init__(self, engine: Engine, away: Away) -> None:
        self._engine, self._away = engine, away
        #: What was found due when a copy was last looked at; one that has not changed since is not looked at again.
        self._looked: dict[str, tuple[CopyPlan, Partitions, Sequence[Merge]]] = {}
        #: What could not be done, and until when it is left alone; of these somebody has been told.
        self._refused: dict[tuple[str, int], float] = {}
        self._wake = threading.Event()
        self._stop = self._busy = False
        self._thread = threading.Thread(target=self._work, name="headwater-merge", daemon=True)
        self._thread.start()

    # -- the thread ----------------------------------------------------------------------------------------------------

    def nudge(self) -> None:
        """Called after an epoch: start working if there is something to do."""
        if self.due():
            self._wake.set()

    @property
    def idle(self) -> bool:
        return not self._wake.is_set() and not self._busy

    def close(self) -> None:
        """End; what tasks are doing is given up."""
        self._stop = True
        self._wake.set()
        while self._thread.is_alive():
            self._away.runner.stop_merges()
            self._thread.join(0.5)

    def _work(self) -> None:
        while True:
            self._busy = False
            self._wake.wait()
            self._busy = True
            self._wake.clear()
            if self._stop:
                return
            try:
                self.work()
            except Exception:
                log.exception("segments were not put together; that is tried again")

    def work(self) -> int:
        """Put together what is due; returns in how many partitions that was done."""
        done = 0
        for batch in _batches(self.due()):
            if self._stop:
                break
            done += self.list(self.put_together(batch))
        return done

    # -- what is done --------------------------------------------------------------------------------------------------

    def due(self) -> Sequence[Merge]:
        """What is to be put together, of what is committed; safe to ask from any thread."""
        if not self._away.runner.ready:
            return ()
        now, found = time.monotonic(), list[Merge]()
        copies = self._away.copies
        for name, partitions in self._away.segments.standing.items():
            if name in copies:
                merges = self._due_of(copies[name], partitions)
                found += [one for one in merges if self._refused.get((name, one.partition), now) <= now]
        return sorted(found, key=lambda one: len(one.segments), reverse=True)

    def _due_of(self, copy: CopyPlan, partitions: Partitions) -> Sequence[Merge]:
        before = self._looked.get(copy.name)
        if before is not None and before[0] is copy and before[1] is partitions:
            return before[2]
        found: list[Merge] = []
        for partition, there in partitions.items():
            first = first_due(copy, partition, there)
            if first is not None:
                floor = self._engine.book.frontier(copy.relation).kept
                found.append(Merge(copy, partition, there[first:], self._away.folder, floor=floor))
        self._looked[copy.name] = copy, partitions, found
        return found

    def put_together(self, merges: Sequence[Merge]) -> Made:
        """Let tasks put segments together; what they write counts when it is listed. Never fails."""
        made = Made(uuid.uuid4().hex[:12])
        self._away.files.merging.add(made.attempt)
        problems: dict[tuple[str, int], str] = {}
        wanted = {one.key: one for one in merges}
        try:
            memory, runner = self._away.memory(), self._away.runner
            named = [replace(one, attempt=made.attempt, memory=memory) for one in merges]
            for one in runner.run_merges(shared_out(named, lambda one: one.size, max(1, int(runner.places * SHARE)))):
                if one.segment is not None:
                    made.pairs.append((wanted[one.key], one.segment))
                else:
                    problems[one.key] = one.problem
            faults.reach("merge done")
        except Exception as error:  # Spark was stopped, perhaps
            made.pairs.clear()
            problems = dict.fromkeys(wanted, _said(error))
        self._complain({key: text for key, text in problems.items() if self._counts(wanted[key])})
        return made

    def list(self, made: Made) -> int:
        """List new segments in place of those that are in them; returns how many. Never fails."""
        with self._engine.lock:
            try:
                self._list(made)
            except Exception as error:  # the warehouse's file could not be written, perhaps
                self._complain({merge.key: _said(error) for merge, _ in made.pairs})
            if self._away.unsure:
                return 0
            done = self._paths() & {new.path for _, new in made.pairs}
        storage = storage_of(self._away.folder)
        # Also what tasks have left that were run twice.
        storage.remove(path for path in storage.segments(self._away.folder, made.attempt) if path not in done)
        self._away.files.merging.discard(made.attempt)
        return len(done)

    def _list(self, made: Made) -> None:
        engine, away = self._engine, self._away
        plans = [one.plan for one in away.jobs(engine.schedule, engine.catalog) if one.plan is not None]
        copies = {name: copy for plan in plans for name, copy in plan.copies.items()}
        fitting = [
            (merge, new)
            for merge, new in made.pairs
            if copies.get(merge.copy.name) == merge.copy and self._counts(merge) and _is_there(new)
        ]
        if not fitting:
            return
        seen = {copy: relation for plan in plans for relation, copy in plan.primary.items()}
        shown = [(seen[merge.copy.name], merge.copy, new) for merge, new in fitting if merge.copy.name in seen]
        # Before, so that who looks into a sorted copy meanwhile finds none, and scans.
        torn = [engine.access.put_together(relation, new.first, new.last) for relation, _, new in shown]
        paths = {new.path for _, new in fitting}
        # Added up, the same rows lie in other entries: who remembers how rows are stored must look again.
        added_up = frozenset(relation for relation, copy, _ in shown if copy.net)
        with engine.transaction(lambda: paths <= self._paths(), None if any(torn) else lambda: added_up):
            for merge, new in fitting:
                away.segments.replace(engine.connection, merge.copy.name, merge.partition, merge.segments, new)
            for relation, copy in {relation: copy for relation, copy, _ in shown}.items():
                away.show(relation, copy)
            faults.reach("merge listed")
        for merge, _ in fitting:
            self._refused.pop(merge.key, None)

    def _counts(self, merge: Merge) -> bool:
        return self._away.segments.lists(merge.copy.name, merge.partition, merge.segments)

    def _paths(self) -> set[str]:
        segments = self._away.segments
        return {path for copy in segments.relations for path in segments.paths(copy)}

    def _complain(self, problems: Mapping[tuple[str, int], str]) -> None:
        """Leave alone for a while what could not be done, and say so, once."""
        new = [key for key in problems if key not in self._refused]
        if new and not self._stop:
            more = f", and {len(new) - 1:,} more" if len(new) > 1 else ""
            text = "segments of %s in partition %d%s were not put together, which is tried again later: %s"
            log.warning(text, *new[0], more, problems[new[0]])
        self._refused |= dict.fromkeys(problems, time.monotonic() + RETRY_SECONDS)


def _batches(merges: Sequence[Merge]) -> Iterator[Sequence[Merge]]:
    """What is put together by one job after the other."""
    batch: list[Merge] = []
    for one in merges:
        if batch and (len(batch) >= MOST_MERGES or one.size + sum(each.size for each in batch) > MOST_BYTES):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _said(error: Exception) -> str:
    return error.message if isinstance(error, HeadwaterError) else str(error).strip().split("\n", 1)[0]


def _is_there(segment: Segment) -> bool:
    return storage_of(segment.path).sizes([segment.path]) == [segment.size]
