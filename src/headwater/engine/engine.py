"""Runs epochs: resolves operations, steps through the schedule, commits once."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from headwater.algebra.clock import CLOCK
from headwater.emit.duckdb import Emitter
from headwater.emit.functions.clock import set_clock
from headwater.emit.layout import Fill, changes_of, sql, store_table
from headwater.emit.probes import Found, Path, Probe
from headwater.engine import faults, part_book
from headwater.engine import seen as seen_views
from headwater.engine.access import Access
from headwater.engine.away import Away
from headwater.engine.changelogs import changelog_query
from headwater.engine.dating import Coming
from headwater.engine.failures import (
    NotPlanned,
    ViewFailed,
    is_fatal,
    is_value_error,
    translate,
)
from headwater.engine.observe import Extents, Spent, Watch
from headwater.engine.operations import (
    DeleteKeys,
    DeleteRows,
    InsertRows,
    Operation,
    Resolver,
    UpsertRows,
    size,
)
from headwater.engine.parsed import Parsed
from headwater.engine.parts import PartRound
from headwater.engine.reaching import may_change
from headwater.engine.rebuild import Rebuild, lost_stream, plan_rebuild
from headwater.engine.restoring import bring_home_for
from headwater.engine.schedule import Emitted, Schedule, make_schedule
from headwater.engine.sorted_copies import Shelf
from headwater.engine.sources import Sources
from headwater.engine.stamps import Stamps
from headwater.engine.subscribers import Hub
from headwater.engine.synchronising import Round, Waiting, When, time_points
from headwater.engine.workspace import Shown, Workspace, delta_of, pending_of
from headwater.errors import HeadwaterError, UserError
from headwater.plan.program import Program
from headwater.store import catalog as catalogs
from headwater.store.catalog import CLOCK_STREAM, Catalog, Index, Kind, Relation
from headwater.store.warehouse import Warehouse

log = logging.getLogger("headwater")

#: Operations whose size is known before they are carried out, and how many rows are few.
_OF_ROWS = InsertRows | DeleteRows | UpsertRows | DeleteKeys
_FEW = 50_000
#: So many epochs are remembered that could be run again, to find out what they take.
_LATELY = 8
_NOTE_EPOCH = "INSERT INTO hw.epochs VALUES ($n, $clock, $changes, $by_relation, $ticked)"

#: Why a pipeline's record is no row of its stream; others are in `headwater.engine.tagger`.
UNREADABLE = "unreadable"
#: A clock reading before the first epoch: whatever a window holds then has not left it.
LONG_AGO = dt.datetime(1970, 1, 1)

Clock = Callable[[], dt.datetime]
Observer = Callable[[int, Mapping[str, pa.Table]], None]


def wall_clock() -> dt.datetime:
    """The present moment in UTC, without a zone, as TIMESTAMP has it."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None)


@dataclass(frozen=True)
class Epoch:
    """A committed epoch.

    Attributes:
        number: counts from 1 without gaps.
        clock: the moment `now()` means in it.
        changes: how many rows its operations brought or took, by relation.
        suspended: views that could not take the epoch, with the reason.
    """

    number: int
    clock: dt.datetime
    changes: Mapping[str, int]
    suspended: Mapping[str, str]


@dataclass(frozen=True)
class Mark:
    """What an epoch says of the pipeline that brought it; committed with it.

    Attributes:
        pipeline: which one.
        batch: the number of the pipeline's batch that the epoch is.
        rejects: how many records of each stream could not be read.
    """

    pipeline: str
    batch: int
    rejects: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """What somebody has done to the clock: it stands at a moment, or goes again if there is none."""

    stands: dt.datetime | None


@dataclass(frozen=True)
class Asked:
    """What an epoch is to do beside its operations; see `Engine.run`."""

    mark: Mark | None
    ticks: Set[str]
    moment: Moment | None
    clock: dt.datetime | None

    def at(self, clock: Clock) -> dt.datetime | None:
        """The moment of the epoch, if it is not the present one; `clock` goes again if it is told to."""
        return self.clock if self.moment is None else self.moment.stands or clock()


