"""The temperature workload of SyncSQL: what tags, the merged Select-Tagger and synchronisation cost and save.

Rooms in buildings report their temperature, 20,000 readings a second by a clock that is set by hand, so that nothing
waits for it. A reading replaces the room's last one. (Ghanem et al., "Supporting Views in Data Stream Management
Systems", section 10.1 for the data, 10.3 to 10.5 for the experiments, figures 6 to 11.)
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import headwater as hw
from benchmarks.disk import scratch
from benchmarks.options import option

#: Readings in a second.
RATE = 20_000
BUILDINGS = 20
LOWEST, HIGHEST = 73, 100
COLUMNS = "RoomID INT, Building INT, Temperature INT"
_START = dt.datetime(2024, 1, 1)
#: Epochs that are not counted.
WARM_UP = 3

Row = dict[str, object]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    tuples: int = option(1_200_000, "readings")
    parts: tuple[str, ...] = option(("tagger", "select", "selectivity", "synchroniser", "presynchronisation"), "parts")
    rows: int = option(10_000, "readings in an epoch")
    fine_rows: int = option(1_000, "readings in an epoch where something is synchronised")
    rounds: int = option(2, "how often each pipeline is run; the best counts")


@dataclass(frozen=True)
class Readings:
    """A sequence of readings."""

    rooms: int
    room: np.ndarray
    temperature: np.ndarray

    @property
    def building(self) -> np.ndarray:
        return (self.room % BUILDINGS).astype(np.int32)

    def epochs(self, rows: int) -> list[pa.Table]:
        building = self.building
        return [
            pa.table(
                {
                    "RoomID": self.room[at : at + rows],
                    "Building": building[at : at + rows],
                    "Temperature": self.temperature[at : at + rows],
                }
            )
            for at in range(0, len(self.room), rows)
        ]

    def last(self) -> dict[int, int]:
        """What each room reported last."""
        return dict(zip(self.room.tolist(), self.temperature.tolist(), strict=True))


def readings(tuples: int, rooms: int, walk: bool = False, seed: int = 1) -> Readings:
    """Readings spread evenly over rooms; each is any temperature, or, if it walks, near the room's last one."""
    rng = np.random.default_rng(seed)
    room = rng.integers(0, rooms, tuples, dtype=np.int32)
    if not walk:
        return Readings(rooms, room, rng.integers(LOWEST, HIGHEST + 1, tuples, dtype=np.int32))
    order = np.argsort(room, kind="stable")  # all readings of a room, one after the other
    steps = rng.choice([-1, 0, 1], tuples, p=[0.05, 0.9, 0.05])
    walked = np.cumsum(steps) + rng.integers(0, 56, rooms)[room[order]]
    span = HIGHEST - LOWEST
    temperature = np.empty(tuples, np.int32)
    temperature[order] = LOWEST + np.abs((walked % (2 * span)) - span)
    return Readings(rooms, room, temperature)


@dataclass
class Outcome:
    """What running a pipeline showed."""

    seconds: float
    tuples: int
    state: int | None
    output: int | None = None

    @property
    def rate(self) -> float:
        return self.tuples / self.seconds


def run_pipeline(
    definitions: str,
    epochs: Sequence[pa.Table],
    path: str = ":memory:",
    output: str | None = None,
    check: Callable[[hw.Database], None] = lambda db: None,
) -> Outcome:
    """Send readings through a warehouse.

    Args:
        definitions: what to create; the stream is called `RoomTempStr`.
        epochs: the readings.
        path: the warehouse.
        output: a view whose changes are counted, as a subscriber gets them.
        check: looks at the warehouse at the end.
    """
    db = hw.connect(path)
    assert isinstance(db, hw.Database)
    now = _START
    db.advance_clock(now)
    db.execute(definitions)
    follower = db.subscribe(output) if output is not None else None
    told = 0
    seconds, counted = 0.0, 0
    for number, epoch in enumerate(epochs):
        now += dt.timedelta(seconds=epoch.num_rows / RATE)
        began = time.perf_counter()
        with db.epoch() as e:
            e.advance_clock(now)
            e.insert("RoomTempStr", epoch)
        if number >= WARM_UP:
            seconds += time.perf_counter() - began
            counted += epoch.num_rows
        if follower is not None:
            told += follower.so_far().num_rows
    check(db)
    state = _rows(db, "RoomTempStr")
    db.close()
    return Outcome(seconds, counted, state, told if follower is not None else None)


