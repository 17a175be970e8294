"""What is on disk and in memory."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """Files below a folder, and their bytes."""

    files: int
    bytes: int


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def usage(path: Path, without: tuple[str, ...] = ()) -> Usage:
    """What a folder or a file holds.

    Args:
        path: which; it need not be there.
        without: names of folders directly in it that do not count.
    """
    files = total = 0
    entries = [path] if path.is_file() else path.rglob("*")
    for entry in entries:
        if entry != path and entry.relative_to(path).parts[0] in without:
            continue
        try:
            if entry.is_file():
                total += entry.stat().st_size
                files += 1
        except FileNotFoundError:  # it was removed while we looked
            continue
    return Usage(files, total)


def resident(pid: int | None = None) -> int:
    """Bytes of memory that a process has; this one by default."""
    for line in Path(f"/proc/{pid or os.getpid()}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def processor_seconds(pid: int | None = None) -> float:
    """Seconds of processors that a process and all below it have used, with those that have ended."""
    return sum(map(_seconds, _below(pid or os.getpid())))


#: Kinds of processes below one that has started Spark.
HOME, SCHEDULER, EXECUTORS, WORKERS = "home", "scheduler", "executors", "workers"


def processor_seconds_by_kind(pid: int | None = None) -> dict[str, float]:
    """The same for a process that has started Spark: its own, Spark's driver's, executors', and those of Python there.

    Executors are Java below Spark's driver, which is Java itself; Python's workers are below executors.
    """
    found = dict.fromkeys((HOME, SCHEDULER, EXECUTORS, WORKERS), 0.0)
    kinds: dict[int, str] = {}
    for one in _below(pid or os.getpid()):  # who started a process comes before it
        above = kinds.get(int(one.fields[1]))
        if one.command == "java":
            kinds[one.pid] = SCHEDULER if above in (None, HOME) else EXECUTORS
        else:
            kinds[one.pid] = HOME if above in (None, HOME) else WORKERS if above != SCHEDULER else SCHEDULER
        found[kinds[one.pid]] += _seconds(one)
    return found


def resident_below(command: str, pid: int | None = None) -> int:
    """Bytes of memory of the largest process below a process whose command begins so."""
    found = [one for one in _below(pid or os.getpid())[1:] if one.command.startswith(command)]
    return max((int(one.fields[21]) * os.sysconf("SC_PAGE_SIZE") for one in found), default=0)


@dataclass(frozen=True)
class _Process:
    """What the system says of a process: its number, its command, and what stands behind that in `stat`."""

    pid: int
    command: str
    fields: list[str]


def _seconds(one: _Process) -> float:
    return sum(map(int, one.fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _below(pid: int) -> list[_Process]:
    """A process and all that it started, itself or through others."""
    children: dict[int, list[_Process]] = {}
    mine: list[_Process] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                before, _, after = (entry / "stat").read_text().rpartition(")")
            except OSError:  # it ended
                continue
            one = _Process(int(entry.name), before.partition("(")[2], after.split())
            children.setdefault(int(one.fields[1]), []).append(one)
            if one.pid == pid:
                mine.append(one)
    found = list(mine)
    for one in found:
        found += children.get(one.pid, ())
    return found


def java_below(pid: int | None = None) -> int | None:
    """The number of the Java process that a process started, itself or through others; None if there is none."""
    return next((one.pid for one in _below(pid or os.getpid())[1:] if one.command == "java"), None)
