"""Opening files: what every format needs, and the errors a file system has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from headwater import types as t
from headwater.errors import UserError

NO_FILE = "HW410"
UNREADABLE = "HW411"
DAMAGED = "HW412"


@dataclass(frozen=True)
class SomeRows:
    """What rows are read for.

    Attributes:
        fields: all columns of the relation.
        wanted: those that the file has.
        relation: its name, for messages.
    """

    fields: t.Schema
    wanted: t.Schema
    relation: str


@contextmanager
def opening(path: str) -> Iterator[None]:
    """Turns what the file system or Arrow say while a file is opened or read into errors about the file."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(NO_FILE, f"there is no file {path}") from None
    except PermissionError:
        raise UserError(UNREADABLE, f"{path} cannot be read: permission denied") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(
            DAMAGED, f"{path} is damaged, or not of this format: {_first_line(error)}", hint="write the file anew"
        ) from None
    except OSError as error:
        # Arrow reports a damaged page or a broken compressed stream as an I/O error without a number.
        if error.errno is None:
            message = f"{path} is damaged, or not of this format: {_first_line(error)}"
            raise UserError(DAMAGED, message, hint="write the file anew") from None
        raise UserError(UNREADABLE, f"{path} cannot be read: {error.strerror or _first_line(error)}") from None


def open_stream(path: str) -> pa.NativeFile:
    """The bytes of a file, decompressed if its name says so."""
    with opening(path):
        return pa.input_stream(path, compression="detect")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
