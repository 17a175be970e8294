"""Files of segments on a storage that fsspec reaches: S3 and its like.

DuckDB reads through a file system of ours that asks fsspec. Its own extension for S3 would have to be downloaded, on
every executor, and knows fewer storages. Segments never change, so small ones are fetched whole, by one request, and
kept in memory for a while: to look at a segment and to read it are several reads of the same file.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import os
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import fsspec  # type: ignore[import-untyped]
import pyarrow as pa
from fsspec.core import url_to_fs  # type: ignore[import-untyped]

from headwater.errors import UserError
from headwater.store.storage import ON_THE_WAY, SEGMENTS, Means, storage_of

log = logging.getLogger("headwater")

#: Files of at most so many bytes are fetched whole, and so many bytes of them are kept.
WHOLE_BYTES, KEPT_BYTES = 4 << 20, 64 << 20
#: So many requests are under way at a time.
REQUESTS = 16
#: A file that is read from its beginning to its end is read in pieces of so many bytes.
_PIECE_BYTES = 8 << 20
#: Of so many files it is remembered how large they were written.
_REMEMBERED = 1000

One = TypeVar("One")
Made = TypeVar("Made")


class Remote:
    """Files below a folder of such a storage."""

    def __init__(self, means: Means, way: str) -> None:
        """Find the storage; nothing is asked of it yet.

        Args:
            means: where it is, and how it is reached.
            way: a local folder for files on their way there.

        Raises:
            UserError: HW433, there is no package for it, or it refuses the options.
        """
        self.means, self.way = means, way
        self._kept = _Kept()
        #: How often something was read anew: DuckDB keeps what it has read, too.
        self.forgotten = 0
        self._written: OrderedDict[str, int] = OrderedDict()
        self._pool = ThreadPoolExecutor(REQUESTS, "headwater-storage")
        self._removing: list[Future[None]] = []
        self._threads = threading.local()
        #: Whether the storage has folders that stay when they are empty; None if that was not seen yet.
        self._has_folders: bool | None = None
        try:
            self._fs, self._inner_root = url_to_fs(means.root, **means.options)
        except ImportError as error:
            raise UserError(
                "HW433",
                f"{means.root} cannot be reached: {_said(error)}",
                hint="install the package for it, here and for Spark's workers; for s3: pip install 'headwater[s3]'",
            ) from None
        except Exception as error:
            raise _unusable(means.root, error) from None

    def close(self) -> None:
        """End, when what is to be removed is."""
        self.finish()
        self._pool.shutdown()

    def finish(self) -> None:
        """Wait until what is to be removed is."""
        while self._removing:
            self._removing.pop().result()

    # -- what DuckDB reads ---------------------------------------------------------------------------------------------

    def lend(self, connection: duckdb.DuckDBPyConnection) -> None:
        protocol = self.means.root.partition("://")[0]
        if not connection.filesystem_is_registered(protocol):
            connection.register_filesystem(_Files(protocol))

    def forget(self) -> None:
        self._kept.drop(None)
        self.forgotten += 1

    def data(self, path: str) -> bytes | None:
        """All that is in a file, if it is small."""
        found = self._kept.data.get(path)
        if found is not None or self._kept.sizes.get(path, 0) > WHOLE_BYTES:
            return found
        found = self.part(path, 0, WHOLE_BYTES + 1)  # most are small: to ask for the size first is one request more
        if len(found) > WHOLE_BYTES:
            return None
        self._kept.put(path, found)
        return found

    def size(self, path: str) -> int:
        found = self._kept.sizes.get(path)
        if found is None:
            found = self._kept.sizes[path] = int(self._info(path)["size"])
        return found

    def part(self, path: str, begin: int, end: int) -> bytes:
        """Some of a file's bytes."""
        with self._reaching():
            found: bytes = self._fs.cat_file(self._inner(path), start=begin, end=end)
        return found

    def _fetch(self, path: str) -> bytes:
        found = self.read(path)
        self._kept.put(path, found)
        return found

    # -- files ---------------------------------------------------------------------------------------------------------

    def make_folder(self, folder: str) -> None:
        """There are no folders, or they are made for the first file in them."""

    def sizes(self, paths: Sequence[str], expected: Sequence[int] | None = None) -> list[int | None]:
        def look(one: tuple[str, int]) -> int | None:
            path, size = one
            try:
                if size <= WHOLE_BYTES:
                    return len(self._kept.data.get(path) or self._fetch(path))
                return int(self._info(path)["size"])
            except FileNotFoundError:
                return None

        unknown = WHOLE_BYTES + 1  # then only the size is asked for
        return self._at_once(look, list(zip(paths, expected or [unknown] * len(paths), strict=True)))

    def size_written(self, path: str) -> int:
        found = self._written.pop(path, None)
        return found if found is not None else int(self._info(path)["size"])

    def written_at(self, path: str) -> float:
        return _moment(self._info(path))

    def segments(self, folder: str, attempt: str = "") -> Iterable[str]:
        found = self._find(f"{folder}/{SEGMENTS}")
        return [one for one in found if one.endswith(".parquet") and (not attempt or f"-{attempt}-" in one)]

    def remove(self, paths: Iterable[str]) -> None:
        there = list(paths)
        self._kept.drop(there)
        try:
            self._remove([self._inner(path) for path in there])
        except Exception as error:  # they are found again when files are looked for that count nowhere
            log.warning("files on %s were not removed: %s", self.means.root, _said(error))

    def remove_tree(self, folder: str) -> None:
        self._removing = [one for one in self._removing if not one.done()]
        self._removing.append(self._pool.submit(self._remove_tree, folder))

    def _remove_tree(self, folder: str) -> None:
        try:
            self._remove([self._inner(path) for path in self._find(folder)])
            inner = self._inner(folder)
            if self._has_folders is not False:
                self._has_folders = self._fs.isdir(inner)
                if self._has_folders:
                    self._fs.rm(inner, recursive=True)
        except FileNotFoundError:
            pass
        except Exception as error:
            log.warning("%s was not removed: %s", folder, _said(error))

    def _remove(self, inner: list[str]) -> None:
        if inner:
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm(inner)
                return
            for one in inner:  # some are gone: the others may not be
                with contextlib.suppress(FileNotFoundError):
                    self._fs.rm_file(one)

    def scratch(self, folder: str) -> str:
        return self.way

    @contextlib.contextmanager
    def writing(self, path: str) -> Iterator[str]:
        here = self._make_here()
        file = f"{here}/{path.rpartition('/')[2]}"
        try:
            yield file
            self._written[path] = os.stat(file).st_size
            while len(self._written) > _REMEMBERED:
                self._written.popitem(last=False)
        except BaseException:
            shutil.rmtree(here, ignore_errors=True)
            raise
        self._of_thread.append(self._pool.submit(self._put_and_forget, file, path, here))

    @property
    def _of_thread(self) -> list[Future[None]]:
        """What this thread has written and is on its way."""
        found: list[Future[None]] | None = getattr(self._threads, "uploads", None)
        if found is None:
            found = self._threads.uploads = []
        return found

    def settle(self) -> None:
        uploads, self._threads.uploads = self._of_thread, []
        wait(uploads)
        for one in uploads:
            one.result()

    def _put_and_forget(self, file: str, path: str, here: str) -> None:
        try:
            self._put(file, path)
        finally:
            shutil.rmtree(here, ignore_errors=True)

    @contextlib.contextmanager
    def filling(self, folder: str) -> Iterator[str]:
        here = self._make_here()
        try:
            yield here
            names = sorted(str(one.relative_to(here)) for one in Path(here).rglob("*") if one.is_file())
            self._at_once(lambda name: self._put(f"{here}/{name}", f"{folder}/{name}"), names)
        finally:
            shutil.rmtree(here, ignore_errors=True)

    def _make_here(self) -> str:
        here = Path(self.way) / ON_THE_WAY / uuid.uuid4().hex
        here.mkdir(parents=True)
        return str(here)

    def _put(self, file: str, path: str) -> None:
        with self._reaching(writing=True):
            self._fs.put_file(file, self._inner(path))

    def write(self, path: str, data: bytes) -> None:
        with self._reaching(writing=True):
            self._fs.pipe_file(self._inner(path), data)

    def read(self, path: str) -> bytes:
        found = self.part(path, 0, _PIECE_BYTES)  # mostly that is all: without bounds s3fs asks for the size first
        if len(found) == _PIECE_BYTES:
            with self._reaching():
                found = self._fs.cat_file(self._inner(path))
        return found

    def stream(self, path: str) -> pa.NativeFile:
        first = self.part(path, 0, _PIECE_BYTES)  # mostly that is all of it
        if len(first) < _PIECE_BYTES:
            return pa.BufferReader(first)
        with self._reaching():
            return pa.PythonFile(self._fs.open(self._inner(path), "rb", block_size=_PIECE_BYTES), "r")

    # -- the storage ---------------------------------------------------------------------------------------------------

    def _inner(self, path: str) -> str:
        """A path as fsspec has it."""
        return f"{self._inner_root}{path[len(self.means.root) :]}"

    def _info(self, path: str) -> Mapping[str, Any]:
        with self._reaching():
            found: Mapping[str, Any] = self._fs.info(self._inner(path))
        return found

    def _find(self, folder: str) -> list[str]:
        with self._reaching():
            self._fs.invalidate_cache()
            try:
                found = self._fs.find(self._inner(folder))
            except FileNotFoundError:
                found = []
            self._fs.invalidate_cache()  # it would not notice what others write and remove
        return [f"{self.means.root}{one[len(self._inner_root) :]}" for one in found]

    def _at_once(self, work: Callable[[One], Made], on: Sequence[One]) -> list[Made]:
        return list(self._pool.map(work, on)) if len(on) > 1 else [work(one) for one in on]

    @contextlib.contextmanager
    def _reaching(self, writing: bool = False) -> Iterator[None]:
        """What the storage says is an error of ours; that a file is gone is said as ever."""
        try:
            yield
        except UserError:
            raise
        except FileNotFoundError as error:
            if writing:
                raise _unusable(self.means.root, error) from None
            raise
        except Exception as error:
            raise _unusable(self.means.root, error) from None


