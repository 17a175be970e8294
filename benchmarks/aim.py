"""AIM: six views over calls of up to ten million customers, while calls come and views are read.

After Winter, Schmidt, Neumann and Kemper, "Meet Me Halfway: Split Maintenance of Continuous Views", section 4.1.

| measure | what it says |
|---|---|
| insert | events a second with all six views there, and nobody reading (figure 9) |
| read | reads a second of each view while nothing changes (table 3) |
| ad hoc | queries a second over the views, each another one, beside DuckDB over tables with the same rows |
| concurrent | one thread inserts, at a rate or as fast as it can, and another one reads (figure 8) |
"""

from __future__ import annotations

import functools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from tests.queries.harness import unmatched

from benchmarks.aim_systems import AimSystem, DuckRecompute, HardCoded, Headwater, PlainTables, Reference
from benchmarks.disk import scratch
from benchmarks.options import option
from benchmarks.pacing import Seen, insert_and_read
from benchmarks.refreshing import EVERY_EPOCH, MANUAL, MODES, ON_QUERY
from benchmarks.systems import DUCKDB, HARD_CODED, bag
from benchmarks.workloads import aim
from headwater.errors import HeadwaterError

MEASURES = ("insert", "read", "ad hoc", "concurrent")
SYSTEMS = (ON_QUERY, EVERY_EPOCH, MANUAL, HARD_CODED, DUCKDB)
#: Batches that are not counted, and the least number of reads that are measured.
WARM_UP, LEAST_READS = 3, 3
#: Queries over the views; a number makes each another one, so that no answer can be kept.
AD_HOC = {
    "filter": "SELECT * FROM q4 WHERE city_zip > {number}",
    "aggregate": "SELECT count(*) AS n, sum(cost_long) AS c FROM q5 WHERE cost_local > {number}",
    "join": "SELECT q5.region_id, count(*) AS n FROM q4 JOIN q5 ON q4.city_zip % 25 = q5.region_id "
    "WHERE q4.city_zip > {number} GROUP BY q5.region_id",
}

Row = dict[str, object]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    measures: tuple[str, ...] = option(MEASURES, "what is measured")
    systems: tuple[str, ...] = option(SYSTEMS, "systems; there is also 'AUTO'")
    entities: tuple[int, ...] = option((10_000, 1_000_000, 10_000_000), "customers")
    events: int = option(1_000_000, "events that are inserted where nobody reads")
    batch: int = option(10_000, "events in a batch")
    rates: tuple[int, ...] = option((10_000, 50_000, 0), "events a second beside reads; 0 for as fast as it goes")
    seconds: float = option(12.0, "seconds for the reads of all views, for ad hoc queries, and for each rate")
    limit: float = option(60.0, "seconds that a system may take for the inserts")
    checked: int = option(2, "concurrent reads of each view that are held against a recomputation")


@dataclass
class Lane:
    """A system, and how many batches it has taken."""

    system: AimSystem
    taken: int = 0
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def insert(self, batch: pa.Table) -> None:
        """Take the next batch, and note the milliseconds by the clock and of all processors."""
        began, used = time.perf_counter(), time.process_time()
        self.system.insert(batch)
        self.taken += 1
        self.wall.append(1000 * (time.perf_counter() - began))
        self.processor.append(1000 * (time.process_time() - used))


