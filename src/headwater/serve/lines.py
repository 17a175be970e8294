"""A table as lines of text for programs: CSV, JSON and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring

import pyarrow as pa

from headwater.serve import values

#: So many rows of a table become objects of Python at a time.
_BATCH_ROWS = 10_000


def csv_lines(table: pa.Table) -> Iterator[str]:
    """RFC 4180 with a header line; NULL is an empty field, the empty string is `""`."""
    kinds = [field.type for field in table.schema]
    yield ",".join(_csv_field(name) for name in table.column_names)
    for row in rows_of(table):
        yield ",".join(
            "" if value is None else _csv_field(values.text(value, kind))
            for value, kind in zip(row, kinds, strict=True)
        )


def json_lines(table: pa.Table) -> Iterator[str]:
    """One array of objects, one object a line."""
    if not table.num_rows:
        yield "[]"
        return
    objects = jsonl_lines(table)
    last = next(objects)
    yield "["
    for line in objects:
        yield last + ","
        last = line
    yield last
    yield "]"


def jsonl_lines(table: pa.Table) -> Iterator[str]:
    """One object a row."""
    names = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in _distinct(table.column_names)]
    line = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
    if not names:
        yield from (line for _ in range(table.num_rows))
        return
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        for row in zip(*map(_json_cells, batch.columns), strict=True):
            yield line % row


def _json_cells(column: pa.Array) -> list[str]:
    """The values of a column as JSON; the most common types without the detour over one value at a time."""
    kind, found = column.type, column.to_pylist()
    if pa.types.is_integer(kind):
        return ["null" if value is None else str(value) for value in found]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return ["null" if value is None else encode_basestring(value) for value in found]
    return [values.json_text(value, kind) for value in found]


def rows_of(table: pa.Table) -> Iterator[Sequence[object]]:
    """The rows of a table one by one, by position: two columns may have one name."""
    if not table.num_columns:
        yield from ([] for _ in range(table.num_rows))
        return
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv_field(text: str) -> str:
    if text and not any(c in text for c in ',"\r\n') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'


def _distinct(names: Sequence[str]) -> list[str]:
    """Names that can be keys of one object: the second `a` becomes `a_2`, or the next one that is free."""
    taken, out = set(names), []
    for i, name in enumerate(names):
        number = 2
        if name in names[:i]:
            while f"{name}_{number}" in taken:
                number += 1
            name = f"{name}_{number}"
            taken.add(name)
        out.append(name)
    return out
