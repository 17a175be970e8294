"""Views of parts: what a part costs, for patterns and windows, beside a recomputation and a program by hand.

After Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", section 7, figures 6
to 12. One-minute parts of measurements come, one after the other; the systems take turns, and nobody is always first.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.disk import scratch
from benchmarks.options import option
from benchmarks.part_systems import NAIVE, VIEWDF, HardCoded, Naive, PartSystem, ViewDF, differences
from benchmarks.part_views import PartView, maximum, pattern, pattern_by_hand, total, total_distributive
from benchmarks.systems import HARD_CODED
from benchmarks.workloads.measurements import Measurements

#: Parts that a recomputation looks back to where nothing else is said, in patterns and in figure 8; a window's parts.
SCOPE, SMALL_SCOPE, WINDOW = 20, 4, 10
#: Measurements of a pair in a part, where windows are measured.
RECORDS = 10

Row = dict[str, object]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    figures: tuple[int, ...] = option((6, 7, 8, 9, 10, 11, 12), "the paper's figures")
    scale: float = option(1.0, "all sizes are multiplied by this")
    pairs: tuple[int, ...] = option((100_000, 250_000, 500_000, 1_000_000), "pairs in a part, for patterns")
    scopes: tuple[int, ...] = option((5, 20, 50, 100), "parts that a recomputation of the pattern looks back to")
    shares: tuple[int, ...] = option((10, 25, 50, 75, 100), "percent of the rows that have a high loss")
    rows: tuple[int, ...] = option((1_000_000, 2_500_000, 5_000_000, 10_000_000), "rows in a part, for windows")
    windows: tuple[int, ...] = option((5, 10, 20, 50, 100), "parts in a window, at the smallest of these sizes")
    large_windows: tuple[int, ...] = option((10, 20), "parts in a window, at the largest of these sizes")
    parts: int = option(4, "parts that are measured at a point, after one that is not")
    recomputed: int = option(2, "of these, so many are measured where a view is recomputed")


@dataclass(frozen=True)
class Point:
    """A view to be measured, and the figures that it belongs to."""

    view: PartView
    figures: tuple[int, ...]


@dataclass(frozen=True)
class Session:
    """A stream, and what is measured over it, one after the other."""

    stream: Measurements
    points: tuple[Point, ...]

    @property
    def history(self) -> int:
        """So many parts are there before anything is measured."""
        return max(point.view.back for point in self.points)

    def with_figures(self, figures: Sequence[int]) -> Session:
        kept = (replace(one, figures=tuple(n for n in one.figures if n in figures)) for one in self.points)
        return replace(self, points=tuple(one for one in kept if one.figures))


def run(report: Report, options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures for each figure, point and system, and then what they say of the claims."""
    measured: list[Row] = []
    for session in sessions(options):
        wanted = session.with_figures(options.figures)
        if wanted.points:
            for row in _measure(report, wanted, options):
                measured.append(row)
                yield row
    yield from claims(measured)


