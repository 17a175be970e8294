"""Split maintenance on TPC-H: lines stream, everything else is there before; inserts against queries.

After Winter, Schmidt, Neumann and Kemper, "Meet Me Halfway: Split Maintenance of Continuous Views", section 4.2.

| figure | what is measured |
|---|---|
| 10 | lines a second from the first to the last, with one refresh at the end |
| 11 | lines a second and queries a second, a query after every so many chunks; it refreshes and fetches |
| write-heavy, read-heavy | milliseconds for a chunk and its reads: one read in many chunks, many reads a chunk |

The systems take turns chunk by chunk, and nobody is always first.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.queries.harness import unmatched

from benchmarks.disk import scratch
from benchmarks.options import option
from benchmarks.refreshing import AUTO, EVERY_EPOCH, MANUAL, MODES, ON_QUERY
from benchmarks.split_systems import (
    Deferred,
    HardCoded,
    Headwater,
    Recomputed,
    SplitSystem,
    Streamed,
    streamed,
)
from benchmarks.systems import DUCKDB, HARD_CODED, bag
from benchmarks.workloads.tpch import Data
from headwater.errors import HeadwaterError

QUERIES = ("q01", "q03", "q06", "q15", "q20")
SYSTEMS = (ON_QUERY, EVERY_EPOCH, MANUAL, AUTO, HARD_CODED, DUCKDB)
INSERT, TRADE_OFF, WRITE_HEAVY, READ_HEAVY = "10", "11", "write-heavy", "read-heavy"
FIGURES = (INSERT, TRADE_OFF, WRITE_HEAVY, READ_HEAVY)
#: At most this share of the lines is left for the chunks that are measured; the others are loaded.
MEASURED_SHARE = 0.9

Row = dict[str, object]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    figures: tuple[str, ...] = option(FIGURES, "what is measured")
    scale: tuple[float, ...] = option((0.1, 1.0), "scale factors")
    queries: tuple[str, ...] = option(QUERIES, "queries")
    systems: tuple[str, ...] = option(SYSTEMS, "systems")
    chunk: int = option(10_000, "lines in a chunk, where all lines are inserted")
    chunks: tuple[int, ...] = option((1_000, 10_000), "lines in a chunk, where queries are asked too")
    often: int = option(40, "chunks that are measured, where queries are asked too")
    every: int = option(10, "chunks from one query to the next, in figure 11")
    mixed: int = option(1_000, "lines in a chunk of the two mixes")
    warm_up: int = option(20, "chunks of a mix that are not counted; AUTO may learn from them")
    rarely: int = option(20, "chunks to a read, where writes prevail")
    reads: int = option(5, "reads to a chunk, where reads prevail")
    limit: float = option(60.0, "seconds that a system may take for all inserts of figure 10")


@dataclass(frozen=True)
class Stage:
    """Chunks of one size, and how often the view is read between them."""

    figure: str
    chunk: int
    warm_up: int
    chunks: int
    #: After every so many chunks the view is read so many times.
    every: int
    reads: int

    @property
    def lines(self) -> int:
        return self.chunk * (self.warm_up + self.chunks)


@dataclass
class Times:
    """Milliseconds of something that was done several times: by the clock, and of all processors together."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def take(self, act: Callable[[], object]) -> None:
        began, used = time.perf_counter(), time.process_time()
        act()
        self.wall.append(1000 * (time.perf_counter() - began))
        self.processor.append(1000 * (time.process_time() - used))


@dataclass
class Lane:
    """A system, how many lines it has taken, and the times of what was measured last."""

    system: SplitSystem
    lines: int = 0
    #: How many lines there were before.
    before: int = 0
    inserts: Times = field(default_factory=Times)
    reads: Times = field(default_factory=Times)
    #: Of all reads that follow a chunk together.
    rounds: Times = field(default_factory=Times)

    def reset(self) -> None:
        self.inserts, self.reads, self.rounds, self.before = Times(), Times(), Times(), self.lines

    def insert(self, query: Streamed, lines: int) -> None:
        chunk = query.lines.slice(self.lines, lines).combine_chunks()
        self.inserts.take(lambda: self.system.insert(chunk))
        self.lines += chunk.num_rows

    def read(self, often: int = 1) -> None:
        def again() -> None:
            for _ in range(often):
                self.reads.take(self.system.read)

        self.rounds.take(again)

    @property
    def rate(self) -> float:
        """Lines a second."""
        return 1000 * (self.lines - self.before) / sum(self.inserts.wall)


