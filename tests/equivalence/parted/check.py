"""Runs a case on Headwater and compares everything that there is with the unfolding, after every step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..bags import Bag, difference
from ..check import Failure, Outcome, error_kind, nearly
from .case import Case, Step, View
from .judges import OnDuckDB, OnTrees
from .subject import Headwater
from .unfold import Disagreement, Unfolded, World

_MICROSECOND = timedelta(microseconds=1)


class _Stop(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def check(case: Case, subject: Callable[[Case, bool], Headwater] = Headwater) -> Outcome:
    """Run a case to its end or its first failure."""
    outcome = Outcome()
    made: Headwater | None = None
    judge: OnDuckDB | None = None
    run: _Run | None = None
    try:
        made = subject(case, case.seed % 3 != 0)
        judge = OnDuckDB(made.shape)
        run = _Run(case, made, World(case, (judge, OnTrees(made.program, made.algebra)), made.shape), outcome)
        run.all()
    except _Stop as stop:
        outcome.failure = stop.failure
    except Disagreement as found:
        outcome.failure = Failure("judges differ", found.view, outcome.epochs, str(found))
    except Exception as error:  # whatever the engine raises is a finding
        at = run.at if run is not None else "-"
        outcome.failure = Failure(error_kind(error), at, outcome.epochs, f"{type(error).__name__}: {error}")
    finally:
        if made is not None:
            made.close()
        if judge is not None:
            judge.close()
    if run is not None:
        outcome.compared += run.world.asked
    return outcome


@dataclass
class _Run:
    case: Case
    subject: Headwater
    world: World
    outcome: Outcome
    at: str = "-"  #: what is being created or read, for errors

    def __post_init__(self) -> None:
        self.rng = random.Random(self.case.seed)

    def all(self) -> None:
        self._define(0)
        for number, step in enumerate(self.case.steps, 1):
            self.outcome.epochs = number
            self.at = "-"
            before = {name: dict(one.rows) for name, one in self.world.views.items()}
            came = self._take(step)
            self._compare(before, came)
            self._define(number)

    def _take(self, step: Step) -> dict[str, set[int]] | None:
        """Carry out a step; the parts of streams that it brings rows for, or None if it is no epoch."""
        epoch = self.subject.epoch
        held = {name: {part: Counter(bag) for part, bag in s.rows.items()} for name, s in self.world.streams.items()}
        match step.kind:
            case "epoch":
                self.world.apply(step.changes)
                if step.moment is not None:
                    self.world.advance(step.target, step.moment)
            case "advance":
                assert step.moment is not None
                self.world.advance(step.target, step.moment)
            case "refresh" if step.target not in self.world.views:
                return None
        self.subject.take(step)
        self.world.settle()
        if (self.subject.epoch == epoch) != (step.kind in ("fail", "reopen", "consolidate")):
            self._stop("an epoch too many, or too few", "-", f"{epoch}, then {self.subject.epoch}")
        if self.subject.epoch == epoch:
            return None
        return {
            name: {part for part, bag in stream.rows.items() if part is not None and bag != held[name].get(part)}
            for name, stream in self.world.streams.items()
        }

    def _define(self, number: int) -> None:
        for view in self.case.views:
            if view.dropped == number and self.subject.has(view.name):
                self.at = view.name
                self.subject.drop(view.name)
                if not view.fragile:
                    self.world.drop(view.name)
        for view in self.case.views:
            if view.created == number:
                self._create(view)

    def _create(self, view: View) -> None:
        self.at = view.name
        self.subject.create(view)
        if view.fragile:
            return
        self.world.create(view)
        one = self.world.views[view.name]
        self._compare_view(one)
        if view.has_parts:
            _, newest = self.subject.lines(view.name)
            self._equal(
                "parts that are said to be new", view.name, newest, {part for part, bag in one.rows.items() if bag}
            )
        self._compare_book()

    # -- comparisons -------------------------------------------------------------------------------------------------

    def _compare(self, before: Mapping[str, Mapping[int | None, Bag]], came: dict[str, set[int]] | None) -> None:
        suspended = self.subject.suspended - {view.name for view in self.case.views if view.fragile}
        if suspended:
            self._stop("suspended", min(suspended), "")
        self._compare_streams(came)
        for name, one in self.world.views.items():
            self.at = name
            self._compare_view(one)
            old = before.get(name, {})
            if one.view.has_parts and came is not None:
                moved = {part for part in one.rows | old if one.rows.get(part, Counter()) != old.get(part, Counter())}
                self._equal("parts that are said to have changed", name, self.subject.lines(name)[1], moved)
            if self.case.seed % 3 and came is not None:
                self._compare_changes(one, old)
        self._compare_book()

    def _compare_streams(self, came: dict[str, set[int]] | None) -> None:
        for name, stream in self.world.streams.items():
            self.at = name
            late, count = self.subject.late(name)
            self._same("rows kept aside", name, late, stream.late)
            self._equal("count of rows that came too late", name, count, stream.late.total())
            first, following, watermark = self.subject.frontier(name)
            told = None if stream.watermark is None else (stream.watermark - datetime(1970, 1, 1)) // _MICROSECOND
            self._equal("watermark", name, (following, watermark), (stream.next, told))
            if not stream.kept or (stream.relation.lateness is not None and not stream.relation.retain):
                continue  # rows that nobody needs may be gone
            self._equal("oldest part", name, first, stream.first)
            rows, newest = self.subject.lines(name)
            sizes = {part: bag.total() for part, bag in stream.rows.items()}
            self._equal("rows of parts", name, rows, sizes)
            if came is not None:
                self._equal("parts that are said to have changed", name, newest, came[name])
            expected: Bag = Counter()
            for part, bag in stream.rows.items():
                for row, n in bag.items():
                    expected[(*row, part)] += n
            self._same("rows of a stream", name, self.subject.contents(name, parts=True), expected)

    def _compare_view(self, one: Unfolded) -> None:
        name = one.view.name
        parts = one.view.has_parts
        self.outcome.compared["views"] += 1
        self._same("contents differ", name, self.subject.contents(name, parts), one.bag)
        if not parts:
            return
        self._equal("first and next part", name, self.subject.frontier(name)[:2], (one.first, one.next))
        rows, _ = self.subject.lines(name)
        self._equal("rows of parts", name, rows, {part: bag.total() for part, bag in one.rows.items() if bag})
        self.outcome.compared["parts"] += len(one.rows)
        if one.rows and self.rng.random() < 0.2:
            part = self.rng.choice(sorted(part for part in one.rows if part is not None))
            self._same("one part differs", name, self.subject.part(name, part), one.rows[part])

    def _compare_changes(self, one: Unfolded, before: Mapping[int | None, Bag]) -> None:
        old = Unfolded(one.view, one.queries, one.length, rows=dict(before)).bag
        found = self.subject.changes.get(one.view.name, Counter())
        if any(n == 0 for n in found.values()):
            self._stop("a change of nothing", one.view.name, str(found))
        self.outcome.compared["changelogs"] += 1
        self._same("changelog differs", one.view.name, found, difference(one.bag, old))

    def _compare_book(self) -> None:
        memory, disk = self.subject.book()
        self._equal("parts are known otherwise on disk", "-", memory, disk)

    def _same(self, kind: str, name: str, found: Bag, expected: Bag) -> None:
        if wrong := nearly(found, expected):
            lines = [f"  {n:+d} {row!r}" for row, n in list(wrong.items())[:12]]
            self._stop(kind, name, "\n".join(["rows too many (+) or too few (-):", *lines]))

    def _equal(self, kind: str, name: str, found: object, expected: object) -> None:
        if found != expected:
            self._stop(kind, name, f"found {found}\nexpected {expected}")

    def _stop(self, kind: str, name: str, detail: str) -> None:
        raise _Stop(Failure(kind, name, self.outcome.epochs, detail))
