"""Where a warehouse's maps lie: at home in its file, or away in segments that tasks read and write.

A warehouse stays where it is until it is opened with another placement; then all of it moves, in one transaction.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.engine import faults
from headwater.engine.away import FOLDER, Away, Runner, bring_all_home
from headwater.engine.engine import Engine
from headwater.engine.places import Place, normal, store, stored
from headwater.engine.relocating import relocate
from headwater.errors import NotSupported, UserError
from headwater.store.storage import SEGMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.database import Database

#: Where changes come from and programs run; the last one runs them in tasks on Spark.
PLACEMENTS = ("inline", "driver", "tasks")
MOST_PARTITIONS = 10_000

_PLACEMENT, _PARTITIONS = "placement", "partitions"


def check_arguments(
    placement: str | None,
    partitions: int | None,
    segments: str | None = None,
    storage: Mapping[str, object] | None = None,
) -> None:
    """Refuse a placement that there is not, and what does not go with the one that is asked for.

    Raises:
        HeadwaterError: HW290 there is no such placement; HW430 it has no partitions or segments; HW431 this is no
            number of partitions; HW433 this is no place for segments.
    """
    if placement is not None and placement not in PLACEMENTS:
        raise NotSupported(
            "HW290",
            f"there is no placement {placement!r}",
            hint="leave it out, or use one of " + ", ".join(map(repr, PLACEMENTS)),
        )
    if partitions is not None:
        if placement in ("inline", "driver"):
            raise _undivided()
        _check(partitions)
    if segments is not None:
        if placement in ("inline", "driver"):
            raise _undivided("segments")
        normal(segments)
    if storage is not None and not (isinstance(storage, Mapping) and all(isinstance(one, str) for one in storage)):
        raise UserError(
            "HW433",
            f"a storage is not reached by a {type(storage).__name__}",
            hint="give options by name, such as storage={'key': '...', 'secret': '...'}",
        )


def settle_in(
    database: Database,
    parts: contextlib.ExitStack,
    runner: Runner | None,
    spark: Mapping[str, object],
    partitions: int | None,
    segments: str | None = None,
    storage: Mapping[str, object] | None = None,
) -> None:
    """Let a warehouse's maps lie where its placement wants them; without one, where they are.

    Args:
        database: the open warehouse, whose placement is decided then.
        parts: takes what is to be done when it is closed.
        runner: carries out tasks; Spark by default.
        spark: its settings.
        partitions: into how many parts maps are divided; None for as they are.
        segments: where segments are to lie; None for where they do, at first beside the warehouse.
        storage: how that is reached.
    """
    engine = database.engine
    with engine.lock:
        if database.placement is None:
            database.placement = stored(engine, _PLACEMENT) or "inline"
        for what, given in (("partitions", partitions), ("segments", segments)):
            if given is not None and database.placement != "tasks":
                raise _undivided(what)
        away = database.placement == "tasks"
        if not away and engine.warehouse.folder is None:
            return
        folder = _folder(engine, parts)
        place = Place(engine, str(folder), storage or {})
        parts.callback(place.close)
        if away:
            _settle_away(engine, place, folder, runner, spark, partitions, segments)
            if engine.warehouse.folder is None:
                parts.callback(place.give_up)
        else:
            _settle_home(engine, place, folder)
        place.clear()


def _settle_home(engine: Engine, place: Place, folder: Path) -> None:
    if stored(engine, _PLACEMENT) is not None:
        place.move(None)
        with engine.transaction():
            relocate(engine.connection, folder)
            bring_all_home(engine, place.root)
            store(engine, _PLACEMENT, None)
            place.come_home()
            faults.reach("moved")
    shutil.rmtree(folder, ignore_errors=True)  # also what was left of moving away, if that was cut short


def _settle_away(
    engine: Engine,
    place: Place,
    folder: Path,
    runner: Runner | None,
    spark: Mapping[str, object],
    partitions: int | None,
    segments: str | None,
) -> None:
    place.move(segments)
    on_spark = _OnSpark(folder, spark) if runner is None else None
    before = stored_partitions(engine)
    wanted = partitions or before or (on_spark.cores if on_spark is not None else 2)
    with engine.transaction():
        relocate(engine.connection, folder)
        store(engine, _PLACEMENT, "tasks")
        if on_spark is not None:
            engine.away = Away(engine, on_spark.runner(), before or wanted, place.root, on_spark.memory)
        else:
            assert runner is not None
            engine.away = Away(engine, runner, before or wanted, place.root)
        if wanted != before:
            store(engine, _PARTITIONS, str(wanted))
        if wanted != before or place.moves:
            engine.away.repartition(wanted)
        if place.moves:  # also what is the same in any number of partitions, and what suspended views have
            engine.away.bring_home(engine.away.relations)
        engine.away.arrange(engine.catalog, engine.epoch)
        place.moved()
        faults.reach("moved")
    if place.is_elsewhere:
        shutil.rmtree(folder / SEGMENTS, ignore_errors=True)


def set_partitions(engine: Engine, partitions: int) -> None:
    """ALTER WAREHOUSE SET PARTITIONS n."""
    _check(partitions)
    with engine.lock:
        if engine.away is None:
            raise _undivided()
        if partitions == engine.away.partitions:
            return
        before = engine.away.partitions
        try:
            with engine.transaction():
                store(engine, _PARTITIONS, str(partitions))
                engine.away.repartition(partitions)
                engine.away.arrange(engine.catalog, engine.epoch)
                faults.reach("moved")
        except BaseException:
            engine.away.partitions = before
            raise


def stored_partitions(engine: Engine) -> int | None:
    """Into how many parts maps are divided; None if that was never decided."""
    found = stored(engine, _PARTITIONS)
    return int(found) if found is not None else None


def _check(partitions: int) -> None:
    if isinstance(partitions, bool) or not isinstance(partitions, int) or not 1 <= partitions <= MOST_PARTITIONS:
        raise UserError(
            "HW431",
            f"{partitions!r} is no number of partitions",
            hint=f"between 1 and {MOST_PARTITIONS:,}; about as many as Spark has cores is best",
        )


def _undivided(what: str = "partitions") -> UserError:
    return UserError(
        "HW430",
        f"only a warehouse whose programs run in tasks has {what}",
        hint="open it with placement 'tasks'",
    )


def _folder(engine: Engine, parts: contextlib.ExitStack) -> Path:
    """Where segments go; those of a warehouse in memory go with it."""
    if engine.warehouse.folder is not None:
        return engine.warehouse.folder.resolve() / FOLDER
    folder = Path(tempfile.mkdtemp(prefix="headwater-"))
    parts.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder / FOLDER


class _OnSpark:
    """Spark, which is started when it is needed: to look at a warehouse it is not."""

    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        self._folder, self._settings = folder, settings
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        from headwater.spark.session import start_session

        if self._session is None:
            self._session = start_session(self._folder.parent / "spark", self._settings)
        return self._session

    @property
    def cores(self) -> int:
        return int(self.session().sparkContext.defaultParallelism)

    def runner(self) -> Runner:
        from headwater.spark.stages import SparkRunner

        return SparkRunner(self.session)

    def memory(self) -> int | None:
        from headwater.spark.stages import memory_setting

        return memory_setting(self.session())