def run(report: Report, options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures for each figure, case and system, and then what they say of the claims."""
    measured: list[Row] = []
    with scratch() as folder:
        for scale in options.scale:
            report(f"making TPC-H data at scale {scale}")
            data = Data(folder / f"data-{scale}", scale)
            for name in options.queries:
                query = streamed(name, data)
                for row in _measure(report, options, query):
                    case = f"{name}, scale {scale:g}, chunks of {row['chunk']:,}"
                    measured.append({"figure": row.pop("figure"), "case": case, "query": name, "scale": scale, **row})
                    yield measured[-1]
    yield from claims(measured)


def _measure(report: Report, options: Options, query: Streamed) -> Iterator[Row]:
    if INSERT in options.figures:
        report(f"{query.name}: figure 10")
        yield from _all_lines(report, options, query)
    stages = fitting([one for one in _stages(options) if one.figure in options.figures], query.lines.num_rows)
    if stages:
        yield from _staged(report, options, query, stages)


def _stages(options: Options) -> Iterator[Stage]:
    for chunk in sorted(options.chunks):
        yield Stage(TRADE_OFF, chunk, 1, options.often, options.every, 1)
    yield Stage(WRITE_HEAVY, options.mixed, options.warm_up, max(options.often, 5 * options.rarely), options.rarely, 1)
    yield Stage(READ_HEAVY, options.mixed, options.warm_up, options.often, 1, options.reads)


def fitting(stages: Sequence[Stage], lines: int) -> list[Stage]:
    """The stages, with fewer chunks where there are not enough lines; at least as many as there are to a read."""
    needed = sum(stage.lines for stage in stages)
    share = min(1.0, MEASURED_SHARE * lines / max(1, needed))
    return [
        replace(stage, warm_up=int(share * stage.warm_up), chunks=max(stage.every, int(share * stage.chunks)))
        for stage in stages
    ]


# -- measuring ---------------------------------------------------------------------------------------------------------


def _lanes(
    report: Report, folder: Path, query: Streamed, systems: Sequence[str], opened: ExitStack
) -> tuple[list[Lane], dict[str, str]]:
    """The systems, and why others are absent."""
    lanes, absent = [], {}
    for name in systems:
        make: Callable[[], SplitSystem]
        if name in MODES:
            make = functools.partial(Headwater, folder, query, name)
        else:
            make = functools.partial({HARD_CODED: HardCoded, DUCKDB: Deferred}[name], folder, query)
        try:
            lanes.append(Lane(opened.enter_context(closing(make()))))
        except HeadwaterError as error:
            report(f"  {name} is absent: {error.code}")
            absent[name] = f"absent: {error.code}"
    return lanes, absent


def _all_lines(report: Report, options: Options, query: Streamed) -> Iterator[Row]:
    """All lines, chunk by chunk, and one read."""
    total, chunk = query.lines.num_rows, options.chunk
    with scratch() as folder, ExitStack() as opened:
        lanes, absent = _lanes(report, folder, query, options.systems, opened)
        for number in range(-(-total // chunk)):
            taking = [one for one in lanes if sum(one.inserts.wall) < 1000 * options.limit or not one.lines]
            for lane in _in_turn(taking, number):
                lane.insert(query, chunk)
        for lane in lanes:
            lane.read()
        check(query, lanes)
        rates = {lane.system.name: 1000 * lane.lines / (sum(lane.inserts.wall) + lane.reads.wall[0]) for lane in lanes}
        for lane in lanes:
            name = lane.system.name
            yield {
                "figure": INSERT,
                "chunk": chunk,
                "system": name,
                "lines/s": round(rates[name]),
                "insert p50 ms": round(statistics.median(lane.inserts.wall), 2),
                "insert worst ms": round(max(lane.inserts.wall), 2),
                "insert processor ms": round(statistics.median(lane.inserts.processor), 2),
                "read p50 ms": round(lane.reads.wall[0], 2),
                "rate to hard-coded": _to_hard_coded(rates, name),
                "state MiB": round(lane.system.state_bytes() / 2**20, 1),
                "note": None if lane.lines == total else f"stopped after {lane.lines:,} of {total:,} lines",
            }
    yield from ({"figure": INSERT, "chunk": chunk, "system": name, "note": why} for name, why in absent.items())


def _staged(report: Report, options: Options, query: Streamed, stages: Sequence[Stage]) -> Iterator[Row]:
    """Most lines at once; then the stages, one after the other."""
    load = query.lines.num_rows - sum(stage.lines for stage in stages)
    with scratch() as folder, ExitStack() as opened:
        lanes, absent = _lanes(report, folder, query, options.systems, opened)
        for lane in lanes:
            lane.insert(query, max(1, load))
            lane.read()
        for stage in stages:
            report(f"{query.name}: figure {stage.figure}, chunks of {stage.chunk:,}")
            taking = [lane for lane in lanes if lane.system.name in _taking(stage.figure)]
            # Who takes no part has the lines too, so that all go on from the same place.
            for lane in lanes:
                lane.system.rest()
                if lane not in taking:
                    lane.insert(query, stage.lines)
            _run(query, taking, stage)
            check(query, lanes)
            yield from _figures(stage, taking)
            yield from (
                {"figure": stage.figure, "chunk": stage.chunk, "system": name, "note": why}
                for name, why in absent.items()
                if name in _taking(stage.figure)
            )


def _taking(figure: str) -> Sequence[str]:
    return SYSTEMS if figure == TRADE_OFF else (ON_QUERY, EVERY_EPOCH, AUTO)


def _run(query: Streamed, lanes: Sequence[Lane], stage: Stage) -> None:
    for lane in lanes:
        lane.system.learn()
    for number in range(stage.warm_up + stage.chunks):
        if number == stage.warm_up:
            for lane in lanes:
                lane.system.learn()
                lane.reset()
        for lane in _in_turn(lanes, number):
            lane.insert(query, stage.chunk)
            if (number + 1 - stage.warm_up) % stage.every == 0:
                lane.read(stage.reads)


def _in_turn(lanes: Sequence[Lane], number: int) -> list[Lane]:
    shift = number % max(1, len(lanes))
    return [*lanes[shift:], *lanes[:shift]]


def check(query: Streamed, lanes: Sequence[Lane]) -> None:
    """All have the right rows, for the lines that they have taken."""
    with closing(Recomputed(query)) as recomputed:
        for lines in dict.fromkeys(lane.lines for lane in lanes):
            expected = bag(recomputed.answer(lines))
            for lane in (one for one in lanes if one.lines == lines):
                if wrong := list(unmatched(bag(lane.system.read()), expected)):
                    raise AssertionError(
                        f"{query.name}: {lane.system.name} is wrong after {lines:,} lines: {wrong[:3]}"
                    )


def _figures(stage: Stage, lanes: Sequence[Lane]) -> Iterator[Row]:
    rates = {lane.system.name: lane.rate for lane in lanes}
    for lane in lanes:
        name, inserts, reads, rounds = lane.system.name, lane.inserts, lane.reads, lane.rounds
        middle = statistics.median
        yield {
            "figure": stage.figure,
            "chunk": stage.chunk,
            "system": name,
            "lines/s": round(rates[name]),
            "queries/s": round(1000 * len(reads.wall) / sum(reads.wall), 1),
            "insert p50 ms": round(middle(inserts.wall), 2),
            "insert worst ms": round(max(inserts.wall), 2),
            "insert processor ms": round(middle(inserts.processor), 2),
            "read p50 ms": round(middle(reads.wall), 2),
            "mix ms": round(middle(inserts.wall) + middle(rounds.wall) / stage.every, 3),
            "mix processor ms": round(middle(inserts.processor) + middle(rounds.processor) / stage.every, 3),
            "rate to hard-coded": _to_hard_coded(rates, name),
        }


def _to_hard_coded(rates: dict[str, float], name: str) -> float | None:
    return float(f"{rates[name] / rates[HARD_CODED]:.3g}") if HARD_CODED in rates else None


# -- what it shows -----------------------------------------------------------------------------------------------------

#: Two measurements of the same are that near; AUTO may be that much slower than the better of the two.
NOISE, SLACK = 0.05, 0.2


def claims(rows: Sequence[Row]) -> Iterator[Row]:
    """What was measured of what split maintenance and AUTO promise.

    Judged by the time of processors: the clock says more of what else the machine does. What the clock says is told.
    """
    figures = {(row["figure"], row["case"], row["system"]): row for row in rows if row.get("lines/s") is not None}
    ratios: dict[str, Both] = {}
    for (figure, case, system), row in figures.items():
        if figure == INSERT and system == ON_QUERY and (eager := figures.get((figure, case, EVERY_EPOCH))):
            columns = ("insert processor ms", "insert p50 ms")
            ratios[str(case)] = Both(*(_number(eager, one) / _number(row, one) for one in columns))
    if ratios:
        least = min(ratios, key=lambda case: ratios[case].processor)
        text = f"{ON_QUERY} inserts at least as fast as {EVERY_EPOCH} on every query, but for {NOISE:.0%}"
        yield _claim(text, ON_QUERY, ratios[least].processor >= 1 - NOISE, f"the rate is {ratios[least]} at {least}")
    for mix in (WRITE_HEAVY, READ_HEAVY):
        slower: dict[str, Both] = {}
        for (figure, case, system), row in figures.items():
            both = [one for name in (ON_QUERY, EVERY_EPOCH) if (one := figures.get((figure, case, name)))]
            if figure == mix and system == AUTO and len(both) == 2:
                better = {
                    column: min(_number(one, column) for one in both) for column in ("mix processor ms", "mix ms")
                }
                slower[str(case)] = Both(*(_number(row, column) / least_ms for column, least_ms in better.items()))
        if slower:
            most = max(slower, key=lambda case: slower[case].processor)
            text = f"{AUTO} takes at most {1 + SLACK:g} times as long as the better of the two, {mix}"
            yield _claim(text, AUTO, slower[most].processor <= 1 + SLACK, f"{slower[most]} at {most}")


@dataclass(frozen=True)
class Both:
    """A ratio of times: of processors, and by the clock."""

    processor: float
    wall: float

    def __str__(self) -> str:
        return f"{self.processor:.2f} times by processors, {self.wall:.2f} by the clock,"


def _claim(text: str, system: str, holds: bool, told: str) -> Row:
    note = f"{'holds' if holds else 'DOES NOT HOLD'}: {told}"
    return {"figure": "claim", "case": text, "system": system, "note": note}


def _number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, int | float)
    return value
