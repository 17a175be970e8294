"""Results as aligned tables, CSV, JSON and JSON lines."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

import pyarrow as pa

from headwater.errors import UserError
from headwater.results import Result
from headwater.serve import values
from headwater.serve.lines import csv_lines, json_lines, jsonl_lines, rows_of

UNWRITABLE = "HW462"
FORMATS = ("table", "csv", "json", "jsonl")
_NARROWEST_CUT = 6
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class Screen:
    """What a terminal has room for; None where the output is a file or a pipe, which get everything.

    Attributes:
        width: columns; longer cells are cut.
        rows: rows of a result that are shown.
        timing: whether every result says how long it took.
    """

    width: int | None = None
    rows: int | None = None
    timing: bool = False


@contextlib.contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn what keeps a file from being written into an error of ours; a reader that left is not one.

    Raises:
        UserError: HW462.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            UNWRITABLE, f"{name} cannot be written: {reason}", hint="check the path and the room"
        ) from error


def say(text: object) -> None:
    """Print to the standard output at once."""
    with writing("<stdout>"):
        print(text, flush=True)


class Writer:
    """Writes the results of one run to a file in one format."""

    def __init__(self, out: TextIO, form: str, screen: Screen | None = None) -> None:
        self._out = out
        self._form = form
        self._screen = screen or Screen()
        self._written = 0

    def write(self, result: Result) -> None:
        """Write a result. In the formats for programs a statement without rows leaves no trace."""
        if self._form == "table":
            self._lines(self._for_people(result))
            return
        table = result.table
        if table is None and result.text is not None:
            table = pa.table({"text": [result.text]})
        if table is not None:
            if self._form == "csv" and self._written:
                self._out.write("\n")
            self._lines({"csv": csv_lines, "json": json_lines, "jsonl": jsonl_lines}[self._form](table))
            self._written += 1

    def _lines(self, lines: Iterable[str]) -> None:
        with writing(str(getattr(self._out, "name", "the output"))):
            for line in lines:
                self._out.write(line + "\n")
            self._out.flush()

    def _for_people(self, result: Result) -> Iterator[str]:
        took = f"{result.seconds:.3f} s" if self._screen.timing else ""
        if result.table is not None:
            yield from table_lines(result.table, self._screen)
            count = counted(result.table.num_rows, "row")
            yield f"({count}, {took})" if took else f"({count})"
        elif result.text is not None:
            yield from result.text.splitlines()
            if took:
                yield f"({took})"
        else:
            message = result.message or result.statement
            yield f"{message} ({took})" if took else message
        yield from (f"note: {notice}" for notice in result.notices)


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 row`, `2 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def table_lines(table: pa.Table, screen: Screen | None = None, null: str = "NULL") -> Iterator[str]:
    """A table for people: aligned, numbers to the right."""
    screen = screen or Screen()
    shown = table if screen.rows is None else table.slice(0, screen.rows)
    kinds = [field.type for field in table.schema]
    right = [values.is_number(kind) for kind in kinds]
    rows = [
        [null if value is None else _cell(value, kind) for value, kind in zip(row, kinds, strict=True)]
        for row in rows_of(shown)
    ]
    names = [_printable(name) for name in table.column_names]
    widths = [max([width(name), *(width(row[i]) for row in rows)]) for i, name in enumerate(names)]
    if screen.width is not None:
        widths = _fit(widths, screen.width)
    yield _line(names, widths, right)
    yield "-+-".join("-" * w for w in widths)
    for row in rows:
        yield _line(row, widths, right)
    hidden = table.num_rows - shown.num_rows
    if hidden:
        yield f"... {counted(hidden, 'more row')}"


def width(text: str) -> int:
    """Columns a text takes on a terminal: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_char_width(c) for c in text)


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cell(value: object, kind: pa.DataType) -> str:
    return _printable(values.text(value, kind))


def _printable(text: str) -> str:
    """Line breaks and terminal codes spelt out: a cell stays in its row and cannot command the terminal."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def _fit(widths: list[int], room: int) -> list[int]:
    """Cut the widest columns, all to one width, until the line fits; with too many columns it does not."""
    rest = room - 3 * (len(widths) - 1)
    if sum(widths) <= rest:
        return widths
    cut = max(widths)
    while cut > _NARROWEST_CUT and sum(min(w, cut) for w in widths) > rest:
        cut -= 1
    return [min(w, cut) for w in widths]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (_pad(cell, w, r) for cell, w, r in zip(cells, widths, right, strict=True))
    return " | ".join(padded).rstrip()


def _pad(cell: str, room: int, right: bool) -> str:
    cell = _cut(cell, room)
    blanks = " " * (room - width(cell))
    return blanks + cell if right else cell + blanks


def _cut(cell: str, room: int) -> str:
    if width(cell) <= room:
        return cell
    kept, used = [], 1  # the ellipsis
    for char in cell:
        used += _char_width(char)
        if used > room:
            break
        kept.append(char)
    return "".join(kept) + "…"
