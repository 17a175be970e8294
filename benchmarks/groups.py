"""Two views that group the same readings by different keys: each from the readings, and both from finer groups.

(Ghanem et al., "Supporting Views in Data Stream Management Systems", section 10.6: figure 12 has the two pipelines,
section 10.6.2 a case in which the shared one wins, section 10.6.3 one in which it loses.) BuildingGroups and
TemperatureGroups count readings above 80 degrees; a table says which room is in which building. The finer groups are
those of building and temperature: where an epoch's readings fall into few of them, sharing wins; where they are as many
as the readings, or an epoch is small, it loses. Unlike in the paper, readings are counted and not rooms, and views are
fresh after every epoch.

`views ms` is what the statements of the two views take, without the stream's own store, which both pipelines have:
section 9 counts operators. In each case the chosen pipeline is one of the two others, so what it differs from that one
is noise.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from unittest import mock

import numpy as np
import pyarrow as pa

import headwater as hw
from benchmarks.options import option

Row = dict[str, object]
#: So many that adding readings up by room first, which the planner would do otherwise, saves little.
ROOMS = 100_000
VIEWS: Mapping[str, str] = {
    f"{key}Groups": f"SELECT {key}, COUNT(*) AS readings, SUM(Degrees) AS degrees "
    f"FROM Readings r JOIN Room o ON o.RoomID = r.RoomID WHERE Temperature > 80 GROUP BY {key}"
    for key in ("Building", "Temperature")
}
#: What the planner is told that sharing must cost at most, to force it, to forbid it, and to leave it the choice.
PIPELINES: Mapping[str, float | None] = {"apart": 0.0, "shared": 1e9, "chosen": None}
#: Epochs before the views are made, so that the planner has seen something, and epochs that are not counted.
_SEEN, _WARM_UP = 3, 3


@dataclass(frozen=True)
class Case:
    """Readings of some kind.

    Attributes:
        name: what it is there to show.
        share: of the readings in an epoch of the options.
        buildings: of the rooms.
        temperatures: different ones that are read, all above 80 degrees.
    """

    name: str
    share: float
    buildings: int
    temperatures: int


CASES = (
    Case("few finer groups", 1.0, 20, 10),
    Case("finer groups as many as readings", 1.0, 2_000, 2_000),
    Case("small epochs", 0.01, 20, 10),
)


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    rows: int = option(400_000, "readings in an epoch")
    epochs: int = option(15, "epochs that are counted")


@dataclass
class Pipeline:
    """A warehouse with the two views."""

    name: str
    db: hw.Database
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    views_ms: list[float] = field(default_factory=list)

    def apply(self, epoch: pa.Table) -> None:
        self.db.engine.spent.clear()
        began, cpu = time.perf_counter(), time.process_time()
        self.db.insert("Readings", epoch)
        self.seconds.append(time.perf_counter() - began)
        self.cpu_seconds.append(time.process_time() - cpu)
        self.views_ms.append(sum(one.milliseconds for one in self.db.engine.spent.values()))

    @property
    def shares(self) -> bool:
        programs = [self.db.find(view).program for view in VIEWS]
        return all(one is not None and one.shared is not None for one in programs)


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures for each case and pipeline."""
    for case in CASES:
        report(case.name)
        rows = max(round(options.rows * case.share), 1)
        made = _epochs(case, rows, _SEEN + _WARM_UP + options.epochs)
        pipelines = [_pipeline(case, name, worth, made[:_SEEN]) for name, worth in PIPELINES.items()]
        for number, epoch in enumerate(made[_SEEN:]):
            for at in range(len(pipelines)):
                pipelines[(at + number) % len(pipelines)].apply(epoch)
        for view in VIEWS:
            held = [sorted(one.db.query(f"SELECT * FROM {view}").to_pylist(), key=str) for one in pipelines]
            assert held[0] == held[1] == held[2], view
        middle = {one.name: statistics.median(one.views_ms[_WARM_UP:]) for one in pipelines}
        for one in pipelines:
            yield {
                "case": case.name,
                "pipeline": one.name,
                "rows": rows,
                "finer groups": case.buildings * case.temperatures,
                "shares": one.shares,
                "p50 ms": statistics.median(one.seconds[_WARM_UP:]) * 1000,
                "cpu ms": statistics.median(one.cpu_seconds[_WARM_UP:]) * 1000,
                "views ms": middle[one.name],
                "to apart": middle[one.name] / middle["apart"],
            }
            one.db.close()


def _epochs(case: Case, rows: int, many: int) -> list[pa.Table]:
    rng = np.random.default_rng(1)
    return [
        pa.table(
            {
                "RoomID": rng.integers(0, ROOMS, rows, dtype=np.int32),
                "Temperature": rng.integers(81, 81 + case.temperatures, rows, dtype=np.int32),
                "Degrees": rng.integers(0, 100, rows, dtype=np.int32),
            }
        )
        for _ in range(many)
    ]


def _pipeline(case: Case, name: str, worth: float | None, seen: list[pa.Table]) -> Pipeline:
    db = hw.connect()
    assert isinstance(db, hw.Database)
    db.execute("CREATE STREAM Readings (RoomID INT, Temperature INT, Degrees INT) RETAIN ALL")
    db.execute("CREATE TABLE Room (RoomID INT PRIMARY KEY, Building INT)")
    rooms = np.arange(ROOMS, dtype=np.int32)
    db.insert("Room", pa.table({"RoomID": rooms, "Building": rooms % np.int32(case.buildings)}))
    for epoch in seen:
        db.insert("Readings", epoch)
    views = "; ".join(f"CREATE VIEW {view} AS {query}" for view, query in VIEWS.items())
    if worth is None:
        db.execute(views)
    else:
        with mock.patch("headwater.planning_groups.WORTH", worth):
            db.execute(views)
    return Pipeline(name, db)
