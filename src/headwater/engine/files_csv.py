"""CSV files: Arrow splits them into fields, and each column is read by its type.

An unquoted empty field is NULL and a quoted one is an empty string, unless the option `null` names another word for
NULL, which then counts only where it is not quoted. Empty lines are skipped. Columns are found by the header, without
case, or by position if there is none.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from headwater import types as t
from headwater.engine.file_streams import DAMAGED, SomeRows, open_stream, opening
from headwater.engine.ingest import WRONG_LENGTH, assemble, match_names, typed_column
from headwater.engine.ingest_text import column_of_text
from headwater.engine.ingest_values import NOT_UTF8, show
from headwater.errors import NotSupported, UserError
from headwater.sql.names import fold

EMPTY = "HW413"
WRONG_OPTION = "HW414"
NESTED = "HW280"

_BLOCK = 8 << 20
_LARGEST_BLOCK = (1 << 31) - 1
_BOM = "\xef\xbb\xbf"  # as the scanner sees it, byte by byte


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV file is written. An empty `quote` or `escape` means that there is none."""

    header: bool = True
    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    null: str = ""


@dataclass(frozen=True)
class Record:
    """A row of a CSV file: the line it starts on, the line after it, its number of fields and its text."""

    line: int
    next_line: int
    fields: int
    text: str


def parse_options(options: Mapping[str, object], target: SomeRows) -> CsvOptions:
    """The options of COPY ... CSV; refuses unknown ones, and columns that CSV has no form for."""
    nested = next((field for field in target.wanted if t.is_nested(field.type)), None)
    if nested is not None:
        raise NotSupported(
            NESTED,
            f"a CSV file cannot hold {target.relation}.{nested.name}, which is {nested.type}",
            hint="use JSON or Parquet, or list the other columns: COPY t (a, b) FROM ...",
        )
    given: dict[str, Any] = {}
    for name, value in options.items():
        kind = {"header": bool, "delimiter": str, "quote": str, "escape": str, "null": str}.get(fold(name))
        if kind is None:
            raise _wrong_option(f"there is no CSV option {name}; there are header, delimiter, quote, escape and null")
        if not isinstance(value, kind):
            raise _wrong_option(f"the CSV option {name} is {'true or false' if kind is bool else 'a string'}")
        given[fold(name)] = "\t" if fold(name) == "delimiter" and value == "\\t" else value
    out = CsvOptions(**given)
    marks = [mark for mark in (out.delimiter, out.quote, out.escape) if mark]
    if not out.delimiter or any(len(mark) != 1 or not mark.isascii() or mark in "\r\n" for mark in marks):
        raise _wrong_option("delimiter, quote and escape are one ASCII character each")
    if out.delimiter in (out.quote, out.escape):
        raise _wrong_option("the delimiter is also the quote or the escape character")
    # A quote that escapes itself is the doubled quote, which is always understood.
    return CsvOptions(**(given | {"escape": ""})) if out.escape and out.escape == out.quote else out


def read_csv(path: str, options: CsvOptions, target: SomeRows) -> Iterator[pa.Table]:
    """The rows of one CSV file."""
    lines = records(path, options)
    first = next(lines, None)
    if first is None:
        if options.header:
            raise UserError(EMPTY, f"{path} is empty: it has no header", hint="use header = false if it never has one")
        return
    positions = _positions(path, first, options, target)
    if options.header and next(lines, None) is None:
        return
    before = 0
    for batch in _batches(path, first, options):

        def where(index: int, before: int = before) -> str:
            return f"{path}, {_line_of(path, options, before + index)}"

        typed = [
            typed_column(
                partial(column_of_text, pa.chunked_array([batch.column(position)]), field.type),
                field,
                relation=target.relation,
                where=where,
            )
            for field, position in zip(target.wanted, positions, strict=True)
        ]
        yield assemble(target.wanted, typed, batch.num_rows, target.fields, relation=target.relation, where=where)
        before += batch.num_rows


