"""Rows as files that a stream's source reads: the same values, written in the many ways a format has for them."""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headwater import types as t
from headwater.engine.arrow_types import arrow_schema
from tests.equivalence.case import Relation, Row
from tests.equivalence.values import plain

_TOO_LARGE = {8: (128, 200, 300), 16: (1 << 15, -(1 << 15) - 1), 32: (1 << 31, 99999999999), 64: (1 << 63,)}


@dataclass(frozen=True)
class Form:
    """A source's format, and the options of a CSV file."""

    format: str
    options: Mapping[str, object] = field(default_factory=dict)

    def sql(self, folder: Path) -> str:
        """The clause that makes a stream read a folder."""
        given = ", ".join(f"{name} {_literal(value)}" for name, value in self.options.items())
        return f"FROM {self.format} '{folder}'" + (f" ({given})" if given else "")


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t") + "'"


def choose_form(rng: random.Random, relation: Relation) -> Form:
    """A form that has room for the values of a relation's columns."""
    in_csv = not any(t.is_nested(of) or of == t.BINARY for of in relation.types)
    chosen = rng.choice(["json", "csv", "parquet"] if in_csv else ["json", "parquet"])
    if chosen != "csv":
        return Form(chosen)
    options: dict[str, object] = {}
    if rng.random() < 0.4:
        options["header"] = rng.random() < 0.3
    if rng.random() < 0.4:
        options["delimiter"] = rng.choice([";", "|", "\t"])
    if rng.random() < 0.3:
        options["quote"] = "'"
    if rng.random() < 0.4:
        options["null"] = rng.choice(["NULL", "-", "\\N"])
    return Form(chosen, options)


def write_rows(
    rng: random.Random, folder: Path, name: str, form: Form, relation: Relation, rows: Sequence[Row], malformed: int
) -> int:
    """Put a file into a folder at once; how many of the malformed records that were asked for are in it."""
    partial = folder / f".{name}.partial"
    if form.format == "parquet":
        return _write_parquet(rng, partial, folder / f"{name}.parquet", relation, rows, malformed)
    text = _Json(rng, relation) if form.format == "json" else _Csv(rng, relation, form.options)
    lines = [text.record(row) for row in rows]
    for _ in range(malformed):
        lines.insert(rng.randint(0, len(lines)), text.malformed())
    ending = rng.choice(["\n", "\n", "\r\n"])
    whole = "".join(line + ending for line in [*text.first(), *lines])
    if form.format == "json" and rng.random() < 0.2:
        whole = whole.removesuffix(ending)
    partial.write_bytes(whole.encode(errors="surrogateescape"))
    partial.rename(folder / f"{name}.{form.format}")
    return malformed


def _write_parquet(
    rng: random.Random, partial: Path, target: Path, relation: Relation, rows: Sequence[Row], malformed: int
) -> int:
    required = [at for at, column in enumerate(relation.columns) if not column.nullable]
    written = list(rows)
    malformed = malformed if required and rows else 0
    for _ in range(malformed):
        row, at = rng.choice(rows), rng.choice(required)
        written.insert(rng.randint(0, len(written)), (*row[:at], None, *row[at + 1 :]))
    schema = arrow_schema(relation.columns)
    records = [
        {c.name: plain(value, c.type) for c, value in zip(relation.columns, row, strict=True)} for row in written
    ]
    table = pa.Table.from_pylist(records, schema=schema)
    if rng.random() < 0.5:
        table = table.cast(pa.schema([(f.name, _in_utc(f.type)) for f in schema]))
    if rng.random() < 0.3:
        table = table.select(rng.sample(table.column_names, table.num_columns))
    pq.write_table(table, partial, row_group_size=rng.choice([1, 2, 1000]))
    partial.rename(target)
    return malformed


