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


def java_below(pid: int | None = None) -> int | None:
    """The number of the Java process that a process started, itself or through others; None if there is none."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                before, _, after = (entry / "stat").read_text().rpartition(")")
            except OSError:  # it ended
                continue
            children.setdefault(int(after.split()[1]), []).append((int(entry.name), before.partition("(")[2]))
    waiting = [pid or os.getpid()]
    while waiting:
        for child, name in children.get(waiting.pop(), ()):
            if name == "java":
                return child
            waiting.append(child)
    return None