@dataclass(frozen=True)
class Building:
    """A view that is being evaluated whole.

    Attributes:
        view: its name.
        percent: how far the statement under way is, or what is done in several steps.
        seconds: since it began.
    """

    view: str
    percent: float
    seconds: float

    def __str__(self) -> str:
        return f"building {self.view}: {self.percent:.0f}% after {self.seconds:.0f} s"


class _Undone(Exception):
    """What a rehearsal ends with."""


class Engine:
    """The writer of a warehouse. Callers hold `lock` while they use it."""

    def __init__(self, warehouse: Warehouse, clock: Clock = wall_clock) -> None:
        self.warehouse = warehouse
        self.clock = clock
        self.lock = threading.RLock()
        self.observers: list[Observer] = []
        #: Who waits for changes of single views.
        self.hub = Hub()
        #: Told that rows were appended, after each epoch.
        self.nudge: Callable[[], None] = lambda: None
        #: The thread that calls observers at the moment.
        self.telling: int | None = None
        #: Rows appended to each store since consolidation last looked at it.
        self.appended: dict[str, int] = {}
        #: Stores with dead rows over which a statement failed, to be rewritten soon: until then epochs run twice.
        self.urgent: set[str] = set()
        #: Stores that were dropped, for whoever remembers something of them to take out.
        self.dropped: set[str] = set()
        #: How often a store was dropped: one that stands when this has not changed is the store it was.
        self.drops = 0
        #: How often the catalogue has changed. Rows that a store holds when this has not came to it in epochs.
        self.redefined = 0
        #: What was seen of the columns of relations, for the planner.
        self.extents: Extents = {}
        #: The rows that the last epochs brought to streams, while a view wants to know; None for what is not that.
        self.lately: deque[tuple[InsertRows, ...] | None] = deque(maxlen=_LATELY)
        self.shelf = Shelf(warehouse.folder)
        #: What the background sorts with at the moment: nobody needs to wait for that.
        self.sorting: duckdb.DuckDBPyConnection | None = None
        #: Whether what was read of a store still holds.
        self.stamps = Stamps()
        #: What lies away from home, where programs run in tasks.
        self.away: Away | None = None
        self._touched: set[str] = set()
        self._emitted: Emitted = {}
        self._building: tuple[str, float] | None = None
        #: How far that is, in percent, if it is done in several steps.
        self.built: float | None = None
        self._took: dict[str, float] = {}
        try:
            self._start()
            #: How views that need not be kept have been read, and what all views take.
            self.seen = seen_views.load(self.connection)
        except duckdb.Error as error:
            raise translate(error) from error

    def _start(self) -> None:
        self.stamps.move_all()
        self.catalog = catalogs.load(self.connection)
        found = self.connection.execute("SELECT coalesce(max(number), 0), max(clock) FROM hw.epochs").fetchone()
        assert found is not None
        self.epoch = int(found[0])
        self.hub.resume(self.epoch)
        #: The clock of the last epoch.
        self.last_clock: dt.datetime | None = found[1]
        stands = self.connection.execute("SELECT value FROM hw.meta WHERE key = 'clock'").fetchone()
        #: Where the clock stands, once somebody has set it by hand.
        self.stands = dt.datetime.fromisoformat(stands[0]) if stands else None
        self.waiting = Waiting(self.connection, self.catalog)
        #: What is known of parts.
        self.book = part_book.load(self.connection)
        self._schedule: Schedule | None = None
        self._parsed = Parsed()
        self._shown = Shown()
        self._statements: dict[tuple[str, ...], object] = {}
        self.access = Access()
        self._sources = Sources()
        self._pin()

    def _pin(self) -> None:
        """Let the copies of indexes be kept."""
        self.access.pinned = frozenset(
            index_path(self.catalog, one, index) for one in self.catalog if not one.lazy for index in one.indexes
        )

    def last_epoch(self) -> int:
        """The number of the last epoch."""
        return self.epoch

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self.warehouse.connection

    @property
    def schedule(self) -> Schedule:
        if self._schedule is None:
            self._schedule = self.schedule_for(self.catalog)
        return self._schedule

    def forget_store(self, store: str) -> None:
        """A store is gone, or will be another one."""
        self.drops += 1
        self.dropped.add(store)
        self.urgent.discard(store)
        self.appended.pop(store, None)
        self.access.forget(store)

    def drop_store(self, store: str) -> None:
        """Drop a store, if there is one, inside the caller's transaction."""
        if self.away is not None and self.away.drop(store):
            return
        self.connection.execute(f"DROP TABLE IF EXISTS {sql(store_table(store))}")

    def is_view_away(self, relation: str) -> bool:
        """Whether the rows of a view of parts lie away."""
        found = self.catalog.find(relation)
        return self.away is not None and found is not None and found.parts is not None and self.away.holds(relation)

    def forget_statements(self) -> None:
        """Emit everything anew: how a relation is stored has changed, and others read it."""
        self._emitted = {}

    def schedule_for(self, catalog: Catalog, net: bool = False) -> Schedule:
        """The schedule of a catalogue; with `net`, the careful form (see `Emitter`), which is rarely needed."""
        return make_schedule(catalog, {}, net) if net else make_schedule(catalog, self._emitted)

    def workspace(self) -> Workspace:
        """Room for the temporary tables of an epoch."""
        return Workspace(self.connection, self._parsed, self._shown)

    def close(self) -> None:
        """Close the warehouse once no epoch is under way."""
        with self.lock:
            if self.warehouse.folder is not None and self.warehouse.is_ours:
                with contextlib.suppress(duckdb.Error, HeadwaterError):  # it can go on without
                    self._note_seen()
            self.warehouse.close()

    def _note_seen(self) -> None:
        timed = self.catalog.timed
        if self.seen.is_new(timed):
            with self.transaction(touched=frozenset):
                self.seen.note(self.connection, timed)

    @property
    def spent(self) -> dict[str, Spent]:
        """How long the statements of each view take."""
        return self.seen.spent

    @property
    def building(self) -> Building | None:
        """The view that is being evaluated whole, for whoever waits; safe to ask from any thread."""
        now = self._building
        if now is None:
            return None
        view, began = now
        percent = self.built
        if percent is None:
            percent = max(0.0, self.connection.query_progress())
        return Building(view, percent, time.monotonic() - began)

    @contextlib.contextmanager
    def tracking(self, view: str) -> Iterator[None]:
        """Let `building` say how far the evaluation of a view is."""
        self.connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        self._building = (view, time.monotonic())
        try:
            yield
        finally:
            self._building = self.built = None
            with contextlib.suppress(duckdb.Error):
                self.connection.execute("RESET enable_progress_bar")

    # -- transactions ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(
        self, landed: Callable[[], bool] = lambda: False, touched: Callable[[], Set[str]] | None = None
    ) -> Iterator[None]:
        """All or nothing; errors of DuckDB leave as errors of ours.

        Args:
            touched: asked for the stores that have changed, so that their stamps move; by default all do.
            landed: asked after a COMMIT that failed, when the file has been read again: whether it happened all the
                same. DuckDB fails so when the log took the transaction, but could not be merged into the file.
        """
        committing = False
        try:
            self._begin()
            yield
            faults.reach("before commit")
            committing = True
            with self.stamps.committing(touched() if touched is not None else None):
                self.connection.execute("COMMIT")
            if self.away is not None:
                self.away.committed()
            faults.reach("after commit")
        except BaseException as error:
            with contextlib.suppress(duckdb.Error):
                self.connection.execute("ROLLBACK")
            self._shown.forget(self.connection)
            self.access.undone()
            self._sources.forget()
            self.stamps.redefining = False
            try:
                recovered = isinstance(error, duckdb.Error) and self.recover(error)
            finally:
                if self.away is not None:
                    self.away.undone(perhaps_not=committing)
            if not isinstance(error, duckdb.Error):
                raise
            if recovered and committing and landed():
                log.warning("a transaction was committed, but the file could not be brought up to date: %s", error)
                return
            raise translate(error) from error

    def _begin(self) -> None:
        try:
            self.connection.execute("BEGIN")
        except duckdb.Error as error:
            if not self.recover(error):  # perhaps what broke it is over
                raise
            self.connection.execute("BEGIN")

    def recover(self, error: duckdb.Error) -> bool:
        """Read the file again after an error that DuckDB does not survive; whether it was such an error."""
        if not is_fatal(error):
            return False
        self.warehouse.reopen()
        self._start()
        if self.away is not None:
            self.away.look_again()
        return True

    def change_catalog(self, after: Catalog, epoch: int | None = None) -> None:
        """Write a new catalogue inside the caller's transaction; call `adopt` once that has committed.

        Args:
            after: the new catalogue.
            epoch: the one under way, if it comes with one; the last one by default.
        """
        if after is not self.catalog:
            self.stamps.redefining = True
            catalogs.save(self.connection, self.catalog, after)
            if self.away is not None:
                self.away.arrange(after, self.epoch if epoch is None else epoch)

    def adopt(self, after: Catalog) -> None:
        if after is not self.catalog:
            self.catalog = after
            self._pin()
            self.stamps.move_all()
            self.stamps.redefining = False
            self.redefined += 1
            self._schedule = None
            self._statements = {}
            self._sources.forget()
            self._shown.forget(self.connection)  # a relation may have the name of another one now, and other columns

    def present(self, moment: dt.datetime | None = None) -> dt.datetime:
        """The moment that an epoch has if it is run now, or is asked to have.

        Time does not run backwards, even if the clock does.
        """
        now = moment or self.stands or self.clock()
        return now if self.last_clock is None else max(now, self.last_clock)

    @property
    def keeps_time(self) -> bool:
        """Whether its clock is the wall clock: then there is something to do when nobody asks for anything."""
        return self.stands is None and self.clock is wall_clock

    # -- epochs ------------------------------------------------------------------------------------------------------

    def run(
        self,
        operations: Sequence[Operation],
        catalog: Catalog | None = None,
        rebuild: str | None = None,
        mark: Mark | None = None,
        ticks: Set[str] = frozenset(),
        moment: Moment | None = None,
        clock: dt.datetime | None = None,
    ) -> Epoch:
        """Apply operations as one epoch. Views that cannot take it are suspended, and it is run without them.

        A view that fails gets two more chances. First everything is run in its careful form: perhaps the view was asked
        of a row that is gone already, or DuckDB tripped over a statement. Then the view is evaluated anew: relations
        change one after the other, so perhaps it was asked of two rows that are never there together.

        Args:
            operations: in order.
            catalog: the catalogue from this epoch on, if it changes with it.
            rebuild: a view to evaluate anew; if that fails the epoch fails.
            mark: what to note of the pipeline that brings the operations.
            ticks: policies that tick because somebody asks for it, by their text.
            moment: which way the clock goes from now on, if somebody sets it.
            clock: the moment that `now()` means in it; the present by default.
        """
        asked = Asked(mark, ticks, moment, clock)
        suspended: dict[str, str] = {}
        anew = {rebuild} if rebuild is not None else set()
        net = False
        while True:
            after = catalog or self.catalog
            try:
                with self._planning(operations, net, bool(anew)):
                    return self._attempt(operations, after, anew, suspended, net, asked, rebuild)
            except NotPlanned:
                if net:
                    raise
                net = True
            except ViewFailed as failed:
                if not net:
                    net = True
                    self.urgent |= set(_found(failed.view, after).program_inputs)
                elif failed.view == rebuild:
                    raise UserError(
                        failed.code, f"view {failed.view}: {failed.reason}", hint="nothing changed"
                    ) from failed
                elif failed.view not in anew and all(_can_rebuild(one, after) for one in _moving(failed.view, after)):
                    log.warning("view %s is evaluated anew: %s", failed.view, failed.reason)
                    anew |= _moving(failed.view, after)
                else:
                    suspended[failed.view] = f"{failed.reason} ({failed.code})"
                    anew.discard(failed.view)
            except BaseException as error:
                if not isinstance(error, Exception):  # interrupted, perhaps when the commit was done already
                    self._start()
                raise

    def _planning(
        self, operations: Sequence[Operation], net: bool, anew: bool
    ) -> contextlib.AbstractContextManager[None]:
        """How DuckDB is to plan the statements of an epoch."""
        if net:
            self.warehouse.plan_quickly(False)
            return self.warehouse.cautious_planning()
        small = all(isinstance(one, _OF_ROWS) for one in operations) and sum(map(size, operations)) <= _FEW
        self.warehouse.plan_quickly(small and not anew)
        return contextlib.nullcontext()

    def _attempt(
        self,
        operations: Sequence[Operation],
        after: Catalog,
        anew: Set[str],
        suspended: Mapping[str, str],
        net: bool,
        asked: Asked,
        refreshed: str | None,
    ) -> Epoch:
        number, clock = self.epoch + 1, self.present(asked.at(self.clock))
        for view, reason in suspended.items():
            after = after.with_changed(catalogs.suspend(_found(view, after), reason, self.epoch))
        schedule = self.schedule if after is self.catalog and not net else self.schedule_for(after, net)
        rebuilds = {
            view: plan_rebuild(_found(view, after), after, all_maps=view != refreshed)
            for view in anew
            if _found(view, after).program is not None
        }
        self._took, self._touched = {}, set()
        done = lambda: self.epoch == number  # noqa: E731
        with self._rereading(), undoing() as begun, self.transaction(done, lambda: self._touched):
            faults.reach("epoch begun")
            coming = Coming(self.book.watermarks, lenient=asked.mark is not None)
            ticks = asked.ticks
            work = self._working(
                operations, after, schedule, number, clock, ticks, coming, begun, rebuilds, anew, net, refreshed
            )
            with work as (resolver, round_, changed):
                observed = self._observe(changed) if self.observers or self.hub.wanted else {}
                self.change_catalog(after, number)
                changes = sum(resolver.counts.values())
                values = {
                    "n": number,
                    "clock": clock,
                    "changes": changes,
                    "by_relation": json.dumps(resolver.counts),
                    "ticked": json.dumps(round_.ticked) if round_.ticked else None,
                }
                self._parsed.execute(self.connection, _NOTE_EPOCH, values)
                for (stream, reason), rows in resolver.ignored.items():
                    self._note_rejects(stream, number, rows, reason)
                if asked.mark is not None:
                    self._note(asked.mark, number)
                if asked.moment is not None:
                    self._set_clock(asked.moment)
                if after.timed and number % seen_views.BETWEEN == 0:
                    self.seen.note(self.connection, after.timed)
        self.epoch, self.last_clock, self.waiting.rows = number, clock, round_.rows
        if asked.moment is not None:
            self.stands = asked.moment.stands
        if not anew:
            for view, seconds in self._took.items():
                self.spent.setdefault(view, Spent(since=number - 1)).add(seconds * 1000)
            self._remember(operations, after)
        self.access.release()
        self.adopt(after)
        self.hub.publish(number, observed)
        self.nudge()
        self._tell(number, observed)
        return Epoch(number, clock, resolver.counts, dict(suspended))

    @contextlib.contextmanager
    def _rereading(self) -> Iterator[None]:
        """If an epoch fails that has brought views of parts home, what is known of their rows is read again."""
        before = self.away.brought if self.away is not None else 0
        try:
            yield
        except BaseException:
            if self.away is not None and self.away.brought != before:
                self.book.multiple = part_book.load(self.connection).multiple
            raise

    @contextlib.contextmanager
    def _working(
        self,
        operations: Sequence[Operation],
        after: Catalog,
        schedule: Schedule,
        number: int,
        clock: dt.datetime,
        ticks: Set[str],
        coming: Coming,
        begun: list[PartRound],
        rebuilds: Mapping[str, Rebuild],
        anew: Set[str],
        net: bool,
        refreshed: str | None = None,
    ) -> Iterator[tuple[Resolver, Round, set[str]]]:
        """All that an epoch does to stores, inside the caller's transaction; its deltas are there until this ends."""
        workspace = self.workspace()

        def look_up(probe: Probe, rows: int) -> str:
            found = self.access.find(self.connection, self._parsed, (probe,), lambda _: rows, number)
            return found.get(probe.alias, "")

        means = self.connection, after, workspace, self._statements, schedule.readers, look_up, self._sources
        parts = PartRound(
            self.connection,
            after,
            workspace,
            self.book,
            number,
            self.append_part,
            coming,
            frozenset(anew),
            self.is_view_away,
        )
        begun.append(parts)
        with Resolver(*means, clock, coming) as resolver:
            for operation in (*time_points(after, self.last_clock, clock), *operations):
                resolver.apply(operation)
            resolver.finish()
            faults.reach("changes resolved")
            resolver.counts.pop(CLOCK_STREAM, None)
            when = When(ticks, self.last_clock, clock)
            round_ = Round(self.connection, self._parsed, after, workspace, self.waiting, when)
            if self.away is None:
                changed = self.flow(schedule, workspace, number, rebuilds, net, clock, round_, parts)
            elif rebuilds or any(map(self.is_view_away, anew)):
                moment = clock, self.last_clock
                changing = may_change(schedule, workspace, rebuilds, anew, round_, coming, *moment)
                bring_home_for(self, self.away, after, refreshed, changing)
                changed = self.flow(schedule, workspace, number, rebuilds, net, clock, round_, parts)
                if after is self.catalog:
                    self.away.arrange(after, number)
            else:
                if after is not self.catalog:  # a view less, perhaps: then others may lie otherwise
                    self.away.arrange(after, self.epoch)
                changed = self.away.flow(schedule, after, workspace, number, net, clock, round_, parts)
            parts.save()
            yield resolver, round_, changed
            for table in workspace.large:
                self.connection.execute(f"DROP TABLE {table}")
                self._shown.tables.discard(table)

    def _remember(self, operations: Sequence[Operation], catalog: Catalog) -> None:
        """Keep the rows of an epoch that could be run again, if some view may want to know what it takes."""
        if not catalog.timed or self.away is not None:
            self.lately.clear()
            return
        rows = tuple(one for one in operations if isinstance(one, InsertRows) and _grows(one.relation, catalog))
        again = len(rows) == len(operations) and rows and sum(map(size, rows)) <= _FEW
        self.lately.append(rows if again else None)

    def rehearse(
        self, operations: Sequence[Operation], after: Catalog, schedule: Schedule, number: int
    ) -> tuple[float, frozenset[str]]:
        """Do what an epoch does, inside a transaction of the caller's that will be undone.

        Returns:
            How many milliseconds that took, and the stores that rows came to.
        """
        self._took, self._touched = {}, set()
        watch = Watch()
        coming, clock, begun = Coming(self.book.watermarks), self.present(), list[PartRound]()
        nothing: frozenset[str] = frozenset()
        try:
            with (
                self._planning(operations, net=False, anew=False),
                self._working(
                    operations, after, schedule, number, clock, nothing, coming, begun, {}, nothing, net=False
                ),
            ):
                took = watch.milliseconds
        finally:
            for one in begun:
                one.undo()
            self.access.release()
        return took, frozenset(self._touched)

    @contextlib.contextmanager
    def rehearsal(self) -> Iterator[None]:
        """A transaction that is undone, whatever happens in it."""
        statements, self._statements = self._statements, {}
        appended = dict(self.appended)
        try:
            with contextlib.suppress(_Undone), self.transaction():
                yield
                raise _Undone
        finally:
            self._statements = statements
            self.appended.clear()
            self.appended.update(appended)

    def _note(self, mark: Mark, number: int) -> None:
        self.connection.execute("DELETE FROM hw.progress WHERE pipeline = ?", [mark.pipeline])
        self.connection.execute("INSERT INTO hw.progress VALUES (?, ?)", [mark.pipeline, mark.batch])
        for stream, records in mark.rejects.items():
            self._note_rejects(stream, number, records, UNREADABLE)

    def _note_rejects(self, stream: str, number: int, records: int, reason: str) -> None:
        self.connection.execute("INSERT INTO hw.rejects VALUES (?, ?, ?, ?)", [stream, number, records, reason])

    def last_batch(self, pipeline: str) -> int | None:
        """The number of a pipeline's last batch that is committed."""
        query = "SELECT max(batch) FROM hw.progress WHERE pipeline = ?"
        found = self.connection.execute(query, [pipeline]).fetchone()
        return found[0] if found else None

    def flow(
        self,
        schedule: Schedule,
        workspace: Workspace,
        epoch: int,
        rebuilds: Mapping[str, Rebuild],
        net: bool = False,
        clock: dt.datetime | None = None,
        round_: Round | None = None,
        parts: PartRound | None = None,
    ) -> set[str]:
        """Carry changes through the stages; returns the names of the relations that changed.

        Args:
            schedule: the stages.
            workspace: with the deltas of the base relations filled.
            epoch: under which number changes are appended.
            rebuilds: views whose maps are evaluated anew, whatever is pending for them.
            net: how to evaluate them; see `Emitter`.
            clock: what it reads now, if it may have advanced; else what it read in the last epoch.
            round_: what is done for synchronised relations; nothing, if it is not given.
            parts: what is done for parts; nothing, if it is not given.
        """
        before = self.last_clock if self.last_clock is not None else LONG_AGO
        if schedule.follows_clock:
            now = clock or self.last_clock or self.present()
            for variable, moment in (("now", now), ("before", before)):
                self.connection.execute(set_clock(variable, moment))
        anew: dict[str, tuple[Fill, ...]] = {}
        at_once: dict[str, str] = {}
        for one in rebuilds.values():
            if self.away is not None:
                self.away.bring_home(one.maps)
            anew |= one.statements(net)
            at_once |= one.first_fills(net)
        changed, alone = workspace.changed, workspace.alone
        for stage in schedule.stages:
            if stage.synchronised is not None and round_ is not None:
                round_.follow(stage.name, stage.synchronised, epoch)
            if stage.arrives is not None and parts is not None:
                parts.arrive(stage.arrives)
            if stage.parts is not None and parts is not None:
                if not parts.follow(stage.parts.relation, stage.parts):
                    continue
                changed.add(stage.name)
                if not stage.read and not self.observers and stage.name not in self.hub.wanted:
                    continue
                workspace.fill(stage.parts.change, {"epoch": epoch})
                if stage.append is not None:
                    self.connection.execute(stage.parts.withdrawal, {"epoch": epoch})
            if stage.name in at_once:
                self._append(stage.name, at_once[stage.name], epoch, stage.view)
                continue
            for statement in anew.get(stage.name, ()):
                self._fill_for_view(stage.view, workspace, statement)
            if stage.settle is not None:
                due = bool(stage.inputs & changed) if stage.recompute else workspace.rows(pending_of(stage.name)) > 0
                if not due and stage.name not in anew:
                    continue
                found = self.look_up(stage.settle.plain.probes, workspace, epoch, stage.view)
                settle = stage.settle.variant(found, alone.get(stage.name, False) and stage.name not in anew)
                if not stage.read and not self.observers and stage.name not in self.hub.wanted:
                    assert settle.settle_and_append is not None
                    self._append(stage.name, settle.settle_and_append, epoch, stage.view)
                    continue
                assert settle.settle is not None
                self._fill_for_view(stage.view, workspace, settle.settle)
            if stage.name == CLOCK:
                if clock is None or clock <= before:
                    continue
            elif not workspace.rows(delta_of(stage.name)):
                continue
            changed.add(stage.name)
            coming = workspace.is_batch(delta_of(stage.name))
            for trigger in stage.triggers:
                if trigger.target.name in anew:  # it reads what is stored, with this change
                    continue
                if coming:
                    trigger = trigger.coming
                trigger = trigger.finding(self.look_up(trigger.probes, workspace, epoch, trigger.view))
                if trigger.target.stepwise:
                    self._append(trigger.target.name, trigger.insert, epoch, trigger.view)
                    changed.add(trigger.target.name)
                else:
                    self._fill_for_view(trigger.view, workspace, trigger.fill)
                    alone[trigger.target.name] = trigger.target.name not in alone and trigger.adds_up
            if stage.append is not None:
                self._append(stage.name, stage.append, epoch, stage.view)
            if stage.keep is not None:
                self._append(changes_of(stage.name), stage.keep, epoch, stage.view)
            faults.reach("relation stepped")
        return changed

    def _set_clock(self, moment: Moment) -> None:
        """Note that the clock stands, or goes again, inside the caller's transaction."""
        self.connection.execute("DELETE FROM hw.meta WHERE key = 'clock'")
        if moment.stands is not None:
            self.connection.execute("INSERT INTO hw.meta VALUES ('clock', ?)", [moment.stands.isoformat()])

    def note_touched(self, stores: Set[str]) -> None:
        """Some stores have changed in the epoch under way."""
        self._touched |= stores

    def look_up(self, probes: Sequence[Probe], workspace: Workspace, epoch: int, view: str | None) -> Found:
        """What stands for stores in a statement that could look these up; see `Access.find`."""
        if not probes:
            return {}
        with self._blaming(view):
            return self.access.find(self.connection, self._parsed, probes, workspace.rows, epoch)

    def _fill_for_view(self, view: str | None, workspace: Workspace, statement: Fill) -> int:
        with self._blaming(view):
            return workspace.fill(statement)

    def _append(self, store: str, statement: str, epoch: int, view: str | None) -> None:
        with self._blaming(view):
            found = self._parsed.execute(self.connection, statement, {"epoch": epoch}).fetchone()
        added = int(found[0]) if found else 0
        self._touched.add(store)
        self.appended[store] = self.appended.get(store, 0) + added
        self.access.appended(store, added, epoch)

    def append_part(self, store: str, statement: str, values: Mapping[str, object], view: str) -> int:
        """Store a part, or what is different of it; returns how many rows that takes."""
        with self._blaming(view):
            found = self._parsed.execute(self.connection, statement, values).fetchone()
        added = int(found[0]) if found else 0
        self._touched.add(store)
        self.appended[store] = self.appended.get(store, 0) + added
        self.access.appended(store, added, int(str(values["epoch"])))
        return added

    @contextlib.contextmanager
    def _blaming(self, view: str | None) -> Iterator[None]:
        """A value that a view's statement cannot take is that view's failure, not the epoch's. Its time is noted."""
        began = time.perf_counter()
        try:
            yield
            if view is not None:
                self._took[view] = self._took.get(view, 0.0) + time.perf_counter() - began
        except duckdb.Error as error:
            if view is None or not is_value_error(error):
                raise
            told: HeadwaterError = translate(error)
            raise ViewFailed(view, told.code, told.message) from error

    def _tell(self, number: int, observed: Mapping[str, pa.Table]) -> None:
        """Call the observers; the epoch is committed, so one that fails changes nothing."""
        before, self.telling = self.telling, threading.get_ident()
        for observer in tuple(self.observers):
            try:
                observer(number, observed)
            except Exception:
                log.exception("an observer of epoch %d failed; the epoch is committed", number)
        self.telling = before

    def _observe(self, changed: set[str]) -> dict[str, pa.Table]:
        """The net change of every view that somebody waits for, as rows with `#n`."""
        out: dict[str, pa.Table] = {}
        if not self.observers:
            changed = changed & self.hub.wanted
        emitter = Emitter(self.catalog.grouped)
        for relation in self.catalog:
            if relation.kind is Kind.VIEW and relation.name in changed:
                table = self.connection.sql(changelog_query(relation, emitter)).to_arrow_table()
                if table.num_rows:
                    out[relation.name] = table
        return out


