"""Runs a case and holds every view, after every epoch, against the references."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from headwater.algebra.functions.errors import EvaluationError
from headwater.errors import HeadwaterError, NotSupported

from .bags import Bag, Bags, added, difference
from .case import Case, Epoch, Row, View
from .followers import Follower, Untrue
from .policies import TIMINGS
from .references import Interpreted, OnDuckDB, Reference
from .subject import Headwater, Subject

TOLERANCE = 1e-9
#: Ad hoc queries after each epoch, at most.
ANSWERS = 1
#: Errors that a value brings about: division by zero, overflow, a conversion that does not work.
_VALUES = ("HW501", "HW502", "HW503")
_ROUNDED = re.compile(r"\b(stddev|variance|var_|std\b|median|percentile)")
_LOST: dict[str, Bag] = {}


@dataclass(frozen=True)
class Failure:
    """What went wrong, where, and how it shows.

    Attributes:
        kind: what a shrinker must preserve: the kind of mismatch, or the kind of error.
        view: the view that is wrong, or that was being created.
        epoch: how many epochs had passed.
        detail: the rows that differ, or the error.
    """

    kind: str
    view: str
    epoch: int
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.view} after epoch {self.epoch}\n{self.detail}"


@dataclass
class Outcome:
    """What running a case showed."""

    failure: Failure | None = None
    unsupported: str | None = None  #: a construct that Headwater refuses by design, with its code
    epochs: int = 0
    compared: Counter[str] = field(default_factory=Counter)  #: comparisons made, by reference
    skipped: Counter[str] = field(default_factory=Counter)  #: views that a reference had no opinion on


Setting = tuple[Subject, Sequence[Reference]]


def headwater_and_references(case: Case) -> Setting:
    """What a case is run with unless a test says otherwise."""
    subject = Headwater(
        looks_up=case.seed % 3 == 0,
        seed=case.seed,
        observes=case.seed % 2 == 0,
        borrows=case.seed % 4 != 0,
        tasks=case.seed % 5 == 4,
    )
    interpreted = Interpreted(subject.algebra, case.relations)
    return subject, (interpreted, OnDuckDB(case, lambda: interpreted.ticked))


def check(case: Case, setting: Callable[[Case], Setting] = headwater_and_references) -> Outcome:
    """Run a case to its end or its first failure."""
    subject, references = setting(case)
    run = _Run(case, subject, references, Bags.of(case))
    try:
        run.all()
    except _Stop as stop:
        run.outcome.failure = stop.failure
    except NotSupported as error:
        if not error.code.startswith("HW2"):
            run.outcome.failure = run.broken(error)
        run.outcome.unsupported = f"{error.code}: {error.message}"
    except Exception as error:  # whatever the engine raises is a finding
        run.outcome.failure = run.broken(error)
    finally:
        subject.close()
        for reference in references:
            reference.close()
    return run.outcome


class _Stop(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass
class _Run:
    case: Case
    subject: Subject
    references: Sequence[Reference]
    bags: Bags
    outcome: Outcome = field(default_factory=Outcome)
    views: list[View] = field(default_factory=list)
    held: dict[str, Bag] = field(default_factory=dict)
    followers: dict[str, Follower] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)  #: views that there is nothing to compare with
    rounded: set[str] = field(default_factory=set)  #: views with moments, whose last digits nobody can know
    at: str = "-"  #: what is being created or read, for errors

    def all(self) -> None:
        for relation in self.case.relations:
            self.at = relation.name
            self.subject.define(relation)
        self._advance(0)
        self._create(0)
        for number, epoch in enumerate(self.case.epochs, 1):
            self.at = "-"
            self.outcome.epochs = number
            epoch = self._asked(epoch)
            changes = self.bags.apply(epoch)
            self._advance(number)
            changelogs = self.subject.apply(epoch)
            expected = [reference.apply(changes, self._number(number)) for reference in self.references]
            self._compare_suspended()
            self._compare_all(changelogs, expected)
            self._compare_answers(number)
            self._compare_asked(number)
            self._compare_points()
            self._refresh()
            self._replan(number)
            self._drop(number)
            self._create(number)
        for view in self.views:
            self._compare_history(view)
        if isinstance(self.subject, Headwater) and self.subject.borrowed:
            self.outcome.compared["borrowed views"] += self.subject.borrowed
        if isinstance(self.subject, Headwater) and self.subject.shared:
            self.outcome.compared["views with finer groups"] += self.subject.shared
        if isinstance(self.subject, Headwater) and self.subject.merged:
            self.outcome.compared["segments put together"] += self.subject.merged
            self.outcome.compared["segments put together too late"] += self.subject.unlisted
        if isinstance(self.subject, Headwater) and self.subject.filled:
            self.outcome.compared["views filled in tasks"] += self.subject.filled
        self._compare_past()

    def _advance(self, number: int) -> None:
        """Let the clock read what it does in an epoch."""
        for one in (self.subject, *self.references):
            one.advance(self.case.clock(number))

    def _asked(self, epoch: Epoch) -> Epoch:
        """Tell the references of a REFRESH; one of a view that does not follow its inputs is left out."""
        there = {view.name for view in self.views} - self.subject.suspended
        kept = tuple(one for one in epoch if one.kind != "refresh" or one.relation in there)
        for one in kept:
            if one.kind == "refresh":
                for reference in self.references:
                    reference.ask(one.relation)
        return kept

    def _number(self, number: int) -> int:
        """The epoch's number as the subject counts, whose views of streams begin after one of its epochs."""
        return self.subject.epoch if isinstance(self.subject, Headwater) else number

    def _compare_suspended(self) -> None:
        """Only views that cannot be evaluated are suspended.

        One that cannot be may go on all the same, if what fails is of no consequence: `1 / 0` in a row that joins with
        nothing. From then on there is nothing to compare it with.
        """
        mine = self.subject.suspended
        for reference in self.references:
            theirs = reference.suspended
            if theirs is None:
                continue
            if mine - theirs:
                raise _Stop(
                    Failure(f"suspended, but not by the {reference.name}", min(mine - theirs), self.outcome.epochs, "")
                )
            if theirs - mine:
                self._forget(theirs - mine)

    def _forget(self, names: set[str]) -> None:
        """Go on without some views, and those that read them."""
        self.missing |= names
        for view in self.case.views:
            if any(re.search(rf"\b{name}\b", view.query) for name in self.missing):
                self.missing.add(view.name)
        self.outcome.skipped["nothing to compare"] += sum(view.name in self.missing for view in self.views)
        self.views = [view for view in self.views if view.name not in self.missing]

    def _refresh(self) -> None:
        """Try every suspended view again: it must follow its inputs exactly when it can be evaluated."""
        for view in self.views:
            if view.name not in self.subject.suspended:
                continue
            self.at = view.name
            self.outcome.skipped["suspension"] += 1
            changelogs = self._refresh_subject(view)
            if changelogs is _LOST:
                continue
            expected: list[dict[str, Bag] | None] = []
            try:
                expected += [reference.refresh(view, self._number(0)) for reference in self.references]
            except EvaluationError:
                if changelogs is not None:
                    raise _Stop(Failure("refreshed what has no value", view.name, self.outcome.epochs, "")) from None
                continue
            if changelogs is None:
                raise _Stop(Failure("refused to refresh", view.name, self.outcome.epochs, ""))
            self._compare_suspended()
            self._compare_all(changelogs, expected)

    def _refresh_subject(self, view: View) -> dict[str, Bag] | None:
        """The changelogs of a refresh; None if it was refused."""
        try:
            return self.subject.refresh(view.name)
        except HeadwaterError as error:
            if error.code == "HW505":  # a stream's rows are gone: no refresh ever
                return _LOST
            if error.code not in _VALUES:
                raise
            return None

    def _replan(self, passed: int) -> None:
        """Another plan shows the same."""
        for view in self.case.replanned_at(passed):
            if view not in self.views or view.name in self.subject.suspended:
                continue
            self.at = view.name
            try:
                self.subject.replan(view)
            except HeadwaterError as error:
                if error.code != "HW506":  # rows of a stream are gone
                    raise
            self._compare_contents(view)

    def _drop(self, passed: int) -> None:
        for view in self.case.dropped_at(passed):
            if view in self.views:
                self.at = view.name
                try:
                    self.subject.drop_view(view)
                except HeadwaterError as error:
                    if error.code != "HW105":  # another view is computed from it, and rows of a stream are gone
                        raise
                    continue
                self.views.remove(view)
                for reference in self.references:
                    reference.drop_view(view)

    def _create(self, passed: int) -> None:
        for view in self.case.created_at(passed):
            self.at = view.name
            if view.name in self.missing:
                continue
            try:
                self.subject.create_view(view)
            except HeadwaterError as error:
                if error.code not in _VALUES:
                    raise
                self._compare_refusal(view)
                self._forget({view.name})
                continue
            if self.subject.is_lazy(view.name) and not self._can_be_read(view):
                continue
            for reference in self.references:
                reference.create_view(view)
            self.views.append(view)
            self.held[view.name] = self.subject.contents(view.name)
            self._compare_contents(view)
            if view.refresh not in TIMINGS:  # who follows one of these makes it keep up
                self.followers[view.name] = self.subject.follow(view)
                self._compare_follower(view)

    def _can_be_read(self, view: View) -> bool:
        """Whether a view that is evaluated when it is read can be; it may be made all the same."""
        try:
            self.subject.contents(view.name)
        except HeadwaterError as error:
            if error.code not in _VALUES:
                raise
            self._compare_refusal(view)
            self._forget({view.name})
            return False
        return True

    def _compare_refusal(self, view: View) -> None:
        """A view may be refused only if it cannot be evaluated from the rows of the moment."""
        for reference in self.references:
            asked = isinstance(reference, Interpreted) and isinstance(self.subject, Headwater)
            if asked and reference.can_evaluate(self.subject.lowered(view)):
                raise _Stop(Failure("refused to create", view.name, self.outcome.epochs, ""))

    def _compare_all(self, changelogs: dict[str, Bag], expected: Sequence[dict[str, Bag] | None]) -> None:
        for view in self.views:
            self._compare_changes(view, changelogs.get(view.name, Counter()), expected)

    def _compare_changes(self, view: View, changelog: Bag, expected: Sequence[dict[str, Bag] | None]) -> None:
        self.at = view.name
        lazy = self.subject.is_lazy(view.name)
        if lazy and view.name in self.subject.suspended:
            return
        before, after = self.held[view.name], self.subject.contents(view.name)
        self.held[view.name] = after
        if any(n < 0 for n in after.values()):
            self._stop("negative multiplicity", view, after)
        self._compare_contents(view)
        if lazy or (view.refresh in TIMINGS and not self.subject.observes):
            self.outcome.compared["when read" if lazy else "kept after all"] += 1
            return
        for reference, changelogs in zip(self.references, expected, strict=True):
            if changelogs is not None:
                expected_change = changelogs.get(view.name, Counter())
                wrong = (nearly if self._is_rounded(view) else difference)(changelog, expected_change)
                if wrong or any(n == 0 for n in changelog.values()):
                    self._stop(f"changelog differs from {reference.name}", view, wrong)
        if gap := difference(after, added(before, changelog)):
            self._stop("contents are not what the changelog leads to", view, gap)
        if view.name in self.followers:
            self._compare_follower(view)

    def _compare_follower(self, view: View) -> None:
        """Whoever has nothing but what subscribers are told has the view."""
        follower = self.followers[view.name]
        changes = self.subject.told(view.name)
        if changes is None:
            follower = self.followers[view.name] = Follower(follower.key)
            changes = self.subject.told(view.name) or []
        try:
            follower.follow(changes, self._number(self.outcome.epochs))
        except Untrue as untrue:
            raise _Stop(
                Failure("a subscriber was told what cannot be", view.name, self.outcome.epochs, str(untrue))
            ) from None
        if wrong := difference(follower.held, self.held[view.name]):
            self._stop("a subscriber has not what the view holds", view, wrong)
        self.outcome.compared["follower"] += 1

    def _compare_answers(self, number: int) -> None:
        """A query says the same whether a view answers it or not."""
        if not isinstance(self.subject, Headwater):
            return
        rng = random.Random(f"answers {self.case.seed} {number}")
        for view in rng.sample(self.views, min(ANSWERS, len(self.views))):
            self.at = view.name
            found = self.subject.answers(view.name, rng) if view.name not in self.subject.suspended else None
            if found is None:
                self.outcome.skipped["no view answers"] += 1
                continue
            tree, over_views, without, within = found
            self.outcome.compared["answers"] += 1
            if nearly(within, without):
                self._stop("another answer from a view", view, nearly(within, without), f"{tree}\n{over_views}\n")

    def _compare_asked(self, number: int) -> None:
        """A query says the same whether others that differ in a constant were asked before it or not."""
        if not isinstance(self.subject, Headwater) or not self.views:
            return
        rng = random.Random(f"asked {self.case.seed} {number}")
        view = rng.choice(self.views)
        self.at = view.name
        for text, shared, alone in self.subject.asked(view.name, rng):
            self.outcome.compared["asked"] += 1
            if shared != alone:
                detail = f"{text}\n{shared}\n{alone}"
                raise _Stop(Failure("another answer to a text like others", view.name, self.outcome.epochs, detail))

    def _compare_history(self, view: View) -> None:
        """Whoever is told of everything that is kept of a view, from its beginning, has the view."""
        changes = self.subject.history(view)
        if changes is None:
            return
        self.at = view.name
        follower = Follower(self.followers[view.name].key)
        try:
            follower.follow(changes, self._number(self.outcome.epochs))
        except Untrue as untrue:
            raise _Stop(Failure("what is kept cannot be", view.name, self.outcome.epochs, str(untrue))) from None
        if wrong := difference(follower.held, self.held[view.name]):
            self._stop("what is kept does not lead to what the view holds", view, wrong)

    def _compare_points(self) -> None:
        """Whoever looks rows up by an index finds those that a query has."""
        if not isinstance(self.subject, Headwater):
            return
        for name, found, expected in self.subject.mislaid():
            wrong = "\n".join(map(str, difference(found, expected).items()))
            raise _Stop(Failure("point reads are not what there is", name, self.outcome.epochs, wrong))
        self.outcome.compared["points"] = self.subject.database.getting.points.found

    def _compare_past(self) -> None:
        """Whoever asks for an earlier epoch is told what was told then."""
        if not isinstance(self.subject, Headwater):
            return
        for name, epoch, now, then in self.subject.misremembered():
            wrong = "\n".join(map(str, difference(now, then).items()))
            raise _Stop(Failure(f"AS OF EPOCH {epoch} is not what there was", name, self.outcome.epochs, wrong))
        self.outcome.compared["past"] += len(self.subject.remembered)

    def _compare_contents(self, view: View) -> None:
        held = self.held[view.name]
        for reference in self.references:
            expected = reference.contents(view)
            if expected is None:
                self.outcome.skipped[reference.name] += 1
                continue
            self.outcome.compared[reference.name] += 1
            exact = reference.exact and not self._is_rounded(view)
            wrong = difference(held, expected) if exact else nearly(held, expected)
            if wrong:
                self._stop(f"contents differ from {reference.name}", view, wrong)

    def _is_rounded(self, view: View) -> bool:
        """Whether the last digits of a view's doubles may depend on the order of its rows."""
        if _ROUNDED.search(view.query):
            self.rounded.add(view.name)
        return view.name in self.rounded or any(re.search(rf"\b{name}\b", view.query) for name in self.rounded)

    def _stop(self, kind: str, view: View, wrong: Bag, about: str = "") -> None:
        lines = [f"  {n:+d} {row!r}" for row, n in list(wrong.items())[:12]]
        detail = "\n".join([f"{about}rows too many (+) or too few (-):", *lines])
        raise _Stop(Failure(kind, view.name, self.outcome.epochs, detail))

    def broken(self, error: Exception) -> Failure:
        return Failure(error_kind(error), self.at, self.outcome.epochs, f"{type(error).__name__}: {error}")


