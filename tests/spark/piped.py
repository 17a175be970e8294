"""Random cases through files and the pipeline: streams arrive as files, tables change through the API."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from headwater.engine.engine import Engine
from headwater.spark.intake import REJECTS
from headwater.spark.pipeline import CHECKPOINT, Pipeline, Progress
from tests.equivalence.bags import Bag, added, difference
from tests.equivalence.case import Case, Epoch, Operation, Relation
from tests.equivalence.check import Outcome, Setting, check
from tests.equivalence.generate import make_case
from tests.equivalence.references import Interpreted, OnDuckDB
from tests.equivalence.subject import Headwater, bag_of
from tests.spark.references import OnSpark
from tests.spark.row_files import choose_form, write_rows
from tests.spark.support import Following, opened, put

_INSERTS = ("insert", "insert_values", "upsert")


class Piped(Headwater):
    """A warehouse on disk whose streams have folders as sources. It is disturbed now and then between epochs.

    Attributes:
        follows: whether one pipeline follows the folders all the time; else each epoch is taken in by one of its own.
        did: what was done to it, for a report.
    """

    def __init__(self, folder: Path, case: Case, follows: bool) -> None:
        self._folder = folder
        self._case = case
        self._rng = random.Random(f"piped {case.seed}")
        self.follows = follows
        self._observed = self._rng.random() < 0.6
        self._applied = 0
        self._ready: set[int] = set()  #: epochs whose files are there already
        self._files = 0
        self._sent: Counter[str] = Counter()
        self._malformed: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._others: list[str] = []
        self._forms = {one.name: choose_form(self._rng, one) for one in case.relations if one.kind == "STREAM"}
        self._follower: Following | None = None
        self.did: list[str] = [f"{name}: {form.sql(Path('in'))}" for name, form in self._forms.items()]
        super().__init__(opened(folder / "w"))
        if not self._observed:
            self.database.engine.observers.clear()

    def define(self, relation: Relation) -> None:
        if relation.kind == "STREAM":
            inbox = self._inbox(relation.name)
            inbox.mkdir(parents=True)
            self.database.execute(f"{relation.sql} {self._forms[relation.name].sql(inbox)}")
            self.relations[relation.name] = relation
        else:
            super().define(relation)

    def _inbox(self, stream: str) -> Path:
        return self._folder / "in" / stream

    # -- epochs --------------------------------------------------------------------------------------------------------

    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        self._changes = {}
        before = {} if self._observed else self._everything()
        self._disturb()
        if self._of_streams(epoch):
            self._arrive(epoch)
        else:
            super().apply(epoch)
        if not self._observed:
            self._changes = {name: difference(now, before[name]) for name, now in self._everything().items()}
        changes = self._changes
        self.gather()
        self._applied += 1
        self._look_ahead()
        self._check_rejects()
        return changes

    def _of_streams(self, epoch: Epoch) -> bool:
        return any(one.kind != "refresh" and self.relations[one.relation].kind == "STREAM" for one in epoch)

    def _everything(self) -> dict[str, Bag]:
        views = [one.name for one in self.database.engine.catalog if one.program is not None]
        return {name: self.contents(name) for name in views}

    def _observe(self, number: int, changes: Mapping[str, pa.Table]) -> None:
        for name, table in changes.items():
            self._changes[name] = added(self._changes.get(name, Counter()), bag_of(table))

    def refresh(self, view: str) -> dict[str, Bag]:
        before = {} if self._observed else self._everything()
        changes = super().refresh(view)
        if self._observed:
            return changes
        return {name: difference(now, before[name]) for name, now in self._everything().items()}

    def _arrive(self, epoch: Epoch) -> None:
        if self._applied not in self._ready:
            self._put(epoch)
        if self.follows:
            self._followed()
        else:
            self._drain()

    def _put(self, epoch: Epoch) -> None:
        """Make files of an epoch. A pipeline that follows makes an epoch of each, so there must be only one then."""
        rng = self._rng
        for operation in epoch:
            relation = self.relations[operation.relation]
            pieces = 1 if self.follows else rng.choice([1, 1, 2, 3])
            for n in range(pieces):
                rows = operation.rows[n::pieces]
                wanted = rng.choice([0, 0, 1, 2])
                self._files += 1
                bad = write_rows(
                    rng,
                    self._inbox(relation.name),
                    f"{self._files:04d}",
                    self._forms[relation.name],
                    relation,
                    rows,
                    wanted,
                )
                self._sent[relation.name] += len(rows) + bad
                self._malformed[relation.name] += bad

    def _drain(self) -> None:
        Pipeline(self.database, report=self._report).run(once=True)
        assert self._is_taken(), f"taken {self._taken}, put {self._sent}"

    def _is_taken(self) -> bool:
        """Whether everything that was put there has been taken in; of a stream that is dropped, who knows.

        Of a stream that is not retained, rows that no view can use do not come.
        """
        return all(
            self._taken[name] == n or (name in self._forms and not self.relations[name].retain)
            for name, n in self._sent.items()
            if name in self._forms or name in self._others
        )

    def _followed(self) -> None:
        if self._follower is None:
            self._follower = Following(self.database, report=self._report)
        follower = self._follower

        follower.process_all()
        assert follower.is_running() and self._is_taken(), f"taken {self._taken}, put {self._sent}"

    def _report(self, progress: Progress) -> None:
        for stream in {*progress.rows, *progress.rejects}:
            self._taken[stream] += progress.rows.get(stream, 0) + progress.rejects.get(stream, 0)

    def _check_rejects(self) -> None:
        """Every malformed record that was put there is counted, and kept; other streams have their rows."""
        if self._applied in self._ready or not self._is_taken():  # files of the epoch to come are there already
            return
        for name in self._others:
            assert self.contents(name).total() == self._sent[name], f"{name} has {self.contents(name)}"
        facts: Any = self.database.status()["relations"]
        for stream in self._forms:
            told = next(one["rejects"] for one in facts if one["name"] == stream)
            folder = self._folder / "w" / REJECTS / stream
            kept = sum(len(file.read_text().splitlines()) for file in folder.iterdir()) if folder.exists() else 0
            wanted = self._malformed[stream]
            assert told == kept == wanted, f"{stream}: {wanted} malformed, {told} counted, {kept} kept"

    # -- disturbances --------------------------------------------------------------------------------------------------

    def _disturb(self) -> None:
        """Start anew, let Spark believe that its last batch is not done, make or drop another stream; or nothing."""
        what = [one for one in ("restart", "again", "another", "drop") if self._rng.random() < 0.25]
        self.did.append(f"before epoch {self._applied + 1}: {', '.join(what) or 'nothing'}")
        if "restart" in what or "again" in what:
            self._stop_following()
        if "restart" in what:
            self.database.close()
            self.database = opened(self._folder / "w")
            self.advance(self.now)
            if self._observed:
                self.database.observe(self._observe)
            for view in self._subscriptions:
                self.come_back(view)
        if "again" in what:
            self._forget_last_commit()
        if "another" in what:
            self._make_another()
        if "drop" in what and self._others:
            self._drop_another()

    def _make_another(self) -> None:
        """A stream that no view reads, with a file that is there already."""
        name = f"other{self._applied}"
        self._others.append(name)
        rows = self._rng.randint(0, 3)
        put(self._inbox(name), "a.json", [{"x": n} for n in range(rows)])
        self._sent[name] = rows
        self.database.execute(f"CREATE STREAM {name} (x INT) RETAIN ALL FROM json '{self._inbox(name)}'")

    def _drop_another(self) -> None:
        name = self._others.pop(self._rng.randrange(len(self._others)))
        self.database.execute(f"DROP STREAM {name}")

    def _forget_last_commit(self) -> None:
        """As after a crash between our commit and Spark's."""
        folder = self._folder / "w" / CHECKPOINT / "commits"
        notes = [int(one.name) for one in folder.glob("*") if one.name.isdigit()] if folder.exists() else []
        if notes:
            for name in (f"{max(notes)}", f".{max(notes)}.crc"):
                (folder / name).unlink(missing_ok=True)

    def _look_ahead(self) -> None:
        """Sometimes the next files come early and their batch fails: views that are made now are made before it."""
        following = self._case.epochs[self._applied : self._applied + 1]
        if self.follows or not following or not self._of_streams(following[0]) or self._rng.random() < 0.6:
            return
        self.did.append(f"batch of epoch {self._applied + 1} fails at first")
        self._put(following[0])
        self._ready.add(self._applied)
        with patch.object(Engine, "run", side_effect=_Broken):
            try:
                Pipeline(self.database).run(once=True)
            except _Broken:
                return
        raise AssertionError("the batch did not fail")

    def _stop_following(self) -> None:
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.stop()

    def close(self) -> None:
        self._stop_following()
        super().close()