def records(path: str, options: CsvOptions) -> Iterator[Record]:
    """The records of a file one by one, in plain Python: for the header, for line numbers, for finding what is wrong.

    Raises:
        UserError: HW412 if a quote is opened and never closed.
    """
    with opening(path), open_stream(path) as stream:
        yield from _scan(io.TextIOWrapper(stream, encoding="latin-1", newline=""), options, path)


def _positions(path: str, first: Record, options: CsvOptions, target: SomeRows) -> list[int]:
    """Where in the file each wanted column stands."""
    if not options.header:
        if first.fields != len(target.wanted):
            raise _wrong_length(path, first, len(target.wanted), target.relation)
        return list(range(len(target.wanted)))
    names = _header(path, first, options)
    try:
        return match_names(names, target.wanted, relation=target.relation, where=f"{path}, header: ")
    except UserError as error:
        known = {fold(field.name) for field in target.fields}
        if not known.intersection(map(fold, names)):
            error.hint = "if the first line is not a header, use header = false"
        raise


def _header(path: str, first: Record, options: CsvOptions) -> list[str]:
    try:
        text = first.text.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise UserError(NOT_UTF8, f"{path}, line {first.line}: the header is not valid UTF-8") from None
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=options.delimiter,
        quotechar=options.quote or None,
        escapechar=options.escape or None,
        quoting=csv.QUOTE_MINIMAL if options.quote else csv.QUOTE_NONE,
    )
    return [name.strip() for name in next(reader)]


class _Bytes:
    """The stream that Arrow reads, with remedies for what it does at the seams.

    No piece ends in a carriage return, because Arrow would drop a line feed at the start of the next one even inside
    quotes. The last line ends in a line feed, because Arrow takes an empty field at the very end for a quoted one if
    its neighbour is. And quotes are counted: an odd number is a reason to look for one that is never closed.
    """

    def __init__(self, stream: pa.NativeFile, quote: str) -> None:
        self.stream = stream
        self.quote = quote.encode()
        self.quotes = 0
        self.held = b""
        self.line_open = False
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        more: bytes = self.stream.read(size)
        if not more:
            rest = self.held or (b"\n" if self.line_open else b"")
            self.held, self.line_open = b"", False
            return rest
        if self.quote:
            self.quotes += more.count(self.quote)
        data = self.held + more
        self.held = b"\r" if data.endswith(b"\r") else b""
        self.line_open = not data.endswith((b"\r", b"\n"))
        return data.removesuffix(self.held) or self.read(size)

    def close(self) -> None:
        self.closed = True
        self.stream.close()

    def readable(self) -> bool:
        return True


def _batches(path: str, first: Record, options: CsvOptions) -> Iterator[pa.RecordBatch]:
    """All fields as bytes, NULL where the file has NULL."""
    block, done = _BLOCK, 0
    last: pa.RecordBatch | None = None
    while True:
        stream = _Bytes(open_stream(path), options.quote)
        try:
            with opening(path):
                reader = _open(stream, first, options, block, done)
            while True:
                batch = _next_batch(path, reader)
                if batch is None:
                    break
                if batch.num_rows:
                    done, last = done + batch.num_rows, batch
                    yield batch
        except _RowBeyondBlockError:
            # One row is longer than a block: begin again behind the rows already given, with longer blocks.
            if block == _LARGEST_BLOCK:
                raise UserError(DAMAGED, f"{path} has a row of more than 2 GB, or a quote never closed") from None
            block = min(block * 8, _LARGEST_BLOCK)
            continue
        except _WrongFieldsError as error:
            raise _find_wrong_length(path, first, options) or UserError(DAMAGED, f"{path}: {error}") from None
        finally:
            stream.close()
        _check_closed(path, options, stream.quotes, last)
        return


class _RowBeyondBlockError(Exception):
    pass


class _WrongFieldsError(Exception):
    pass