class _Kept:
    """What was read of files, the oldest of which go when it is too much."""

    def __init__(self) -> None:
        self.data: OrderedDict[str, bytes] = OrderedDict()
        self.sizes: dict[str, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def put(self, path: str, data: bytes) -> None:
        with self._lock:
            self._bytes += len(data) - len(self.data.pop(path, b""))
            self.data[path] = data
            self.sizes[path] = len(data)
            while self._bytes > KEPT_BYTES:
                oldest, gone = self.data.popitem(last=False)
                self._bytes -= len(gone)
                del self.sizes[oldest]

    def drop(self, paths: Iterable[str] | None) -> None:
        """Let go of some files, or of all."""
        with self._lock:
            for path in list(self.sizes) if paths is None else paths:
                self._bytes -= len(self.data.pop(path, b""))
                self.sizes.pop(path, None)


class _Files(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """What DuckDB is given to read by: all storages of a protocol that this process was told of."""

    cachable = False

    def __init__(self, protocol: str) -> None:
        super().__init__()
        self.protocol = protocol

    def open(self, path: str, mode: str = "rb", **_: object) -> _File:
        if mode != "rb":
            raise OSError(f'"{path}": it is only read')
        with _telling(path):
            return _File(self._of(path), path)

    def size(self, path: str) -> int:
        with _telling(path):
            return self._of(path).size(path)

    def glob(self, path: str, **_: object) -> list[str]:
        """A name is a name: whether there is such a file is seen when it is opened."""
        return [path]

    def modified(self, path: str) -> dt.datetime:
        """Never, as a name is given to one file; unless what was read of some is not to be used again."""
        return dt.datetime(2000, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=self._of(path).forgotten)

    def isfile(self, path: str) -> bool:
        return True

    def exists(self, path: str, **_: object) -> bool:
        return True

    def _of(self, path: str) -> Remote:
        found = storage_of(path)
        assert isinstance(found, Remote)
        return found


class _File:
    """A file that is read. Each thread has a place of its own: DuckDB may share one among several."""

    def __init__(self, storage: Remote, path: str) -> None:
        self._storage, self._path = storage, path
        self._data = storage.data(path)
        self._size = len(self._data) if self._data is not None else storage.size(path)
        self._place = threading.local()

    def seek(self, place: int, whence: int = 0) -> int:
        self._place.at = place + (self._size if whence == 2 else self.tell() if whence == 1 else 0)
        return self.tell()

    def tell(self) -> int:
        return getattr(self._place, "at", 0)

    def read(self, count: int = -1) -> bytes:
        begin = self.tell()
        end = self._size if count < 0 else min(self._size, begin + count)
        self._place.at = max(begin, end)
        if end <= begin:
            return b""
        if self._data is not None:
            return self._data[begin:end]
        with _telling(self._path):
            return self._storage.part(self._path, begin, end)

    def close(self) -> None:
        """There is nothing to be closed."""


@contextlib.contextmanager
def _telling(path: str) -> Iterator[None]:
    """What DuckDB will say of an error: which file it is about, and why."""
    try:
        yield
    except FileNotFoundError:
        raise OSError(f'"{path}": it is gone') from None
    except UserError as error:
        raise OSError(f'"{path}": {error.message}') from None


def _moment(info: Mapping[str, Any]) -> float:
    """When a file was written; storages call that by different names."""
    for name in ("LastModified", "last_modified", "mtime", "modified", "created", "updated"):
        found = info.get(name)
        if isinstance(found, dt.datetime):
            return found.timestamp()
        if isinstance(found, int | float):
            return float(found)
        if isinstance(found, str):
            return dt.datetime.fromisoformat(found).timestamp()
    return dt.datetime.now(dt.UTC).timestamp()  # it is not known: as if it was now


def _said(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    return text or type(error).__name__


def _unusable(root: str, error: BaseException) -> UserError:
    return UserError(
        "HW433",
        f"the storage {root} cannot be used: {_said(error)}",
        hint="check that the bucket is there, that it may be read and written, and what is said of it in the "
        "environment or in storage options; nothing changed",
    )