class _Broken(Exception):
    pass


# -- cases -------------------------------------------------------------------------------------------------------------


def piped_case(seed: int) -> tuple[Case, bool]:
    """A seed's case with streams that only grow and few epochs that bring them rows; whether to follow the folders.

    The epochs of the generator come in three or four groups. Tables change as they did; what streams get in a group
    comes at its end, together, or one stream after the other if the folders are followed.
    """
    case = make_case(seed)
    rng = random.Random(f"streams {seed}")
    follows = rng.random() < 0.4
    relations = tuple(_perhaps_stream(rng, one) for one in map(_only_growing, case.relations))
    if not any(one.kind == "STREAM" for one in relations):
        relations = (_as_stream(rng, relations[0]), *relations[1:])
    streams = {one.name for one in relations if one.kind == "STREAM"}
    ends = {*rng.sample(range(1, len(case.epochs)), rng.choice([2, 3])), len(case.epochs)}
    epochs: list[Epoch] = []
    passed = {0: 0}
    waiting: dict[str, list[Operation]] = {}
    for number, epoch in enumerate(case.epochs, 1):
        if kept := tuple(one for one in epoch if one.relation not in streams and one.kind != "refresh"):
            epochs.append(kept)
        for one in epoch:
            if one.relation in streams and one.kind in _INSERTS:
                width = len(case.relation(one.relation).columns)  # without what a row of a keyed stream does
                rows = tuple(row[:width] for row in one.rows)
                waiting.setdefault(one.relation, []).append(replace(one, rows=rows))
        if number in ends:
            arriving = [_merged(name, parts) for name, parts in waiting.items()]
            epochs += [(one,) for one in arriving] if follows else [tuple(arriving)] if arriving else []
            waiting = {}
        passed[number] = len(epochs)
    # What a policy releases depends on which rows share a micro-batch, which is Spark's affair.
    plain = [replace(view, refresh="", query=re.sub(r"\bR\((\w+), \w+\)", r"\1", view.query)) for view in case.views]
    views = tuple(replace(view, created=passed[view.created]) for view in plain)
    return Case(seed, relations, views, tuple(epochs)), follows