def _in_utc(of: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(of) else of


def _moment(rng: random.Random, value: datetime) -> str:
    text = value.isoformat(rng.choice([" ", "T"]))
    return text + rng.choice(["", "", "Z"])


class _Json:
    """Records of a JSON file."""

    def __init__(self, rng: random.Random, relation: Relation) -> None:
        self._rng, self._relation = rng, relation

    def first(self) -> list[str]:
        return []

    def record(self, row: Row) -> str:
        pairs = [(c.name, c.type, value) for c, value in zip(self._relation.columns, row, strict=True)]
        return self._object(pairs)

    def _object(self, pairs: Sequence[tuple[str, t.Type, object]]) -> str:
        written = [
            (name, self._value(value, of)) for name, of, value in pairs if value is not None or self._rng.random() < 0.6
        ]
        self._rng.shuffle(written)
        return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in written) + "}"

    def _value(self, value: object, of: t.Type) -> str:
        rng = self._rng
        match value, of:
            case None, _:
                return "null"
            case tuple(), t.Array(element):
                return "[" + ", ".join(self._value(one, element) for one in value) + "]"
            case tuple(), t.Struct(fields):
                return self._object([(name, inner, one) for one, (name, inner) in zip(value, fields, strict=True)])
            case Decimal(), _:
                return rng.choice([str(value), f'"{value}"'])
            case float(), _ if not math.isfinite(value):
                return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[repr(value)]
            case bytes(), _:
                return json.dumps(base64.b64encode(value).decode())
            case datetime(), _:
                return json.dumps(_moment(rng, value))
            case str(), _:
                return json.dumps(value, ensure_ascii=rng.random() < 0.5)
            case ((bool() | int() | float()), _):
                return json.dumps(value)
        return json.dumps(str(value))

    def malformed(self) -> str:
        """A line that is no record of the relation."""
        rng, columns = self._rng, self._relation.columns
        column = rng.choice(columns)
        others = {c.name: _good(c.type) for c in columns}
        makers: list[Callable[[], str]] = [
            lambda: rng.choice(["not json at all", "[1, 2]", '"text"', "17", "{", '{"a"']),
            lambda: json.dumps(others)[:-1],
        ]
        if not column.nullable:
            makers.append(lambda: json.dumps({**others, column.name: None}))
            makers.append(lambda: json.dumps({name: one for name, one in others.items() if name != column.name}))
        wrong: list[object] = ["\udcff"] if isinstance(column.type, t.String | t.Binary) else _wrong(column.type)
        makers += [lambda: json.dumps({**others, column.name: rng.choice(wrong)}, ensure_ascii=False)] * 2
        return rng.choice(makers)()


def _good(of: t.Type) -> object:
    """A value of a type as JSON has it."""
    match of:
        case t.Boolean():
            return True
        case t.Date() | t.Timestamp():
            return "2024-01-01"
        case t.String() | t.Binary():
            return "YQ=="
        case t.Array():
            return []
        case t.Struct():
            return {}
    return 1


def _wrong(of: t.Type) -> list[object]:
    """What is no value of a type other than text."""
    match of:
        case t.Integer(bits):
            return ["many", 1.5, *_TOO_LARGE[bits]]
        case t.Decimal(precision, _):
            return ["many", 10**precision]
        case t.Date() | t.Timestamp():
            return ["many", "2024-02-30", "10000-01-01"]
    return ["many"]


class _Csv:
    """Records of a CSV file."""

    def __init__(self, rng: random.Random, relation: Relation, options: Mapping[str, object]) -> None:
        self._rng, self._relation = rng, relation
        self._null = str(options.get("null", ""))
        self._quote = str(options.get("quote", '"'))
        self._delimiter = str(options.get("delimiter", ","))
        self._header = bool(options.get("header", True))

    def first(self) -> list[str]:
        return [self._delimiter.join(self._relation.names)] if self._header else []

    def record(self, row: Row) -> str:
        return self._delimiter.join(map(self._cell, row, self._relation.types))

    def _cell(self, value: object, of: t.Type) -> str:
        match value:
            case None:
                return self._null
            case bool():
                text = str(value).lower()
            case float() if not math.isfinite(value):
                text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
            case datetime():
                text = _moment(self._rng, value)
            case _:
                text = str(value)
        must = text in ("", self._null) or any(c in text for c in (self._delimiter, self._quote))
        return self._quoted(text) if must or self._rng.random() < 0.2 else text

    def _quoted(self, text: str) -> str:
        return self._quote + text.replace(self._quote, 2 * self._quote) + self._quote

    def malformed(self) -> str:
        """A line that is no record of the relation."""
        rng, columns = self._rng, self._relation.columns
        at = rng.randrange(len(columns))
        cells = [str(_good(c.type)).lower() if c.type == t.BOOLEAN else str(_good(c.type)) for c in columns]
        makers: list[Callable[[], list[str]]] = [lambda: [*cells, "1"]]
        if len(columns) > 1:  # a line without any cell is no record
            makers.append(lambda: cells[:-1])
        if not columns[at].nullable and (self._null or len(columns) > 1):
            makers.append(lambda: [*cells[:at], self._null, *cells[at + 1 :]])
        if not isinstance(columns[at].type, t.String):
            wrong = _wrong(columns[at].type)
            makers += [lambda: [*cells[:at], str(rng.choice(wrong)), *cells[at + 1 :]]] * 2
        return self._delimiter.join(rng.choice(makers)())