def index_path(catalog: Catalog, relation: Relation, index: Index) -> Path:
    """The way into a relation's store that an index is."""
    return Path(relation.name, tuple(sorted(catalog.stored_columns(relation, index.columns))))


@contextlib.contextmanager
def undoing() -> Iterator[list[PartRound]]:
    """Take back what was noted of parts in an epoch that fails."""
    begun: list[PartRound] = []
    try:
        yield begun
    except BaseException:
        for one in begun:
            one.undo()
        raise


def _grows(name: str, catalog: Catalog) -> bool:
    """Whether a relation takes the same rows again."""
    relation = catalog.find(name)
    return relation is not None and relation.flows and not relation.key and relation.time is None


def _found(view: str, catalog: Catalog) -> Relation:
    relation = catalog.find(view)
    assert relation is not None
    return relation


def _moving(view: str, catalog: Catalog) -> set[str]:
    """A view, those that read maps of its during the steps of an epoch, and those that read maps of these, and so on.

    They cannot wait until these maps are anew.
    """
    running = [one for one in catalog if one.program and one.suspended is None]
    stepwise = {one.name: {each.name for each in _program(one).maps if each.stepwise} for one in running}
    found, more = {view}, {view}
    while more:
        maps = set().union(*(stepwise.get(name, set()) for name in more))
        more = {name for name, own in stepwise.items() if own & maps} - found
        found |= more
    return found


def _program(view: Relation) -> Program:
    assert view.program is not None
    return view.program


def _can_rebuild(view: str, catalog: Catalog) -> bool:
    relation = _found(view, catalog)
    return not relation.strict and relation.program is not None and lost_stream(relation.program, catalog) is None
