"""JSON files: one object per line, or one array of objects.

Arrow reads whole blocks of lines. Where it objects (and for types it has no JSON form for) the block is read again
line by line, which either succeeds or finds the line at fault. A key that is absent is NULL, because the programs that
write JSON, Spark among them, leave NULL out; a key that is no column is an error.
"""

from __future__ import annotations

import decimal
import io
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from headwater import types as t
from headwater.engine.arrow_types import arrow_type
from headwater.engine.file_streams import SomeRows, open_stream, opening
from headwater.engine.ingest import COLUMN_TWICE, NOT_ROWS, UNKNOWN_COLUMN, assemble, typed_column
from headwater.engine.ingest_columns import column_of_arrow, converted
from headwater.engine.ingest_text import column_of_text, from_json
from headwater.engine.ingest_values import NOT_UTF8, RefusedError, show
from headwater.errors import UserError
from headwater.sql.names import fold

NOT_JSON = "HW415"

_BLOCK = 8 << 20
_ARRAY_ROWS = 50_000
_BOM = b"\xef\xbb\xbf"
_ABSENT = object()

# Numbers with an exponent or many digits, which Arrow does not always read exactly as decimals.
_UNUSUAL_NUMBER = re.compile(rb':[\s"+-]*[0-9.]++(?:[eE]|(?<=[0-9.]{39}))')

# Where a value may be cut off by the end of what has been read so far, the decoder complains near that end.
_NEAR_END = 64


def read_json(path: str, target: SomeRows) -> Iterator[pa.Table]:
    """The rows of one JSON file."""
    with opening(path), open_stream(path) as stream:
        head = stream.read(_BLOCK)
    start = head.removeprefix(_BOM).lstrip()[:1]
    return _array(path, target) if start == b"[" else _lines(path, target)


def _lines(path: str, target: SomeRows) -> Iterator[pa.Table]:
    spelling: dict[str, str] | None = None
    for line, block in _blocks(path):
        if spelling is None:
            spelling = _spelling(block)
        table = _whole_block(block, spelling, target)
        if table is None:
            objects, numbers = _objects(path, block, line)
            table = _table_of_objects(path, objects, numbers, target)
        yield table