def run(report: Report, options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures for each measure, case and system, and then what they say of the claims."""
    measured: list[Row] = []
    for entities in options.entities:
        for row in _measure(report, options, aim.Calls(entities, options.batch)):
            measured.append({**row, "entities": entities})
            yield measured[-1]
    yield from claims(measured)


def _measure(report: Report, options: Options, calls: aim.Calls) -> Iterator[Row]:
    report(f"{calls.entities:,} customers")
    with scratch() as folder:
        reference = Reference(calls)
        lanes: list[Lane] = []
        try:
            for name, make in _makers(folder, calls.customers(), options.systems).items():
                try:
                    lanes.append(Lane(make()))
                except HeadwaterError as error:
                    report(f"  {name} is absent: {error.code}")
                    yield _row("insert", _inserts(calls), name, note=f"absent: {error.code}")
            yield from _inserting(report, options, calls, lanes, reference)
            if "read" in options.measures:
                yield from _reading(report, options, calls, lanes)
            if "ad hoc" in options.measures:
                yield from _asking(report, options, calls, lanes)
            if "concurrent" in options.measures:
                yield from _both(report, options, calls, lanes, reference)
        finally:
            for lane in lanes:
                lane.system.close()
            reference.close()


def _makers(folder: Path, customers: pa.Table, systems: Sequence[str]) -> dict[str, Callable[[], AimSystem]]:
    out: dict[str, Callable[[], AimSystem]] = {}
    for name in systems:
        if name in MODES:
            out[name] = functools.partial(Headwater, folder, customers, name)
        else:
            out[name] = functools.partial({HARD_CODED: HardCoded, DUCKDB: DuckRecompute}[name], folder, customers)
    return out


def _row(measure: str, case: str, system: str, **figures: object) -> Row:
    return {"measure": measure, "case": case, "system": system, **figures}


# -- inserts -----------------------------------------------------------------------------------------------------------


def _inserts(calls: aim.Calls) -> str:
    return f"{calls.entities:,} customers, batches of {calls.rows:,}"


def _inserting(
    report: Report, options: Options, calls: aim.Calls, lanes: Sequence[Lane], reference: Reference
) -> Iterator[Row]:
    """Insert events; all take turns, and must have the right views in the end. Without figures it is a load."""
    wanted = WARM_UP + max(1, options.events // calls.rows)
    report(f"  insert: {wanted} batches")
    for number in range(wanted):
        batch = calls.batch(number)
        turns = [lane for lane in lanes if not lane.wall or sum(lane.wall) < 1000 * options.limit]
        shift = number % max(1, len(turns))  # nobody is always first
        for lane in turns[shift:] + turns[:shift]:
            lane.insert(batch)
    for lane in lanes:
        lane.system.rest()
        check(lane, reference)
    if "insert" not in options.measures:
        return
    rates = {lane.system.name: _rate(calls, lane) for lane in lanes}
    for lane in lanes:
        name = lane.system.name
        wall, processor = (some[WARM_UP:] or some for some in (lane.wall, lane.processor))
        yield _row(
            "insert",
            _inserts(calls),
            name,
            **{
                "events/s": round(rates[name]),
                "p50 ms": round(statistics.median(wall), 2),
                "worst ms": round(max(wall), 2),
                "processor ms": round(statistics.median(processor), 2),
                "state MiB": round(lane.system.state_bytes() / 2**20, 1),
                "rate to hard-coded": _to_hard_coded(rates, name),
                "note": None if lane.taken == wanted else f"stopped after {lane.taken} of {wanted} batches",
            },
        )


def _rate(calls: aim.Calls, lane: Lane) -> float:
    counted = lane.wall[WARM_UP:] or lane.wall
    return 1000 * calls.rows * len(counted) / sum(counted)


def _to_hard_coded(rates: dict[str, float], name: str) -> float | None:
    return float(f"{rates[name] / rates[HARD_CODED]:.3g}") if HARD_CODED in rates else None


def check(lane: Lane, reference: Reference) -> None:
    """A system has the right views."""
    for view in aim.NAMES:
        wrong = list(unmatched(bag(lane.system.read(view)), bag(reference.answer(view, lane.taken))))
        if wrong:
            raise AssertionError(f"{lane.system.name} is wrong in {view} after {lane.taken} batches: {wrong[:3]}")


# -- reads -------------------------------------------------------------------------------------------------------------


def _reading(report: Report, options: Options, calls: aim.Calls, lanes: Sequence[Lane]) -> Iterator[Row]:
    """Read each view again and again while nothing changes. The first read is apart: it may have to compute."""
    report("  read")
    for view in aim.NAMES:
        rates: dict[str, float] = {}
        rows: dict[str, Row] = {}
        for lane in lanes:
            read = functools.partial(lane.system.read, view)
            rates[lane.system.name], rows[lane.system.name] = _often(read, options.seconds / len(aim.NAMES))
        for name, row in rows.items():
            ratio = _to_hard_coded(rates, name)
            yield _row("read", f"{view}, {calls.entities:,} customers", name, **row, **{"rate to hard-coded": ratio})


def _often(read: Callable[[], object], seconds: float) -> tuple[float, Row]:
    """Reads a second, and what is told of them."""
    read()
    times: list[float] = []
    began, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds or len(times) < LEAST_READS:
        start = time.perf_counter()
        read()
        times.append(1000 * (time.perf_counter() - start))
    rate = len(times) / (time.perf_counter() - began)
    processor = 1000 * (time.process_time() - used) / len(times)
    return rate, {
        "reads/s": round(rate, 1),
        "p50 ms": round(statistics.median(times), 3),
        "worst ms": round(max(times), 2),
        "processor ms": round(processor, 3),
    }


def _asking(report: Report, options: Options, calls: aim.Calls, lanes: Sequence[Lane]) -> Iterator[Row]:
    """Queries over the views, beside plain tables with the same rows; all must answer alike."""
    report("  ad hoc")
    ours = [lane.system for lane in lanes if isinstance(lane.system, Headwater)]
    for system in ours:
        for view in aim.NAMES:
            system.read(view)  # whoever has to be told to refresh is told
    plain = PlainTables((name, ours[0].db.query(f"SELECT * FROM {name}")) for name in aim.NAMES) if ours else None
    if plain is None:
        return
    seconds = options.seconds / len(AD_HOC) / (1 + len(ours))
    asked: dict[str, Callable[[str], pa.Table]] = {system.name: system.db.query for system in ours}
    asked[plain.name] = plain.ask
    try:
        for case, text in AD_HOC.items():
            expected = bag(plain.ask(text.format(number=7)))
            rates: dict[str, float] = {}
            rows: dict[str, Row] = {}
            for name, ask in asked.items():
                if wrong := list(unmatched(bag(ask(text.format(number=7))), expected)):
                    raise AssertionError(f"{name} answers {case} wrongly: {wrong[:3]}")
                numbers = random.Random(1)
                different = functools.partial(_ask_another, ask, text, numbers)
                rates[name], rows[name] = _often(different, seconds)
            for name, row in rows.items():
                ratio = round(rates[name] / rates[plain.name], 2)
                yield _row(
                    "ad hoc", f"{case}, {calls.entities:,} customers", name, **row, **{"rate to plain tables": ratio}
                )
    finally:
        plain.close()


def _ask_another(ask: Callable[[str], pa.Table], text: str, numbers: random.Random) -> pa.Table:
    return ask(text.format(number=numbers.randrange(10**6) / 1000))


# -- both --------------------------------------------------------------------------------------------------------------


def _both(
    report: Report, options: Options, calls: aim.Calls, lanes: Sequence[Lane], reference: Reference
) -> Iterator[Row]:
    """One thread inserts, another one reads any of the views; a sample of what was read is checked."""
    for rate in options.rates:
        case = f"{f'{rate:,} events/s' if rate else 'full speed'}, {calls.entities:,} customers"
        report(f"  concurrent: {case}")
        rates: dict[str, float] = {}
        rows: dict[str, Row] = {}
        for lane in lanes:
            system, first = lane.system, lane.taken
            system.rest()
            seen = insert_and_read(
                functools.partial(_insert_after, system, calls, first),
                system.read,
                aim.NAMES,
                pause=calls.rows / rate if rate else 0.0,
                seconds=options.seconds,
                keep=options.checked,
            )
            lane.taken += seen.inserted
            compared = witnessed(system.name, seen, first, reference)
            check(lane, reference)
            rates[system.name] = len(seen.times) / seen.seconds
            rows[system.name] = {
                "events/s": round(seen.inserted * calls.rows / seen.seconds),
                "reads/s": round(rates[system.name], 1),
                "p50 ms": round(statistics.median(seen.times), 3),
                "worst ms": round(max(seen.times), 2),
                "processor ms": round(1000 * seen.processor / seen.seconds),
                "checked": compared,
            }
        for name, row in rows.items():
            yield _row("concurrent", case, name, **row, **{"rate to hard-coded": _to_hard_coded(rates, name)})


def _insert_after(system: AimSystem, calls: aim.Calls, first: int, number: int) -> None:
    system.insert(calls.batch(first + number))


def witnessed(system: str, seen: Seen, first: int, reference: Reference) -> int:
    """Each read that was kept is what the view holds after some whole batch.

    Args:
        system: its name.
        seen: what was read.
        first: how many batches there were before.
        reference: knows what is right.

    Returns:
        How many were compared.
    """
    for read in seen.kept:
        found = bag(read.rows)
        possible = range(first + read.committed, first + read.begun + 1)
        if not any(not list(unmatched(found, bag(reference.answer(read.view, n)))) for n in possible):
            told = f"after no whole number of batches from {possible.start} to {possible.stop - 1}"
            raise AssertionError(f"{system} read {read.view} as it is {told}")
    return len(seen.kept)


# -- what it shows -----------------------------------------------------------------------------------------------------

RATE, FLAT = 0.8, 2.0


def claims(rows: Sequence[Row]) -> Iterator[Row]:
    """What was measured of what split maintenance promises.

    Judged by the time of processors: the clock says more of what else the machine does.
    """
    inserts = {
        (row["entities"], row["system"]): _number(row, "processor ms")
        for row in rows
        if row["measure"] == "insert" and row.get("processor ms") is not None
    }
    ours = {n: ms for (n, system), ms in inserts.items() if system == ON_QUERY}
    for other, least in ((EVERY_EPOCH, 1.0), (HARD_CODED, RATE)):
        ratios = {n: inserts[n, other] / ms for n, ms in ours.items() if (n, other) in inserts}
        if ratios:
            worst = min(ratios, key=lambda n: ratios[n])
            text = f"{ON_QUERY} inserts at {least:g} of the rate of {other} or faster"
            yield _claim(text, ratios[worst] >= least, f"{ratios[worst]:.2f} by processors at {worst:,} customers")
    reads = [row for row in rows if row["measure"] == "read" and row["system"] == ON_QUERY]
    by_view: dict[str, list[float]] = {}
    for row in reads:
        by_view.setdefault(str(row["case"]).partition(",")[0], []).append(_number(row, "processor ms"))
    grown = {view: max(times) / max(min(times), 0.001) for view, times in by_view.items() if len(times) > 1}
    if grown:
        worst_view = max(grown, key=lambda view: grown[view])
        told = f"{worst_view}: the slowest takes {grown[worst_view]:.2f} times as long, by processors"
        yield _claim("an unchanged view is read as fast for any number of customers", grown[worst_view] <= FLAT, told)


def _claim(text: str, holds: bool, told: str) -> Row:
    return _row("claim", text, ON_QUERY, note=f"{'holds' if holds else 'DOES NOT HOLD'}: {told}")


def _number(row: Row, column: str) -> float:
    value = row[column]
    assert isinstance(value, int | float)
    return value
