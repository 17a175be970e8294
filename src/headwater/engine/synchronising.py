"""An epoch's part in synchronised relations: what waits in it, and what is released."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence, Set
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from headwater.emit.duckdb import Emitter
from headwater.emit.layout import sql, store_table
from headwater.emit.synchronise import arrivals, waiting_of
from headwater.engine.operations import Operation, TimePoints
from headwater.engine.parsed import Parsed
from headwater.engine.schedule import Synchronised
from headwater.engine.ticks import Ticks, seconds_between
from headwater.engine.workspace import Workspace, delta_of
from headwater.store.catalog import CLOCK_COLUMN, CLOCK_FORMAT, CLOCK_STREAM, Catalog

#: What waits for a tick is added up when it has so many rows, and when it has doubled.
MANY_WAITING = 50_000
#: So many time points come to the clock stream in one epoch at most; older ones are left out.
MOST_SECONDS = 86_400
#: Whether a relation lies away, and how many rows of it do: perhaps its files cannot be read yet.
_LISTED = "SELECT count(*) > 0, coalesce(sum(rows), 0)::BIGINT FROM hw.segments WHERE relation = ?"


class Waiting:
    """How many rows wait for each synchronised relation, as of the last epoch."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, catalog: Catalog) -> None:
        self.rows = {one.name: rows_waiting(connection, one.name) for one in catalog if one.policy is not None}
        #: When what waits is added up next, by its rows.
        self.limits: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.rows.get(name, 0)

    def begin(self, names: Sequence[str]) -> None:
        """Some synchronised relations have been made."""
        self.rows |= dict.fromkeys(names, 0)

    def end(self, name: str) -> None:
        """A relation is gone."""
        self.rows.pop(name, None)
        self.limits.pop(name, None)


@dataclass(frozen=True)
class When:
    """What decides which policies tick in an epoch, besides what comes to synchronisation streams.

    Attributes:
        asked: policies that somebody wants to tick, by their text.
        before: the clock of the epoch before.
        now: the clock of this one.
    """

    asked: Set[str]
    before: dt.datetime | None
    now: dt.datetime


class Round:
    """What one attempt at an epoch does to synchronised relations; nothing counts before it is committed."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        parsed: Parsed,
        catalog: Catalog,
        workspace: Workspace,
        waiting: Waiting,
        when: When,
    ) -> None:
        self._connection = connection
        self._parsed = parsed
        self._catalog = catalog
        self._workspace = workspace
        self._limits = waiting.limits
        self.rows = dict(waiting.rows)
        self._ticks = Ticks(when.asked, when.before, when.now, self._came)

    @property
    def ticked(self) -> list[str]:
        """The policies that have ticked so far."""
        return self._ticks.ticked

    def ticks(self, follows: Synchronised) -> bool:
        """Whether the policy of a synchronised relation ticks; asked when what may make it tick has changed."""
        return self._ticks(follows.policy)

    def may_tick(self, follows: Synchronised, changing: Set[str]) -> bool:
        """Whether it may tick, if nothing changes but some relations; asked at any time."""
        return self._ticks.may(follows.policy, changing)

    def follow(self, name: str, follows: Synchronised, epoch: int) -> None:
        """Let what has changed in a relation wait for the next tick of a policy, or release what waits."""
        coming = self._workspace.rows(delta_of(follows.source))
        waits = self.rows.get(name, 0)
        if not self._ticks(follows.policy):
            if coming:
                self._wait(name, follows, epoch)
            return
        if coming and waits:
            self._workspace.fill(follows.sql.release_both)
        elif coming or waits:
            self._workspace.fill(follows.sql.release_coming if coming else follows.sql.release_waiting)
        if waits:
            self._connection.execute(follows.sql.clear)
            self.rows[name] = 0

    def _wait(self, name: str, follows: Synchronised, epoch: int) -> None:
        found = self._parsed.execute(self._connection, follows.sql.wait, {"epoch": epoch}).fetchone()
        self.rows[name] = self.rows.get(name, 0) + (int(found[0]) if found else 0)
        if follows.sql.add_up is None or self.rows[name] <= self._limits.get(name, MANY_WAITING):
            return
        for statement in follows.sql.add_up:
            self._connection.execute(statement)
        self.rows[name] = rows_waiting(self._connection, name)
        self._limits[name] = max(MANY_WAITING, 2 * self.rows[name])

    def _came(self, name: str) -> bool:
        """Whether any row has come to a relation in the epoch under way."""
        relation = self._catalog.find(name)
        if relation is None or not self._workspace.rows(delta_of(relation.name)):
            return False
        query = arrivals(relation.name, relation.fields, Emitter(self._catalog.grouped))
        return bool(self._connection.execute(query).fetchall())


def rows_waiting(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    """How many rows are stored for the next tick, at home or away."""
    listed = connection.execute(_LISTED, [waiting_of(name)]).fetchone()
    if listed is not None and listed[0]:
        return int(listed[1])
    [(rows,)] = connection.execute(f"SELECT count(*) FROM {sql(store_table(waiting_of(name)))}").fetchall()
    return int(rows)


def time_points(catalog: Catalog, before: dt.datetime | None, now: dt.datetime) -> tuple[Operation, ...]:
    """What comes to the clock stream in an epoch, if there is one: the whole seconds since the last epoch.

    Or since it was made, if that was later: nobody has asked for those before.
    """
    stream = catalog.find(CLOCK_STREAM)
    if stream is None or stream.source is None or stream.source.format != CLOCK_FORMAT:
        return ()
    made = dt.datetime.fromisoformat(stream.source.location)
    seconds = seconds_between(made if before is None else max(before, made), now, MOST_SECONDS)
    return (TimePoints(stream.name, pa.table({CLOCK_COLUMN: pa.array(seconds, pa.int64())})),) if seconds else ()