def sessions(options: Options) -> Iterator[Session]:
    """All that is measured."""
    pairs = [_scaled(one, options) for one in options.pairs]
    for number in pairs:
        scopes = options.scopes if number == pairs[-1] else ()
        points = [Point(pattern(SCOPE), (6, 7) if SCOPE in scopes else (6,))]
        points += [Point(pattern(scope), (7,)) for scope in scopes if scope != SCOPE]
        points += [Point(pattern_by_hand(SCOPE), (6,))]
        yield Session(Measurements(number), tuple(points))
    for share in options.shares:
        yield Session(Measurements(pairs[-1], share=share / 100), (Point(pattern(SMALL_SCOPE), (8,)),))
    rows = [_scaled(one, options) for one in options.rows]
    for number in rows:
        windows = {WINDOW}
        windows |= set(options.windows) if number == rows[0] else set()
        windows |= set(options.large_windows) if number == rows[-1] else set()
        stream = Measurements(max(1, number // RECORDS), RECORDS)
        points = []
        for make, by_rows, by_window in ((maximum, 9, 10), (total, 11, 12), (total_distributive, 11, None)):
            for window in sorted(windows):
                figures = (by_rows,) if window == WINDOW else ()
                if by_window is not None and number in (rows[0], rows[-1]):
                    figures += (by_window,)
                points.append(Point(make(window), figures))
        yield Session(stream, tuple(points))


def _scaled(size: int, options: Options) -> int:
    return max(1, round(size * options.scale))


# -- measuring ---------------------------------------------------------------------------------------------------------


@dataclass
class Times:
    """What the parts of a point took, in milliseconds: by the clock, and of all processors together."""

    wall: list[float]
    processor: list[float]


def _measure(report: Report, session: Session, options: Options) -> Iterator[Row]:
    stream, history = session.stream, session.history
    report(f"{stream.rows:,} rows in a part, {stream.share:.0%} high: {history} parts of the past")
    names = dict.fromkeys(name for point in session.points for name in point.view.recomputed)
    with scratch() as folder, ExitStack() as opened:
        systems = [opened.enter_context(closing(one)) for one in _systems(folder, list(names))]
        for part in range(history):
            rows = stream.part(part)
            for system in systems:
                system.load(part, rows)
        for point in session.points:
            report(f"  {point.view.name}, {point.view.back} parts")
            taking = [one for one in systems if not isinstance(one, Naive) or one.name in point.view.recomputed]
            for system in taking:
                system.begin(point.view, history - 1)
            ran = 1 + options.parts
            times = _run(stream, taking, systems, range(history, history + ran), options.recomputed)
            _check(point.view, taking, history + ran - 1)
            history += ran
            yield from _figures(point, stream, times)


def _systems(folder: Path, names: Sequence[str]) -> Iterator[PartSystem]:
    yield ViewDF(folder)
    yield HardCoded(folder)
    for name in names:
        yield Naive(folder, name)


def _run(
    stream: Measurements, taking: Sequence[PartSystem], systems: Sequence[PartSystem], parts: range, recomputed: int
) -> dict[str, Times]:
    """Let systems take parts. Those that recompute do it in the last parts only; others get the rows."""
    times = {system.name: Times([], []) for system in taking}
    for number, part in enumerate(parts):
        rows = stream.part(part)
        turn = number % len(systems)
        for system in (*systems[turn:], *systems[:turn]):
            if system not in taking or (system.recomputes and len(parts) - number > recomputed):
                system.load(part, rows)
                continue
            began, used = time.perf_counter(), time.process_time()
            system.take(part, rows)
            if number or system.recomputes:
                times[system.name].wall.append(1000 * (time.perf_counter() - began))
                times[system.name].processor.append(1000 * (time.process_time() - used))
    return times


def _check(view: PartView, taking: Sequence[PartSystem], part: int) -> None:
    """All have the same result."""
    first = taking[0].answer(part)
    for system in taking[1:]:
        wrong = differences(view, first, system.answer(part), whole=not system.recomputes)
        if wrong:
            raise AssertionError(f"{view.name}: {system.name} disagrees with {taking[0].name} in {wrong:,} rows")


def _figures(point: Point, stream: Measurements, times: Mapping[str, Times]) -> Iterator[Row]:
    middle = {name: statistics.median(one.wall) for name, one in times.items()}
    case = f"{point.view.name}, {stream.rows:,} rows, {point.view.back} parts, {stream.share:.0%}"
    for figure in point.figures:
        for name, one in times.items():
            yield {
                "figure": figure,
                "case": case,
                "system": name,
                "rows": stream.rows,
                "back": point.view.back,
                "high": round(100 * stream.share),
                "p50 ms": round(middle[name], 1),
                "worst ms": round(max(one.wall), 1),
                "processor ms": round(statistics.median(one.processor), 1),
                "rows/s": round(1000 * stream.rows / middle[name]),
                "rate to hard-coded": round(middle[HARD_CODED] / middle[name], 2),
                "times naive": round(middle[NAIVE] / middle[name], 1) if NAIVE in middle else None,
            }


# -- what it shows -----------------------------------------------------------------------------------------------------

FASTER, RATE, FLAT = 10.0, 0.8, 1.5


def claims(rows: Sequence[Row]) -> Iterator[Row]:
    """What was measured of the paper's three claims."""
    ours = [row for row in rows if row["system"] == VIEWDF]
    patterns = [row for row in ours if row["figure"] == 6 and row["times naive"] is not None]
    if patterns:
        most = max(patterns, key=lambda row: _number(row, "rows"))
        times = _number(most, "times naive")
        yield _claim(f"{FASTER:g} times as fast as naive: {most['case']}", times >= FASTER, f"{times:g} times")
    if ours:
        least = min(ours, key=lambda row: _number(row, "rate to hard-coded"))
        rate = _number(least, "rate to hard-coded")
        below = {row["case"] for row in ours if _number(row, "rate to hard-coded") < RATE}
        told = f"{rate:g} at {least['case']}; {len(below)} of {len({row['case'] for row in ours})} points below"
        yield _claim(f"at least {RATE:g} of the hard-coded rate everywhere", rate >= RATE, told)
    sums = [row for row in ours if row["figure"] == 12]
    sums = [row for row in sums if row["rows"] == min(_number(one, "rows") for one in sums)]
    if len(sums) > 1:
        times_by_window = [_number(row, "p50 ms") for row in sums]
        grown = max(times_by_window) / min(times_by_window)
        told = f"slowest {grown:.2f} times the fastest, windows of {sums[0]['back']} to {sums[-1]['back']} parts"
        yield _claim("SUM takes the same for any length of the window", grown <= FLAT, told)


def _claim(text: str, holds: bool, told: str) -> Row:
    return {
        "figure": "claim",
        "case": text,
        "system": VIEWDF,
        "note": f"{'holds' if holds else 'DOES NOT HOLD'}: {told}",
    }


def _number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, int | float)
    return value