def _blocks(path: str) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about eight megabytes at a time, with the number of the first."""
    number, pieces = 1, []
    with open_stream(path) as stream:
        while True:
            with opening(path):
                data = stream.read(_BLOCK)
            if not data:
                break
            cut = data.rfind(b"\n") + 1
            if not cut:
                pieces.append(data)
                continue
            block = b"".join([*pieces, data[:cut]])
            pieces = [data[cut:]]
            yield number, block.removeprefix(_BOM) if number == 1 else block
            number += block.count(b"\n")
    rest = b"".join(pieces)
    if rest.strip():
        yield number, rest.removeprefix(_BOM) if number == 1 else rest


def _spelling(block: bytes) -> dict[str, str]:
    """How the first object of the file spells its keys: Arrow needs to be told exactly."""
    try:
        first = json.loads(block[: block.find(b"\n") + 1 or len(block)])
    except (ValueError, RecursionError):
        return {}
    return {fold(key): key for key in first} if isinstance(first, dict) else {}


def _whole_block(block: bytes, spelling: dict[str, str], target: SomeRows) -> pa.Table | None:
    """The rows of a block by Arrow alone, or None if it must be read line by line."""
    kinds = [_json_arrow_type(field.type) for field in target.wanted]
    if None in kinds or len(block) >= (1 << 31) - 1:
        return None
    if any(isinstance(field.type, t.Decimal) for field in target.wanted) and _UNUSUAL_NUMBER.search(block):
        return None
    names = [spelling.get(fold(field.name), field.name) for field in target.wanted]
    try:
        table = pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(block_size=len(block) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(zip(names, kinds, strict=True))), unexpected_field_behavior="error"
            ),
        )
        # Arrow also takes two objects on a line, and one on several: not so the line-by-line reader.
        if table.num_rows != block.count(b"\n") + (not block.endswith(b"\n")):
            return None
        typed = [_typed(table.column(name), field.type) for name, field in zip(names, target.wanted, strict=True)]
        return assemble(
            target.wanted, typed, table.num_rows, target.fields, relation=target.relation, where=lambda _: ""
        )
    except (pa.ArrowException, RefusedError, UserError):
        return None


def _json_arrow_type(type_: t.Type) -> pa.DataType | None:
    """The Arrow type under which Arrow reads JSON for a column exactly, or None."""
    match type_:
        case t.Boolean() | t.Integer() | t.Float() | t.Double() | t.String():
            return arrow_type(type_)
        case t.Decimal(_, scale):  # narrowed later: Arrow's JSON reader does not count digits before the point
            return pa.decimal256(t.MAX_PRECISION, scale)
        case t.Date() | t.Timestamp():
            return pa.string()
        case t.Array(element) if isinstance(element, t.Boolean | t.Integer | t.Double | t.String):
            return arrow_type(type_)
    return None


def _typed(column: pa.ChunkedArray, type_: t.Type) -> pa.ChunkedArray:
    if isinstance(type_, t.Date | t.Timestamp):
        return column_of_text(column, type_)
    if isinstance(type_, t.Float) and pc.any(pc.is_inf(column)).as_py():
        raise RefusedError(NOT_JSON, "infinite, or only too large")
    if isinstance(type_, t.Decimal):
        column = column.cast(arrow_type(type_))
    return column_of_arrow(column, type_)


def _objects(path: str, block: bytes, first_line: int) -> tuple[list[object], list[int]]:
    """The values of a block's lines, each with the number of its line."""
    objects: list[object] = []
    numbers: list[int] = []
    for number, line in enumerate(block.split(b"\n"), first_line):
        if not line.strip():
            continue
        try:
            objects.append(json.loads(line.decode(), parse_float=decimal.Decimal, object_pairs_hook=_once))
        except UnicodeDecodeError:
            raise UserError(
                NOT_UTF8, f"{path}, line {number}: not valid UTF-8: {show(line)}", hint="convert the file to UTF-8"
            ) from None
        except _KeyTwiceError as error:
            raise _key_twice(path, number, str(error)) from None
        except (ValueError, ArithmeticError, RecursionError) as error:
            _refuse_json(path, number, error, line.decode())
        numbers.append(number)
    return objects, numbers


def _array(path: str, target: SomeRows) -> Iterator[pa.Table]:
    """The objects of a file that is one array, some at a time."""
    objects: list[object] = []
    numbers: list[int] = []
    for number, value in _elements(path):
        objects.append(value)
        numbers.append(number)
        if len(objects) >= _ARRAY_ROWS:
            yield _table_of_objects(path, objects, numbers, target)
            objects, numbers = [], []
    yield _table_of_objects(path, objects, numbers, target)


class _Text:
    """The text of a file as far as it has been read and not yet used, and the line it starts on."""

    def __init__(self, path: str, stream: pa.NativeFile) -> None:
        self.path = path
        self.reader = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        self.text = ""
        self.position = 0
        self.line = 1
        self.ended = False

    def more(self) -> None:
        """Read on; twice as much each time, so that a long value is not parsed too often."""
        try:
            with opening(self.path):
                data = self.reader.read(max(_BLOCK, len(self.text)))
        except UnicodeDecodeError:
            raise UserError(NOT_UTF8, f"{self.path}, behind line {self.line}: not valid UTF-8") from None
        self.ended = not data
        self.text = self.text[self.position :] + data
        self.position = 0

    def advance(self, position: int) -> None:
        self.line += self.text.count("\n", self.position, position)
        self.position = position

    def peek(self) -> str:
        """The next character that is not white space, or nothing at the end."""
        while True:
            position = self.position
            while position < len(self.text) and self.text[position] in " \t\r\n":
                position += 1
            self.advance(position)
            if position < len(self.text) or self.ended:
                return self.text[position : position + 1]
            self.more()


