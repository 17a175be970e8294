"""The files of what lies away: beside the warehouse, or on a storage that Spark's executors reach as well.

A path says where it is: one with a protocol, such as `s3://bucket/prefix/...`, lies on a storage that this process was
told of (`mount`), any other one is a local file. So whoever has a path needs nothing else, and credentials are in no
path. What DuckDB reads, it reads where it lies; what it writes is a local file first, which is then put where it
belongs: there is a whole file under a name, or none.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import duckdb
import pyarrow as pa

from headwater.errors import UserError

if TYPE_CHECKING:
    from headwater.store.remote_storage import Remote

#: Below a folder of segments, where they are, by copy and partition; and below a local one, files on their way.
SEGMENTS, ON_THE_WAY = "segments", "sending"
_PROTOCOL = "://"


class Storage(Protocol):
    """What is done with files of a place."""

    def lend(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let an instance of DuckDB read the files."""
        ...

    def forget(self) -> None:
        """Some files are not what they should be: whatever is remembered of any, they are read anew."""
        ...

    def make_folder(self, folder: str) -> None:
        """Let there be a folder, where there are such."""
        ...

    def sizes(self, paths: Sequence[str], expected: Sequence[int] | None = None) -> list[int | None]:
        """How large files are, in bytes; None for one that is gone.

        Args:
            paths: which.
            expected: how large they should be, if they are about to be read.
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
        """Gives the local file to write; it is at its place when this thread has settled, unless the block failed."""
        ...

    def settle(self) -> None:
        """Wait until what this thread has written is at its place."""
        ...

    def filling(self, folder: str) -> AbstractContextManager[str]:
        """Gives a local folder for some files, which are at their place when the block has ended."""
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

    def forget(self) -> None:
        """Nothing is remembered of them."""

    def make_folder(self, folder: str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)

    def sizes(self, paths: Sequence[str], expected: Sequence[int] | None = None) -> list[int | None]:
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

    def settle(self) -> None:
        """It is."""

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


@dataclass(frozen=True)
class Means:
    """How a storage is reached; it goes to workers, and is neither written down nor shown.

    Attributes:
        root: the folder there; paths below it lie on this storage.
        options: for the package that knows the protocol: keys, the address of a server, and the like.
    """

    root: str
    options: Mapping[str, object] = field(default_factory=dict, repr=False)


LOCAL = Local()
_mounted: dict[str, Remote] = {}


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
    found = _remote(path)
    if found is None:
        raise UserError(
            "HW433", f"{path} lies on a storage that this process was not told of", hint="open the warehouse anew"
        )
    return found


def means_of(path: str) -> Means | None:
    """What a worker is to be told so that it reaches a path; nothing for a local one."""
    found = _remote(path) if is_remote(path) else None
    return found.means if found is not None else None


def _remote(path: str) -> Remote | None:
    return next((one for root, one in _mounted.items() if path.startswith(root)), None)


def mount(means: Means | None, scratch: str | None = None) -> None:
    """Let this process know a storage.

    Args:
        means: how it is reached; None for local files, of which nothing needs to be known.
        scratch: a local folder for files on their way there; until one is given, that of all temporary files.

    Raises:
        UserError: HW433, there is no package for it, or it refuses the options.
    """
    if means is None:
        return
    found = _mounted.get(means.root)
    if found is not None and found.means == means:
        found.way = scratch or found.way
        return
    try:
        from headwater.store.remote_storage import Remote
    except ModuleNotFoundError as error:
        raise UserError(
            "HW433",
            f"{means.root} cannot be reached: there is no package {error.name}",
            hint="pip install 'headwater[s3]', here and for Spark's workers; for another storage than s3, fsspec and "
            "the package for it",
        ) from None
    _mounted[means.root] = Remote(means, scratch or tempfile.gettempdir())


def unmount(root: str) -> None:
    """Forget a storage, when what is to be removed there is."""
    found = _mounted.pop(root, None)
    if found is not None:
        found.close()


def forget(path: str) -> None:
    """A file could not be read: all of its storage are read anew. Without a path it is not known which it was."""
    for root, one in _mounted.items():
        if not path or path.startswith(root):
            one.forget()


def finish(path: str) -> None:
    """Wait until what is to be removed is, of the storage where a path lies."""
    for root, one in _mounted.items():
        if path.startswith(root):
            one.finish()


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


def said(error: BaseException) -> str:
    """What an error says in one line; of one that Python raised below DuckDB, its last line.

    >>> said(OSError('Traceback (most recent call last):\\n  File "x.py", line 1\\nOSError: "x": it is gone\\n\\nLINE'))
    '"x": it is gone'
    """
    text = str(error).strip()
    if text.startswith("Traceback"):
        told = re.findall(r"^(?:\w+\.)*\w+(?:Error|Exception): (.+)$", text, re.MULTILINE)
        return str(told[-1]) if told else text.rsplit("\n", 1)[-1]
    return text.split("\n", 1)[0]
