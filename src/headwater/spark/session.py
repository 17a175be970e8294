"""The Spark session of a pipeline: local unless told otherwise, tuned for small and frequent jobs, and quiet."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import UserError
from headwater.spark.java import why_no_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = "spark.log"
_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_PATH = "spark.executorEnv.PYTHONPATH"

#: What a pipeline of small batches needs. A project's `[spark]` table comes on top of it.
SETTINGS: Mapping[str, str] = {
    "spark.app.name": "headwater",
    "spark.master": "local[*]",
    # Headwater's TIMESTAMP has no zone; in UTC Spark's means the same.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # An epoch is one small job without a shuffle: adaptive planning and many partitions only cost.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.files.minPartitionNum": "2",
    "spark.sql.leafNodeDefaultParallelism": "2",
    # On a local disk the default manager spends most of a small batch on files of its own.
    "spark.sql.streaming.checkpointFileManagerClass": _FILES,
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Spark notes each file it has taken in a file of its own, and removes these after ten minutes unless told sooner:
    # at ten epochs a second that would be thousands. The delay is for other readers, and there are none.
    "spark.sql.streaming.fileSource.log.cleanupDelay": "10s",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A task prefers an executor (`seats.py`), which may be busy with putting segments together: three seconds, Spark's
    # own, for each level of an epoch are more than it takes another one to read what it lacks.
    "spark.locality.wait": "500ms",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.warehouse.dir": "file:/nonexistent/headwater-uses-no-tables",
}

#: What only the pipeline's own session has: a user's session must not be asked to name the sources of a DataFrame.
OWN_SETTINGS: Mapping[str, str] = {
    # Sources have names, so that streams can be added and dropped without losing the others' positions.
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
}

_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


def start_session(folder: Path, settings: Mapping[str, object] | None = None) -> SparkSession:
    """A session of our own, on the Spark that runs already or on one that is started: others' settings stay theirs.

    Args:
        folder: where Spark's log goes, and what it scribbles.
        settings: Spark's own, which win over ours.

    Raises:
        UserError: HW470 Spark is not installed; HW471 there is no Java for it; HW472 it does not start.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark import SparkContext
            from pyspark.sql import SparkSession
    except ImportError:
        raise UserError(
            "HW470", "Spark is not installed", hint="pip install 'headwater[spark]', or pip install pyspark"
        ) from None
    given = {key: _text(value) for key, value in (settings or {}).items()}
    wanted = {**SETTINGS, **given}
    if SparkContext._active_spark_context is not None:
        return _another_session(SparkSession.builder.getOrCreate(), {**OWN_SETTINGS, **wanted})
    if (problem := why_no_spark()) is not None and "SPARK_REMOTE" not in os.environ:
        raise UserError("HW471", problem.split(": ", 1)[0], hint=problem.split(": ", 1)[1])
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / LOG
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING.format(log=log.resolve()), encoding="utf-8")
    _let_workers_be_like_us(wanted)
    java = f"-Dlog4j2.configurationFile={logging.resolve().as_uri()} -Dderby.system.home={folder.resolve()}"
    wanted["spark.driver.extraJavaOptions"] = f"{java} {wanted.get('spark.driver.extraJavaOptions', '')}".strip()
    builder = SparkSession.builder
    for key, value in wanted.items():
        builder = builder.config(key, value)
    try:
        with _stderr_to(log):
            session = builder.getOrCreate()
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise UserError("HW472", f"Spark does not start: {reason}", hint=f"its log is {log}") from error
    return _another_session(session, {**OWN_SETTINGS, **given})


def _another_session(active: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = active.newSession()
    for key, value in settings.items():
        if key.startswith("spark.sql.") and session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session


def _let_workers_be_like_us(wanted: dict[str, str]) -> None:
    """On this machine Python's workers run what this process runs, and find this package, unless somebody said else.

    Spark would take the first `python3` of the path. Other machines have paths of their own.
    """
    if not wanted["spark.master"].startswith("local"):
        return
    # PySpark looks for its setting in the environment alone where a program of Python's starts it.
    python = wanted.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    os.environ["PYSPARK_PYTHON"] = wanted["spark.pyspark.python"] = python
    home = str(Path(__file__).resolve().parents[2])
    paths = [one for one in wanted.get(_PATH, "").split(os.pathsep) if one]
    wanted[_PATH] = os.pathsep.join([*paths, *(() if home in paths else (home,))])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Have the JVM, which inherits it, write what it says on stderr to a file."""
    sys.stderr.flush()
    with log.open("ab") as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