def _only_growing(relation: Relation) -> Relation:
    """A keyed stream as one without a key: Spark does not keep the order of rows with equal sequences."""
    plain = replace(relation, key=(), sequence=None, codes=False)
    return plain if relation.is_keyed_stream else relation


def _perhaps_stream(rng: random.Random, relation: Relation) -> Relation:
    return _as_stream(rng, relation) if relation.kind == "TABLE" and rng.random() < 0.4 else relation


def _as_stream(rng: random.Random, relation: Relation) -> Relation:
    return replace(relation, kind="STREAM", key=(), retain=rng.random() < 0.5)


def _merged(stream: str, parts: list[Operation]) -> Operation:
    return Operation("insert", stream, tuple(row for part in parts for row in part.rows))


def run_case(session: Any, case: Case, follows: bool, folder: Path) -> tuple[Outcome, list[str]]:
    """Run a case in a new folder; what came out, and what was done to it."""
    did: list[str] = []

    def setting(case: Case) -> Setting:
        subject = Piped(folder, case, follows)
        subject.did, did[:] = did, subject.did
        on_spark = OnSpark(session, case, lambda: subject.suspended)
        interpreted = Interpreted(subject.algebra, case.relations)
        return subject, (interpreted, OnDuckDB(case, lambda: interpreted.ticked), on_spark)

    return check(case, setting), did


def told(case: Case, outcome: Outcome, did: list[str]) -> str:
    """A failure, the case, what was done beside it, and whether it fails without a pipeline, too."""
    plainly = check(case).failure
    verdict = f"without a pipeline: {plainly.kind}" if plainly else "without a pipeline it passes"
    return "\n".join([f"seed {case.seed} fails", str(outcome.failure), "", *did, verdict, "", str(case)])