def _rows(db: hw.Database, store: str) -> int | None:
    reader = db.warehouse.reader()
    try:
        found = reader.execute(f'SELECT sum("#n") FROM data."{store}"').fetchall()
    except duckdb.CatalogException:  # nothing is kept of it
        return None
    finally:
        reader.close()
    return int(found[0][0] or 0)


def best(rounds: int, once: Callable[..., Outcome], *args: Any, **named: Any) -> Outcome:
    """The fastest of some runs."""
    return min((once(*args, **named) for _ in range(rounds)), key=lambda one: one.seconds)


def run(report: Report, options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures for each pipeline."""
    for part in options.parts:
        report(f"{part}")
        yield from PARTS[part](report, options)


# -- figure 6: the Tagger --


def tagger(report: Report, options: Options) -> Iterator[Row]:
    """Readings a second through the Tagger alone, by the number of rooms and of readings in an epoch."""
    for rooms in (200, 600, 2_000, 100_000):
        made = readings(options.tuples, rooms)
        for rows in (1_000, options.rows, 100_000):
            epochs = made.epochs(rows)[:200]
            if len(epochs) < WARM_UP + 3:
                continue
            report(f"  {rooms:,} rooms, epochs of {rows:,}")
            keyed = f"CREATE STREAM RoomTempStr ({COLUMNS}) KEY (RoomID)"
            outcomes = {
                "no tags": best(options.rounds, run_pipeline, _plain("RETAIN ALL"), epochs),
                "Tagger": best(options.rounds, run_pipeline, keyed, epochs),
                "Tagger on disk": best(options.rounds, _on_disk, keyed, epochs),
                "DuckDB upsert": best(options.rounds, _upsert, epochs),
                "Python dict": best(1, _dictionary, epochs),
            }
            for name, outcome in outcomes.items():
                yield {
                    "part": "tagger",
                    "case": f"{rooms:,} rooms, epochs of {rows:,}",
                    "pipeline": name,
                    "rooms": rooms,
                    "rows": rows,
                    "tuples/s": outcome.rate,
                    "ms an epoch": outcome.seconds / outcome.tuples * rows * 1000,
                    "state rows": outcome.state,
                    "to no tags": outcome.seconds / outcomes["no tags"].seconds,
                }


def _plain(clause: str = "") -> str:
    return f"CREATE STREAM RoomTempStr ({COLUMNS}) {clause}"


def _on_disk(definitions: str, epochs: Sequence[pa.Table]) -> Outcome:
    with scratch() as folder:
        return run_pipeline(definitions, epochs, str(folder / "warehouse"))


def _upsert(epochs: Sequence[pa.Table]) -> Outcome:
    """What an engineer would write: each room's last reading into a table with a primary key. No changes come out."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE room (RoomID INT PRIMARY KEY, Building INT, Temperature INT)")
    seconds, counted = 0.0, 0
    for number, epoch in enumerate(epochs):
        batch = epoch.append_column("n", pa.array(np.arange(epoch.num_rows)))  # noqa: F841  (DuckDB finds it by its name)
        began = time.perf_counter()
        connection.execute("""
            INSERT OR REPLACE INTO room
            SELECT RoomID, arg_max(Building, n), arg_max(Temperature, n) FROM batch GROUP BY RoomID
        """)
        if number >= WARM_UP:
            seconds += time.perf_counter() - began
            counted += epoch.num_rows
    [(state,)] = connection.execute("SELECT count(*) FROM room").fetchall()
    connection.close()
    return Outcome(seconds, counted, state)


def _dictionary(epochs: Sequence[pa.Table]) -> Outcome:
    """One reading after the other, as in the paper: each gets its tag, and an update its old values."""
    last: dict[int, tuple[int, int]] = {}
    seconds, counted = 0.0, 0
    for number, epoch in enumerate(epochs):
        began = time.perf_counter()
        tagged = []
        for room, building, temperature in zip(*(one.to_pylist() for one in epoch.columns), strict=True):
            old = last.get(room)
            tagged.append(("+" if old is None else "u", room, building, temperature, old))
            last[room] = (building, temperature)
        if number >= WARM_UP:
            seconds += time.perf_counter() - began
            counted += epoch.num_rows
    return Outcome(seconds, counted, len(last))


# -- figures 7 to 9: Tagger and Select --

HOT = "CREATE VIEW HotRooms AS SELECT RoomID, Temperature FROM RoomTempStr WHERE"


def _select(condition: str) -> dict[str, str]:
    return {
        "Tagger and Select": f"{_plain('KEY (RoomID) RETAIN ALL')}; {HOT} {condition}",
        "merged Select-Tagger": f"{_plain('KEY (RoomID)')}; {HOT} {condition}",
        "Select, no tags": f"{_plain()}; {HOT} {condition}",
    }


def _check_hot(made: Readings, hot: Callable[[int, int], bool]) -> Callable[[hw.Database], None]:
    def check(db: hw.Database) -> None:
        held = sorted(db.query("SELECT RoomID, Temperature FROM HotRooms").to_pylist(), key=lambda row: row["RoomID"])
        expected = sorted((room, degrees) for room, degrees in made.last().items() if hot(room, degrees))
        assert [(row["RoomID"], row["Temperature"]) for row in held] == expected

    return check


def select(report: Report, options: Options) -> Iterator[Row]:
    """Figure 7: the time for ever more readings of 200 rooms."""
    for share in (1 / 3, 2 / 3, 1):
        made = readings(round(options.tuples * share), 200)
        epochs = made.epochs(options.rows)
        times: dict[str, Outcome] = {}
        for name, definitions in _select("Temperature > 80").items():
            check = _check_hot(made, lambda room, degrees: degrees > 80) if "no tags" not in name else lambda db: None
            times[name] = best(options.rounds, run_pipeline, definitions, epochs, check=check)
        yield from _compared("select", f"{len(made.room):,} tuples", times, tuples=len(made.room))


def _compared(part: str, case: str, outcomes: dict[str, Outcome], **facts: object) -> Iterator[Row]:
    plain = outcomes["Select, no tags"]
    for name, outcome in outcomes.items():
        yield {
            "part": part,
            "case": case,
            "pipeline": name,
            **facts,
            "seconds": outcome.seconds,
            "tuples/s": outcome.rate,
            "state rows": outcome.state,
            "output tuples": outcome.output,
            "to no tags": outcome.seconds / plain.seconds,
        }


def selectivity(report: Report, options: Options) -> Iterator[Row]:
    """Figures 8 and 9: conditions on the key and on a temperature that walks or jumps, by how many rows qualify."""
    rooms = 200
    jumping, walking = readings(options.tuples, rooms), readings(options.tuples, rooms, walk=True)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        report(f"  selectivity {share}")
        for by, made in (("key", jumping), ("temperature, walking", walking), ("temperature, jumping", jumping)):
            condition, hot = _condition(by, made, share)
            epochs = made.epochs(options.rows)
            times: dict[str, Outcome] = {}
            for name, definitions in _select(condition).items():
                check = _check_hot(made, hot) if "no tags" not in name else lambda db: None
                times[name] = best(options.rounds, run_pipeline, definitions, epochs, check=check)
                if name == "merged Select-Tagger":
                    times[name].output = run_pipeline(definitions, epochs, output="HotRooms").output
            yield from _compared("selectivity", f"{share:.0%} by {by}", times, by=by, selectivity=share)


def _condition(by: str, made: Readings, share: float) -> tuple[str, Callable[[int, int], bool]]:
    """A condition that this share of readings meets, as text and as a function of room and temperature."""
    if by == "key":
        first = round(share * made.rooms)
        return f"RoomID < {first}", lambda room, degrees: room < first
    limit = {0.0: HIGHEST, 1.0: LOWEST - 1}.get(share)
    degrees_above = int(np.quantile(made.temperature, 1 - share)) if limit is None else limit
    return f"Temperature > {degrees_above}", lambda room, degrees: degrees > degrees_above


# -- figures 10 and 11: the Synchroniser --

STEPS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def _every(step: float) -> str:
    return f"REFRESH EVERY {round(step * 1000)} MILLISECONDS"


def synchroniser(report: Report, options: Options) -> Iterator[Row]:
    """Figure 10: how many tuples leave the Synchroniser, by its period and the number of rooms."""
    for rooms in (200, 600):
        epochs = readings(options.tuples // 4, rooms).epochs(options.fine_rows)
        for step in STEPS:
            view = f"CREATE VIEW out {_every(step)} AS SELECT RoomID, Building, Temperature FROM RoomTempStr"
            definitions = f"{_plain('KEY (RoomID)')}; {view}"
            timed = best(options.rounds, run_pipeline, definitions, epochs)
            yield {
                "part": "synchroniser",
                "case": f"{rooms} rooms, every {step} s",
                "pipeline": "Tagger, Synchroniser",
                "rooms": rooms,
                "step s": step,
                "seconds": timed.seconds,
                "tuples/s": timed.rate,
                "output tuples": run_pipeline(definitions, epochs, output="out").output,
            }


GROUPED = """SELECT Building, count(RoomID) AS cntRooms FROM RoomTempStr WHERE Temperature > 85 GROUP BY Building"""


def presynchronisation(report: Report, options: Options) -> Iterator[Row]:
    """Figure 11: hot rooms by building, synchronised above the aggregate only, or below it."""
    made = readings(options.tuples // 4, 200)
    epochs = made.epochs(options.fine_rows)
    for step in STEPS:
        pipelines = {
            "synchronised above": f"CREATE VIEW current AS {GROUPED}; "
            f"CREATE VIEW BuildHotRooms {_every(step)} AS SELECT * FROM current",
            "presynchronised": f"CREATE VIEW BuildHotRooms {_every(step)} AS {GROUPED}",
        }
        times: dict[str, Outcome] = {}
        for name, views in pipelines.items():
            definitions = f"{_plain('KEY (RoomID)')}; {views}"
            check = _check_buildings(made, epochs, step)
            times[name] = best(options.rounds, run_pipeline, definitions, epochs, check=check)
        through = {
            "synchronised above": run_pipeline(_through(""), epochs, output="seen").output,
            "presynchronised": run_pipeline(_through(_every(step)), epochs, output="seen").output,
        }
        for name, outcome in times.items():
            yield {
                "part": "presynchronisation",
                "case": f"every {step} s",
                "pipeline": name,
                "rooms": 200,
                "step s": step,
                "seconds": outcome.seconds,
                "tuples/s": outcome.rate,
                "aggregated tuples": through[name],
                "to synchronised above": outcome.seconds / times["synchronised above"].seconds,
            }


def _through(refresh: str) -> str:
    """What an aggregate would be given."""
    view = f"CREATE VIEW seen {refresh} AS SELECT RoomID, Building, Temperature FROM RoomTempStr WHERE Temperature > 85"
    return f"{_plain('KEY (RoomID)')}; {view}"


def _check_buildings(made: Readings, epochs: Sequence[pa.Table], step: float) -> Callable[[hw.Database], None]:
    """The view must be as of the last multiple of the period."""
    seconds = len(epochs) * epochs[0].num_rows / RATE
    until = int(np.floor(round(seconds / step, 6)) * step * RATE + 0.5)
    hot = Readings(made.rooms, made.room[:until], made.temperature[:until]).last()
    expected: dict[int, int] = {}
    for room, degrees in hot.items():
        if degrees > 85:
            expected[room % BUILDINGS] = expected.get(room % BUILDINGS, 0) + 1

    def check(db: hw.Database) -> None:
        held = {row["Building"]: row["cntRooms"] for row in db.query("SELECT * FROM BuildHotRooms").to_pylist()}
        assert held == expected

    return check


PARTS: dict[str, Callable[[Report, Options], Iterator[Row]]] = {
    "tagger": tagger,
    "select": select,
    "selectivity": selectivity,
    "synchroniser": synchroniser,
    "presynchronisation": presynchronisation,
}
