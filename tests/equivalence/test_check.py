"""The check, on a Headwater that is sabotaged in one way at a time: each must be noticed, and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .bags import Bag
from .case import Case, Epoch, View, parse_script
from .check import Outcome, Setting, check, error_kind
from .followers import Change
from .references import Interpreted, OnDuckDB, Reference
from .replay import main as replay
from .subject import Headwater

CASE = parse_script("""\
CREATE TABLE t0 (a INT, x DOUBLE);
CREATE STREAM s1 (a INT);
CREATE VIEW v0 AS SELECT a, avg(x) AS m FROM t0 GROUP BY a;
CREATE VIEW v1 AS SELECT r.a FROM t0 AS r JOIN s1 AS s ON r.a = s.a;
epoch
  insert t0
    [1, 0.25]
    [1, 0.5]
    [1, 1.0]
    [null, null]
  insert s1
    [1]
CREATE VIEW v2 AS SELECT a, count(*) AS n FROM s1 GROUP BY a;
epoch
  delete t0
    [1, 0.5]
  insert s1
    [1]
epoch
  update t0 {"set": {"a": 2}, "where": {"a": null}}
""")


def run(subject: type[Headwater], *judges: str, case: Case = CASE) -> Outcome:
    def setting(case: Case) -> Setting:
        made = subject()
        references: dict[str, Callable[[], Reference]] = {
            "interpreter": lambda: Interpreted(made.algebra),
            "duckdb": lambda: OnDuckDB(case),
        }
        return made, [references[judge]() for judge in judges]

    return check(case, setting)


def test_headwater_passes() -> None:
    outcome = run(Headwater, "interpreter", "duckdb")
    assert outcome.failure is None
    assert outcome.epochs == 3
    compared = {name: outcome.compared[name] for name in ("interpreter", "duckdb", "follower")}
    assert compared == {"interpreter": 11, "duckdb": 11, "follower": 11}
    assert outcome.compared["points"] > 0


class LosesACopy(Headwater):
    def contents(self, view: str) -> Bag:
        return type(held := super().contents(view))(held.keys())


class ForgetsAChange(Headwater):
    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        return {view: type(bag)(dict(list(bag.items())[:1])) for view, bag in super().apply(epoch).items()}


class ReportsAGhost(Headwater):
    """A row that comes and goes within the epoch: contents cannot show it."""

    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        changes = super().apply(epoch)
        for bag in changes.values():
            bag[(9, 9.0)] = 0
        return changes


class GoesNegative(Headwater):
    def contents(self, view: str) -> Bag:
        held = super().contents(view)
        return type(held)({row: n if self.epoch < 2 else -n for row, n in held.items()})


class RoundsBadly(Headwater):
    def contents(self, view: str) -> Bag:
        held = super().contents(view)
        shifted = {tuple(v * (1 + 1e-12) if isinstance(v, float) else v for v in row): n for row, n in held.items()}
        return type(held)(shifted)


@pytest.mark.parametrize(
    ("subject", "judge", "kind", "view", "epoch"),
    [
        (LosesACopy, "interpreter", "contents differ from interpreter", "v1", 1),
        (LosesACopy, "duckdb", "contents differ from duckdb", "v1", 1),
        (ForgetsAChange, "interpreter", "changelog differs from interpreter", "v0", 1),
        (ForgetsAChange, "duckdb", "contents are not what the changelog leads to", "v0", 1),
        (ReportsAGhost, "interpreter", "changelog differs from interpreter", "v0", 1),
        (GoesNegative, "interpreter", "negative multiplicity", "v0", 2),
        (RoundsBadly, "interpreter", "contents differ from interpreter", "v0", 1),
    ],
)
def test_sabotage_is_noticed(subject: type[Headwater], judge: str, kind: str, view: str, epoch: int) -> None:
    failure = run(subject, judge).failure
    assert failure is not None
    assert (failure.kind, failure.view, failure.epoch) == (kind, view, epoch)


class TellsTwice(Headwater):
    """A subscriber comes back one epoch too early."""

    def gather(self) -> None:
        super().gather()
        for view, changes in self._told.items():
            changes += [one for one in changes if one.op == "+" and view == "v2"]


class TellsTooLittle(Headwater):
    def gather(self) -> None:
        super().gather()
        self._told = {view: changes[:1] for view, changes in self._told.items()}


class TellsTooMuch(Headwater):
    """An update as a row that goes and one that comes: the contents are right, and it is not the least."""

    def gather(self) -> None:
        super().gather()
        for view, changes in self._told.items():
            parts = [[one] if one.old is None else _in_two(one) for one in changes]
            self._told[view] = [one for part in parts for one in part]


def _in_two(one: Change) -> list[Change]:
    assert one.old is not None
    return [Change(one.epoch, "-", one.old, None), Change(one.epoch, "+", one.row, None)]


class TellsLate(Headwater):
    """What subscribers are told of one epoch, they are told with the next."""

    _late: list[Change] | None = None

    def told(self, view: str) -> list[Change] | None:
        told = super().told(view)
        if view == "v0" and self.epoch:
            self._late, told = told, self._late or []
        return told


CANNOT = "a subscriber was told what cannot be"
LACKS = "a subscriber has not what the view holds"


@pytest.mark.parametrize(
    ("subject", "kind", "view", "epoch"),
    [
        (TellsTwice, CANNOT, "v2", 2),
        (TellsTooLittle, LACKS, "v0", 1),
        (TellsTooMuch, CANNOT, "v0", 2),
        (TellsLate, LACKS, "v0", 1),
    ],
)
def test_sabotage_of_subscribers_is_noticed(subject: type[Headwater], kind: str, view: str, epoch: int) -> None:
    failure = run(subject, "interpreter").failure
    assert failure is not None
    assert (failure.kind, failure.view, failure.epoch) == (kind, view, epoch)


def test_duckdb_forgives_the_last_bits_of_a_double() -> None:
    failure = run(RoundsBadly, "duckdb").failure
    assert failure is not None
    assert failure.kind == "contents are not what the changelog leads to"


def test_a_stream_that_keeps_nothing_begins_with_the_view() -> None:
    """v2 is created after the stream's first row, which it must not see."""

    class SeesThePast(Headwater):
        def create_view(self, view: View) -> None:
            if view.name == "v2":
                view = View("v2", "SELECT 1 AS a, CAST(1 AS BIGINT) AS n")
            super().create_view(view)

    failure = run(SeesThePast, "duckdb").failure
    assert failure is not None
    assert (failure.kind, failure.view, failure.epoch) == ("contents differ from duckdb", "v2", 1)


def test_errors_are_failures_known_by_their_gist() -> None:
    class Breaks(Headwater):
        def apply(self, epoch: Epoch) -> dict[str, Bag]:
            raise RuntimeError(f"no table 'x{len(epoch)}' (of {len(epoch)})")

    failure = run(Breaks, "interpreter").failure
    assert failure is not None
    assert failure.kind == "error RuntimeError: no table … …"
    assert error_kind(RuntimeError("no table 'y7' (of 3)")) == failure.kind


def test_what_is_not_supported_is_counted_not_failed() -> None:
    case = parse_script("CREATE TABLE t0 (a INT);\nCREATE VIEW v0 AS SELECT kurtosis(a) AS m FROM t0;\n")
    outcome = run(Headwater, "interpreter", case=case)
    assert outcome.failure is None
    assert outcome.unsupported is not None
    assert outcome.unsupported.startswith("HW2")


def test_replay_says_how_it_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.txt"
    path.write_text(str(CASE), encoding="utf-8")
    assert replay([str(path)]) == 0
    assert "passes, 3 epochs" in capsys.readouterr().out