def error_kind(error: Exception) -> str:
    """What stays of an error when names and numbers in it change."""
    code = f" {error.code}" if isinstance(error, HeadwaterError) else ""
    message = error.message if isinstance(error, HeadwaterError) else str(error)
    first = message.strip().split("\n")[0]
    gist = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\([^()]*\)|\b\w*\d\w*\b", "…", first)
    return f"error {type(error).__name__}{code}: {gist[:60]}"


def nearly(left: Bag, right: Bag) -> Bag:
    """The difference of two bags in which doubles count as equal within the tolerance.

    The other side's numbers may also be of another type (DuckDB's floor of a DOUBLE is a DOUBLE); Python compares them
    by value.
    """
    wrong = difference(left, right)
    extra = [row for row, n in wrong.items() for _ in range(n) if n > 0]
    missing = [row for row, n in wrong.items() for _ in range(-n) if n < 0]
    for row in list(extra):
        partner = next((other for other in missing if _near(row, other)), None)
        if partner is not None:
            extra.remove(row)
            missing.remove(partner)
    return difference(Counter(extra), Counter(missing))


def _near(left: Row, right: Row) -> bool:
    return all(_near_value(a, b) for a, b in zip(left, right, strict=True))


def _near_value(a: object, b: object) -> bool:
    if a is b or a == b:
        return True
    numbers = isinstance(a, int | float | Decimal) and isinstance(b, int | float | Decimal)
    if numbers and (isinstance(a, float) or isinstance(b, float)):
        return math.isclose(float(a), float(b), rel_tol=TOLERANCE)  # type: ignore[arg-type]
    return False