def _open(stream: _Bytes, first: Record, options: CsvOptions, block: int, done: int) -> pcsv.CSVStreamingReader | None:
    names = [f"c{position}" for position in range(first.fields)]
    try:
        return pcsv.open_csv(
            stream,
            read_options=pcsv.ReadOptions(
                column_names=names,
                block_size=block,
                skip_rows=first.next_line - 1 if options.header else 0,
                skip_rows_after_names=done,
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=options.delimiter,
                quote_char=options.quote or False,
                escape_char=options.escape or False,
                newlines_in_values=bool(options.quote),
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.binary()),
                null_values=[options.null],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        _classify(error)
        if "Empty CSV" in str(error):  # a header and nothing else
            return None
        raise


def _next_batch(path: str, reader: pcsv.CSVStreamingReader | None) -> pa.RecordBatch | None:
    with opening(path):
        try:
            return None if reader is None else reader.read_next_batch()
        except StopIteration:
            return None
        except pa.ArrowInvalid as error:
            _classify(error)
            raise


def _classify(error: pa.ArrowInvalid) -> None:
    message = str(error)
    if "straddl" in message or "block size" in message:
        raise _RowBeyondBlockError from None
    if re.search(r"Expected \d+ columns, got \d+", message):
        raise _WrongFieldsError(message.splitlines()[0][:200]) from None


def _check_closed(path: str, options: CsvOptions, quotes: int, last: pa.RecordBatch | None) -> None:
    """Arrow ends a quoted field at the end of the file without a word, and all the rows in it are lost."""
    if last is None or not quotes:
        return
    end = last.column(last.num_columns - 1)[last.num_rows - 1].as_py() or b""
    if quotes % 2 or b"\n" in end or b"\r" in end:
        for _ in records(path, options):
            pass


def _scan(lines: Iterable[str], options: CsvOptions, path: str) -> Iterator[Record]:
    """Split lines into records by the rules Arrow goes by: a field is quoted if it starts with a quote."""
    quote, escape = re.escape(options.quote), re.escape(options.escape)
    escaped = f"|{escape}." if escape else ""
    inside = re.compile(f"(?:[^{quote}{escape}]+|{quote}{quote}{escaped})*+", re.DOTALL) if quote else None
    outside = re.compile(rf"(?:[^{re.escape(options.delimiter)}\r\n{escape}]+{escaped})*+", re.DOTALL)
    start, fields, open_quote = 0, 0, False
    parts: list[str] = []
    for number, line in enumerate(lines, 1):
        position = 0
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
        if not open_quote:
            if not line.strip("\r\n"):
                continue
            start, fields, parts = number, 1, []
        parts.append(line)
        while True:
            if not open_quote and inside and line.startswith(options.quote, position):
                open_quote, position = True, position + 1
            if open_quote:
                assert inside
                found = inside.match(line, position)
                position = found.end() if found else position
                if not line.startswith(options.quote, position):
                    break
                open_quote, position = False, position + 1
            found = outside.match(line, position)
            position = found.end() if found else position
            if not line.startswith(options.delimiter, position):
                break
            fields, position = fields + 1, position + 1
        if not open_quote:
            yield Record(start, number + 1, fields, "".join(parts))
    if open_quote:
        raise UserError(
            DAMAGED,
            f"{path}: a quote in the row of line {start} is opened and never closed",
            hint="close it, double a quote that belongs to the text, or use another quote character",
        )


def _line_of(path: str, options: CsvOptions, row: int) -> str:
    """The line on which a row, counted from 0 without the header, starts."""
    try:
        for index, record in enumerate(records(path, options), -1 if options.header else 0):
            if index == row:
                return f"line {record.line}"
    except UserError:
        pass
    return f"row {row} (counting from 0)"


def _find_wrong_length(path: str, first: Record, options: CsvOptions) -> UserError | None:
    for record in records(path, options):
        if record.fields != first.fields:
            return _wrong_length(path, record, first.fields, None)
    return None


def _wrong_length(path: str, record: Record, expected: int, relation: str | None) -> UserError:
    text = record.text.encode("latin-1").decode(errors="replace").rstrip("\r\n")
    plural = "" if record.fields == 1 else "s"
    wanted = f"{relation} needs {expected}" if relation else f"the first line has {expected}"
    return UserError(
        WRONG_LENGTH,
        f"{path}, line {record.line} has {record.fields} field{plural} and {wanted}: {show(text)}",
        hint="is the delimiter right? A field that contains it must be quoted",
    )


def _wrong_option(message: str) -> UserError:
    return UserError(WRONG_OPTION, message)