def _elements(path: str) -> Iterator[tuple[int, object]]:
    decoder = json.JSONDecoder(parse_float=decimal.Decimal, object_pairs_hook=_once)
    with open_stream(path) as stream:
        text = _Text(path, stream)
        expected = "["
        while True:
            mark = text.peek()
            if not mark or mark not in expected:
                what = f"found {show(mark)}" if mark else "the file ends"
                raise UserError(NOT_JSON, f"{path}, line {text.line}: {what} where {' or '.join(expected)} is expected")
            text.advance(text.position + 1)
            if mark == "]":
                break
            following = text.peek()
            if mark == "[" and following == "]":
                expected = "]"
                continue
            if following != "{":
                raise UserError(
                    NOT_ROWS, f"{path}, line {text.line}: {show(following)} where the object of a row is expected"
                )
            line = text.line
            yield line, _decoded(text, decoder)
            expected = ",]"
        if text.peek():
            raise UserError(NOT_JSON, f"{path}, line {text.line}: there is more behind the end of the array")


def _decoded(text: _Text, decoder: json.JSONDecoder) -> object:
    while True:
        try:
            value, end = decoder.raw_decode(text.text, text.position)
        except _KeyTwiceError as error:
            raise _key_twice(text.path, text.line, str(error)) from None
        except json.JSONDecodeError as error:
            cut_off = error.msg.startswith("Unterminated string") or error.pos >= len(text.text) - _NEAR_END
            if text.ended or not cut_off:
                line = text.line + text.text.count("\n", text.position, error.pos)
                _refuse_json(text.path, line, error, text.text[text.position : text.position + 100])
            text.more()
        except (ValueError, ArithmeticError, RecursionError) as error:
            _refuse_json(text.path, text.line, error, text.text[text.position : text.position + 100])
        else:
            text.advance(end)
            return value


def _table_of_objects(path: str, objects: list[object], numbers: list[int], target: SomeRows) -> pa.Table:
    def where(index: int) -> str:
        return f"{path}, line {numbers[index]}"

    known = {fold(field.name): position for position, field in enumerate(target.wanted)}
    positions: dict[str, int] = {}
    rows: list[list[Any]] = []
    for index, value in enumerate(objects):
        if not isinstance(value, dict):
            raise UserError(
                NOT_ROWS,
                f"{where(index)}: {show(value)} is not an object",
                hint="a row is an object with a key per column, one on each line",
            )
        row: list[Any] = [_ABSENT] * len(target.wanted)
        for key, item in value.items():
            position = positions.get(key)
            if position is None:
                position = known.get(fold(key))
                if position is None:
                    raise _unknown_key(where(index), key, target)
                positions[key] = position
            if row[position] is not _ABSENT:
                raise _key_twice(path, numbers[index], key)
            row[position] = item
        rows.append([None if item is _ABSENT else item for item in row])
    typed = []
    for position, field in enumerate(target.wanted):
        make = partial(_from_json, [row[position] for row in rows], field.type)
        typed.append(typed_column(make, field, relation=target.relation, where=where))
    return assemble(target.wanted, typed, len(rows), target.fields, relation=target.relation, where=where)


def _from_json(values: list[object], type_: t.Type) -> pa.ChunkedArray:
    return converted(values, type_, from_json(type_))


class _KeyTwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) < len(pairs):
        names = [name for name, _ in pairs]
        raise _KeyTwiceError(next(name for name in names if names.count(name) > 1))
    return out


def _key_twice(path: str, line: int, key: str) -> UserError:
    return UserError(COLUMN_TWICE, f"{path}, line {line}: the key {show(key)} is there twice")


def _unknown_key(where: str, key: str, target: SomeRows) -> UserError:
    expected = ", ".join(field.name for field in target.wanted)
    return UserError(
        UNKNOWN_COLUMN,
        f"{where}: there is no column {show(key)} to fill in {target.relation}; expected: {expected[:200]}",
        hint="leave it out, or correct its name",
    )


def _refuse_json(path: str, line: int, error: Exception, text: str) -> NoReturn:
    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error) or type(error).__name__
    raise UserError(
        NOT_JSON,
        f"{path}, line {line}: not JSON: {reason}: {show(text.strip())}",
        hint="a file has one object on each line, or is one array of objects",
    ) from None
