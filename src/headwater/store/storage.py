"""The files of what lies away: beside the warehouse, or on a storage that Spark's executors reach as well.

A path says where it is: one with a protocol, such as `s3://bucket/prefix/...`, lies on a storage that this process was
told of (`mount`), any other one is a local file. So whoever has a path needs nothing else, and credentials are in no
path. What DuckDB reads, it reads where it lies; what it writes is a local file first, which is then put where it
belongs: there is a whole file under a name, or none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import duckdb
import pyarrow as pa

from headwater.errors import UserError

#: Below a folder of segments, where they are: by copy and partition.
SEGMENTS = "segments"
_PROTOCOL = "://"


class Storage(Protocol):
    """What is done with files of a place."""

    def lend(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let an instance of DuckDB read the files."""
        ...

    def make_folder(self, folder: str) -> None:
        """Let there be a folder, where there are such."""
        ...

    def sizes(self, paths: Sequence[str], reading: bool = False) -> list[int | None]:
        """How large files are, in bytes; None for one that is gone.

        Args:
            paths: which.
            reading: they are about to be read.
        """
        ...

    def size_written(self, path: str) -> int:
        """How large a file is that this process has just written."""
        ...

    def written_at(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        ...

    def segments(self, folder: str, attempt: str = "") -> Iterable[str]:
        """The segments below a folder, or those of one attempt."""
        ...

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files, as far as they are there."""
        ...

    def remove_tree(self, folder: str) -> None:
        """Remove what is in a folder, as far as that can be done."""
        ...

    def scratch(self, folder: str) -> str:
        """A local folder for what is on its way to a folder."""
        ...

    def writing(self, path: str) -> AbstractContextManager[str]:
        """Gives the local file to write, which is at its place when the block has ended, unless that failed."""
        ...

    def filling(self, folder: str) -> AbstractContextManager[str]:
        """The same for a new folder with some files."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Let a file have this and nothing else, from one moment to the next."""
        ...

    def read(self, path: str) -> bytes:
        """All that is in a file."""
        ...

    def stream(self, path: str) -> pa.NativeFile:
        """A file that is read from its beginning to its end."""
        ...


class Local:
    """Files of this machine, or of one that it has mounted."""

    def lend(self, connection: duckdb.DuckDBPyConnection) -> None:
        """DuckDB reads local files anyway."""

    def make_folder(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)

    def sizes(self, paths: Sequence[str], reading: bool = False) -> list[int | None]:
        return [_size(path) for path in paths]

    def size_written(self, path: str) -> int:
        return os.stat(path).st_size

    def written_at(self, path: str) -> float:
        return os.stat(path).st_mtime

    def segments(self, folder: str, attempt: str = "") -> Iterable[str]:
        name = f"*-{attempt}-*.parquet" if attempt else "*.parquet"
        return map(str, Path(folder).glob(f"{SEGMENTS}/*/*/{name}"))

    def remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            Path(path).unlink(missing_ok=True)

    def remove_tree(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def scratch(self, folder: str) -> str:
        return folder

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[str]:
        try:
            yield path
        except BaseException:
            Path(path).unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def filling(self, folder: str) -> Iterator[str]:
        Path(folder).mkdir(parents=True)
        yield folder

    def write(self, path: str, data: bytes) -> None:
        partial = Path(f"{path}.{uuid.uuid4().hex[:8]}")
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def stream(self, path: str) -> pa.NativeFile:
        # Not as a file that is mapped: Spark may limit what a process has of addresses.
        return pa.OSFile(path)


LOCAL = Local()
_mounted: dict[str, Storage] = {}


def is_remote(path: str) -> bool:
    """Whether a path is not one of a local file."""
    return _PROTOCOL in path


def storage_of(path: str) -> Storage:
    """Where a path lies.

    Raises:
        UserError: HW433, on a storage that this process was not told of.
    """
    if not is_remote(path):
        return LOCAL
    for root, one in _mounted.items():
        if path.startswith(root):
            return one
    raise UserError(
        "HW433", f"{path} lies on a storage that this process was not told of", hint="open the warehouse anew"
    )


def mount(root: str, storage: Storage) -> None:
    """Let this process know a storage: where paths lie that begin so."""
    _mounted[root] = storage


def unmount(root: str) -> None:
    """Forget a storage."""
    _mounted.pop(root, None)


def remove_files(paths: Iterable[str]) -> None:
    """Remove files wherever they are, as far as they are there."""
    by_place: dict[int, tuple[Storage, list[str]]] = {}
    for path in paths:
        place = storage_of(path)
        by_place.setdefault(id(place), (place, []))[1].append(path)
    for place, mine in by_place.values():
        place.remove(mine)


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None
