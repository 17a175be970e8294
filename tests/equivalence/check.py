"""Runs a case and holds every view, after every epoch, against the references."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from headwater.errors import HeadwaterError, NotSupported

from .bags import Bag, Bags, added, difference
from .case import Case, Row, View
from .references import Interpreted, OnDuckDB, Reference
from .subject import Headwater, Subject

TOLERANCE = 1e-9


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
    subject = Headwater()
    return subject, (Interpreted(subject.algebra), OnDuckDB(case))


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
    at: str = "-"  #: what is being created or read, for errors

    def all(self) -> None:
        for relation in self.case.relations:
            self.at = relation.name
            self.subject.define(relation)
        self._create(0)
        for number, epoch in enumerate(self.case.epochs, 1):
            self.at = "-"
            self.outcome.epochs = number
            changes = self.bags.apply(epoch)
            changelogs = self.subject.apply(epoch)
            expected = [reference.apply(changes, self._number(number)) for reference in self.references]
            for view in self.views:
                self._compare_changes(view, changelogs.get(view.name, Counter()), expected)
            self._create(number)

    def _number(self, number: int) -> int:
        """The epoch's number as the subject counts, whose views of streams begin after one of its epochs."""
        return self.subject.epoch if isinstance(self.subject, Headwater) else number

    def _create(self, passed: int) -> None:
        for view in self.case.created_at(passed):
            self.at = view.name
            self.subject.create_view(view)
            for reference in self.references:
                reference.create_view(view)
            self.views.append(view)
            self.held[view.name] = self.subject.contents(view.name)
            self._compare_contents(view)

    def _compare_changes(self, view: View, changelog: Bag, expected: Sequence[dict[str, Bag] | None]) -> None:
        self.at = view.name
        before, after = self.held[view.name], self.subject.contents(view.name)
        self.held[view.name] = after
        if any(n < 0 for n in after.values()):
            self._stop("negative multiplicity", view, after)
        self._compare_contents(view)
        for reference, changelogs in zip(self.references, expected, strict=True):
            if changelogs is not None:
                wrong = difference(changelog, changelogs.get(view.name, Counter()))
                if wrong or any(n == 0 for n in changelog.values()):
                    self._stop(f"changelog differs from {reference.name}", view, wrong)
        if gap := difference(after, added(before, changelog)):
            self._stop("contents are not what the changelog leads to", view, gap)

    def _compare_contents(self, view: View) -> None:
        held = self.held[view.name]
        for reference in self.references:
            expected = reference.contents(view)
            if expected is None:
                self.outcome.skipped[reference.name] += 1
                continue
            self.outcome.compared[reference.name] += 1
            wrong = difference(held, expected) if reference.exact else nearly(held, expected)
            if wrong:
                self._stop(f"contents differ from {reference.name}", view, wrong)

    def _stop(self, kind: str, view: View, wrong: Bag) -> None:
        lines = [f"  {n:+d} {row!r}" for row, n in list(wrong.items())[:12]]
        detail = "\n".join(["rows too many (+) or too few (-):", *lines])
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
