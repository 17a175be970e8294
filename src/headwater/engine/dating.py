"""Rows that arrive at a stream with event time: which part they belong to, and whether they come too late.

A stream's watermark is the latest time that a row of it, or ADVANCE STREAM, has told. A part is complete when the
watermark has passed its end. A row for a complete part is taken all the same, as long as the part ended no longer
before the watermark than LATENESS allows, or, without LATENESS, than RETAIN keeps it. What comes later than that is
counted and kept aside, in `data."s#late"`. Rows are judged by the watermark before their epoch. (Yang, Golab and Ozsu,
"ViewDF", section 4.3.)
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.algebra.parts import PART
from headwater.emit import changes
from headwater.emit.probes import Probe
from headwater.engine.ground import NOTHING_DONE
from headwater.engine.ingest import row_number
from headwater.engine.part_limits import takes_rows_for
from headwater.engine.sources import Sources
from headwater.engine.tagger import Tagger
from headwater.engine.ticks import SECOND, microseconds
from headwater.engine.workspace import Workspace
from headwater.errors import UserError
from headwater.store.catalog import Catalog, Relation

TOO_LATE, OUT_OF_BOUNDS = "too late", "out of bounds"
#: A row may be that far ahead of the clock: clocks differ, and zones are forgotten.
AHEAD = 86_400 * SECOND
#: So many parts may be missing between the newest row and the next one.
MOST_MISSING = 500_000

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass
class Arrived:
    """What has come to a stream in an epoch: how many rows for which parts, and the latest time, in microseconds."""

    rows: dict[int, int] = field(default_factory=dict)
    latest: int | None = None


@dataclass
class Coming:
    """Event time in an epoch: what a resolver notes of it, and what is done for parts then.

    Attributes:
        watermarks: of streams, in microseconds since 1970, as of the epoch before.
        lenient: rows that are out of bounds are kept aside; else they are refused.
        told: times that streams were told so far by ADVANCE STREAM.
        arrived: what has come to streams with event time so far.
    """

    watermarks: Mapping[str, int] = field(default_factory=dict)
    lenient: bool = False
    told: dict[str, int] = field(default_factory=dict)
    arrived: dict[str, Arrived] = field(default_factory=dict)


class Dater(Tagger):
    """The part of a resolver that knows of event time."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        workspace: Workspace,
        statements: dict[tuple[str, ...], object],
        readers: Mapping[str, int],
        look_up: Callable[[Probe, int], str],
        sources: Sources,
        clock: dt.datetime,
        coming: Coming | None = None,
    ) -> None:
        """Make it for one epoch; see `Ground`. What it finds out about event time is noted in `coming`."""
        super().__init__(connection, catalog, workspace, statements, readers, look_up, sources, clock)
        self._coming = coming or Coming()

    def _advance(self, stream: Relation, moment: dt.datetime) -> None:
        """A stream is told a time.

        Raises:
            UserError: HW337, it has no event time; HW336, the time is out of all bounds.
        """
        if stream.time is None or stream.key:
            raise UserError(
                "HW337",
                f"{stream.name} has no event time to advance",
                hint="a stream has it with TIMESTAMP BY column; a KEY rules it out",
            )
        at, watermark = microseconds(moment), self._coming.watermarks.get(stream.name)
        limit = microseconds(self._clock) + AHEAD
        if watermark is not None and stream.length is not None:
            limit = min(limit, watermark + MOST_MISSING * stream.length * SECOND)
        if at < 0 or at > limit:
            raise UserError(
                "HW336",
                f"{stream.name} cannot advance to {moment}: that is out of all bounds",
                hint=f"no more than {MOST_MISSING:,} parts at once, nor than a day after the clock, nor before 1970",
            )
        told = self._coming.told
        told[stream.name] = max(at, told.get(stream.name, at))

    def _stamped(self, relation: Relation, rows: pa.Table) -> pa.Table:
        rows = super()._stamped(relation, rows)
        if relation.time is None or relation.key:
            return rows
        self._check_batch(rows, relation, relation.arriving)
        moments = np.asarray(rows.column(relation.time).cast(pa.int64()))
        rows, moments = self._within_bounds(relation, rows, moments)
        length = relation.length * SECOND if relation.length is not None else None
        ends = (moments // length + 1) * length if length is not None else moments
        horizon = self._horizon(relation)
        late = ends <= horizon if length is not None else ends < horizon
        if horizon > 0 and late.any():
            self._set_aside(relation, rows.filter(pa.array(late)), TOO_LATE)
            rows, moments = rows.filter(pa.array(~late)), moments[~late]
        if not rows.num_rows:
            return rows if length is None else rows.append_column(PART, pa.array(moments, pa.int64()))
        self._note(relation, moments, length)
        return rows if length is None else rows.append_column(PART, pa.array(moments // length))

    def _note(self, relation: Relation, moments: Numbers, length: int | None) -> None:
        """Remember which parts rows came for, and the latest time."""
        came = self._coming.arrived.setdefault(relation.name, Arrived())
        low, high = int(moments.min()), int(moments.max())
        came.latest = high if came.latest is None else max(high, came.latest)
        if length is None:
            return
        if low // length == high // length:
            counts = {low // length: len(moments)}
        else:
            found, rows = np.unique(moments // length, return_counts=True)
            counts = dict(zip(found.tolist(), rows.tolist(), strict=True))
        for part, rows_of in counts.items():
            came.rows[part] = came.rows.get(part, 0) + rows_of

    def _horizon(self, relation: Relation) -> int:
        """What is over by this time is closed."""
        watermark, takes = self._coming.watermarks.get(relation.name), takes_rows_for(relation)
        return watermark - takes if watermark is not None and takes is not None else 0

    def _within_bounds(self, relation: Relation, rows: pa.Table, moments: Numbers) -> tuple[pa.Table, Numbers]:
        limit = microseconds(self._clock) + AHEAD
        watermark = self._coming.watermarks.get(relation.name)
        # A pipeline cannot be told to go on: what comes after a long silence is taken, whatever that costs.
        if watermark is not None and relation.length is not None and not self._coming.lenient:
            limit = min(limit, watermark + MOST_MISSING * relation.length * SECOND)
        bad: Flags = (moments < 0) | (moments > limit)
        if relation.length is not None and not bad.all():
            newest = int(moments[~bad].max()) if watermark is None else watermark
            bad |= moments < newest - MOST_MISSING * relation.length * SECOND
        if not bad.any():
            return rows, moments
        if not self._coming.lenient:
            raise self._out_of_bounds(relation, int(bad.argmax()), int(moments[bad.argmax()]))
        self._set_aside(relation, rows.filter(pa.array(bad)), OUT_OF_BOUNDS)
        return rows.filter(pa.array(~bad)), moments[~bad]

    def _out_of_bounds(self, relation: Relation, place: int, moment: int) -> UserError:
        shown = np.datetime64(moment, "us")
        if moment < 0:
            why, hint = "lies before 1970, where parts are counted from", "correct the row"
        elif moment > microseconds(self._clock) + AHEAD:
            now = self._clock.replace(microsecond=0)
            why = f"lies more than a day after the clock, which reads {now}"
            hint = "correct the row, or set the clock: ADVANCE CLOCK TO"
        elif relation.name not in self._coming.watermarks or moment < self._coming.watermarks[relation.name]:
            why = f"lies more than {MOST_MISSING:,} parts before the newest row"
            hint = "correct the row; if it is right, insert older rows first"
        else:
            newest = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=self._coming.watermarks[relation.name])
            why = f"lies more than {MOST_MISSING:,} parts after the newest row, of {newest}"
            hint = (
                f"correct the row; if it is right, ADVANCE STREAM {relation.name} TO a time between, as often as needed"
            )
        return UserError(
            "HW336",
            f"{relation.name}.{relation.time} of {row_number(place)} is {shown}: it {why}",
            hint=f"{hint}; {NOTHING_DONE}",
        )

    def _set_aside(self, relation: Relation, rows: pa.Table, reason: str) -> None:
        self._ignore(relation, reason, rows.num_rows)
        rows = rows.append_column("#reason", pa.array([reason] * rows.num_rows, pa.string()))
        source = self._register(rows, relation, relation.late_fields)
        self._workspace.fill(self._emit(changes.insert_rows, relation.late, relation.late_fields, source, 1))
        self._forget(source)
