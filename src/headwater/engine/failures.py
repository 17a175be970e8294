"""What DuckDB's errors mean to a user."""

from __future__ import annotations

import re

import duckdb

from headwater.emit.scalars import explain_runtime_error
from headwater.errors import HeadwaterError, InternalError, UserError
from headwater.store import budget
from headwater.store.storage import SEGMENTS, forget, said
from headwater.store.warehouse import DAMAGED

#: Raised by a value: a division by zero, an overflow, a cast that does not fit.
_VALUE_ERRORS = (
    duckdb.OutOfRangeException,
    duckdb.ConversionException,
    duckdb.InvalidInputException,
    duckdb.DataError,
)


#: Where the segments of what lies away from home are, below the warehouse's folder.
AWAY = "away"
#: The folder of a warehouse's segments where they lie elsewhere is called so, and by a number of its own.
ELSEWHERE = "headwater-"
_SEGMENT = re.compile(rf"""[^'"]*/(?:{AWAY}|{ELSEWHERE}[0-9a-f]+)/{SEGMENTS}/[^'"]+?\.parquet""")
#: What is said of a file on a storage (`headwater.store.remote_storage`).
_ON_STORAGE = re.compile(r'OSError: "\w+://[^"]+": ')
#: What DuckDB says of a Parquet file with bytes that are none of its own, without naming it. (Thrift is what describes
#: pages, Snappy packs them.)
_GARBLED = re.compile(r"don't know what type|TProtocolException|Snappy decompression|Out of buffer|[Pp]arquet file")
_FULL = ("No space left", "Could not write", "File too large", "Disk quota exceeded")


class ViewFailed(Exception):
    """A view's program cannot take a row; the epoch goes on without the view."""

    def __init__(self, view: str, code: str, reason: str) -> None:
        super().__init__(f"{view}: {reason}")
        self.view = view
        self.code = code
        self.reason = reason


class Disturbed(InternalError):
    """A reader was disturbed: the relation may just have been dropped, or the file opened again. It can look anew."""


class NotPlanned(InternalError):
    """DuckDB tripped over a statement of ours while planning it."""


def is_planning_error(error: duckdb.Error) -> bool:
    """Whether DuckDB tripped over itself; see `Warehouse.cautious_planning`."""
    return "BindBuiltinScalarFunction" in str(error)


def is_value_error(error: duckdb.Error) -> bool:
    """Whether a value in the data is to blame, not the machine or us."""
    if is_planning_error(error) or isinstance(error, duckdb.FatalException) or broken_segment(error) is not None:
        return False
    return isinstance(error, _VALUE_ERRORS)


def is_fatal(error: duckdb.Error) -> bool:
    """Whether DuckDB refuses to go on with this database object: it must be opened again."""
    text = str(error)
    return isinstance(error, duckdb.FatalException | duckdb.ConnectionException) or (
        "database has been invalidated" in text or "Failed to commit" in text
    )


def broken_segment(error: duckdb.Error) -> str | None:
    """The segment that an error is about, if it is that one cannot be read; nothing at all if DuckDB does not say."""
    if is_full(error):
        return None
    found = _SEGMENT.search(str(error))
    return found[0] if found else "" if _GARBLED.search(str(error)) else None


def is_full(error: Exception) -> bool:
    """Whether a disk has no room for a file."""
    return isinstance(error, OSError | duckdb.IOException) and any(text in str(error) for text in _FULL)


def broken(path: str, reason: str) -> UserError:
    """A segment cannot be read."""
    forget(path)
    return UserError(
        "HW409",
        f"{f'the segment {path}' if path else 'a segment'} cannot be read: {reason}",
        hint="nothing changed; put the file back, or REFRESH the view that it belongs to, which makes it anew",
    )


def unwritten(text: str) -> UserError:
    """A disk refused a write."""
    return UserError(
        "HW406",
        f"the warehouse could not be written: {text}",
        hint="check that the disk has room and is writable; nothing of the epoch was kept",
    )


def translate(error: duckdb.Error) -> HeadwaterError:
    """A DuckDB error as one of ours."""
    text = said(error)
    segment = broken_segment(error)
    if segment is not None:
        told = text.removeprefix(f'"{segment}": ')
        return broken(segment, "it is gone" if "No files found" in text else told)
    if _ON_STORAGE.search(str(error)):
        return UserError("HW433", f"a file on a storage cannot be used: {text}", hint="nothing changed; try again")
    spent = budget.current()
    if isinstance(error, duckdb.InterruptException) and spent is not None and spent.reason is not None:
        return spent.reason  # whoever asked has given it up: there is nothing to try again
    if is_value_error(error):
        code, reason = explain_runtime_error(str(error))
        return UserError(code, reason, hint="nothing changed")
    if is_planning_error(error):
        return NotPlanned("HW902", f"the engine could not plan a statement of ours: {text}")
    if "expression depth limit" in text:
        return UserError("HW002", "the statement is nested too deeply", hint="make parts of it views of their own")
    if isinstance(error, duckdb.OutOfMemoryException):
        hint = "nothing changed; allow more (memory=), make room for temporary files, or change less at once"
        return UserError("HW407", f"out of memory or temporary space: {text}", hint=hint)
    if re.search("Corrupt database|checksum|Could not read", text):
        return UserError("HW404", f"the warehouse cannot be read: {text}", hint=DAMAGED)
    if isinstance(error, duckdb.IOException | duckdb.FatalException) or "Could not write" in text:
        return unwritten(text)
    if isinstance(error, duckdb.CatalogException | duckdb.ConnectionException | duckdb.InterruptException):
        return Disturbed("HW902", f"the engine was disturbed: {text}")
    return InternalError("HW902", f"the engine refused a statement of ours: {text}")
