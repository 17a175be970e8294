"""A micro-batch: the rows of all sources in one table, and back."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, struct
from pyspark.sql.types import StructType

from headwater import types as t
from headwater.engine.arrow_types import to_storage
from headwater.engine.file_streams import SomeRows
from headwater.engine.files_csv import parse_options
from headwater.engine.ingest import row_number, rows_to_arrow
from headwater.engine.ingest_text import from_json, from_text
from headwater.engine.ingest_values import RefusedError
from headwater.engine.tagger import code_refusal, known_codes
from headwater.errors import UserError
from headwater.spark.sources import PLACE, RECORD
from headwater.spark.types import quoted
from headwater.store.catalog import Catalog, Codes, Relation

STREAM = "#stream"


@dataclass(frozen=True)
class Reject:
    """A record that is no row of its stream."""

    record: str
    reason: str
    place: str | None = None


@dataclass
class Arrived:
    """What a micro-batch brought to a stream."""

    stream: Relation
    rows: pa.Table
    rejects: list[Reject] = field(default_factory=list)


def unite(frames: Sequence[tuple[Relation, DataFrame]]) -> DataFrame:
    """All sources as one: which stream (by position), one struct for each stream's columns, `#record`, `#place`.

    One DataFrame, because a query is what Spark runs as one job, and a job costs the same whatever it does.
    """
    whole: DataFrame | None = None
    for position, (stream, frame) in enumerate(frames):
        columns = [lit(position).cast("int").alias(STREAM)]
        for other, (relation, theirs) in enumerate(frames):
            if other == position:
                names = [col(quoted(f.name)) for f in stream.arriving]
                columns.append(struct(*names).alias(f"c{other}"))
            else:
                shape = StructType([theirs.schema[f.name] for f in relation.arriving])
                columns.append(lit(None).cast(shape).alias(f"c{other}"))
        part = frame.select(*columns, col(quoted(RECORD)), col(quoted(PLACE)))
        whole = part if whole is None else whole.unionAll(part)
    assert whole is not None
    return whole


#: Columns of raw streams that must not be NULL, because a tagged stream of this name needs them.
Needed = Mapping[str, Mapping[str, str]]


def needed_over(catalog: Catalog, streams: Iterable[Relation]) -> Needed:
    """What tagged streams need of the raw ones."""
    return {
        raw.name: {f.name: one.name for one in catalog.tagged_over(raw) for f in one.arriving if not f.nullable}
        for raw in streams
    }


def take_apart(table: pa.Table, streams: Sequence[Relation], needed: Needed | None = None) -> list[Arrived]:
    """The rows of each stream, and what must be rejected, out of a united batch."""
    out: list[Arrived] = []
    for position, stream in enumerate(streams):
        mine = table.filter(pc.equal(table.column(STREAM), position)) if len(streams) > 1 else table
        if mine.num_rows:
            out.append(_arrived(mine, f"c{position}", stream, (needed or {}).get(stream.name, {})))
    return out


def _arrived(table: pa.Table, column: str, stream: Relation, needed: Mapping[str, str]) -> Arrived:
    broken = pc.is_valid(table.column(RECORD))
    rejects = []
    if pc.any(broken).as_py():
        kept = table.filter(broken)
        texts = kept.column(RECORD).cast(pa.binary()).to_pylist()  # Spark hands over bytes that are no UTF-8, too
        for text, place in zip(texts, kept.column(PLACE).to_pylist(), strict=True):
            try:
                record = text.decode()
                reason = explain_record(record, stream)
            except UnicodeDecodeError:
                record, reason = text.decode(errors="backslashreplace"), "it is not valid UTF-8"
            rejects.append(Reject(record, reason, place))
        table = table.filter(pc.invert(broken))
    whole = table.column(column).combine_chunks()
    arrays = whole.flatten() if isinstance(whole, pa.StructArray) else []
    rows = pa.table([_without_zone(one) for one in arrays], names=[f.name for f in stream.arriving])
    if stream.codes is not None:
        rows = _decodable(rows, stream, stream.codes, rejects)
    for f in stream.arriving:
        if not f.nullable or f.name in needed:
            owner = needed.get(f.name, stream.name)
            rows = _without(rows, pc.is_null(rows.column(f.name)), f"{owner}.{f.name} cannot be NULL", rejects)
    fitted = _fitted(rows, stream, rejects)
    return Arrived(stream, to_storage(fitted, stream.arriving), rejects)


def _without(rows: pa.Table, wrong: pa.ChunkedArray, reason: str, rejects: list[Reject]) -> pa.Table:
    """Rows without those that are wrong, which go to the rejects."""
    if not pc.any(wrong).as_py():
        return rows
    rejects.extend(Reject(text, reason) for text in _texts(rows.filter(wrong)))
    return rows.filter(pc.invert(wrong))


def _decodable(rows: pa.Table, stream: Relation, codes: Codes, rejects: list[Reject]) -> pa.Table:
    """The rows of a stream with OP BY that say what to do with them, and have what they need for it."""
    values = rows.column(codes.column)
    for value in pc.unique(values.filter(pc.invert(known_codes(values, codes)))):
        values = rows.column(codes.column)
        same = pc.is_null(values) if not value.is_valid else pc.fill_null(pc.equal(values, value), False)
        rows = _without(rows, same, code_refusal(value.as_py(), codes), rejects)
    for f in stream.fields:
        if not f.nullable:
            coming = pc.is_in(rows.column(codes.column), pa.array(codes.upserts, pa.string()))
            missing = pc.and_(pc.is_null(rows.column(f.name)), coming)
            rows = _without(rows, missing, f"{stream.name}.{f.name} cannot be NULL", rejects)
    return rows


def _fitted(rows: pa.Table, stream: Relation, rejects: list[Reject]) -> pa.Table:
    """Rows in exactly the stream's types. Those with a value that we do not hold, a year 10000, go to the rejects.

    They are found by halves: there are hardly ever any.
    """
    try:
        return rows_to_arrow(rows, stream.arriving, relation=stream.name)
    except UserError as error:
        none = rows_to_arrow(rows.slice(0, 0), stream.arriving, relation=stream.name)
        if rows.num_rows == 1:
            rejects.append(Reject(_texts(rows)[0], error.message.replace(f", {row_number(0)}", "")))
            return none
        middle = rows.num_rows // 2
        return pa.concat_tables(_fitted(half, stream, rejects) for half in (rows.slice(0, middle), rows.slice(middle)))


def _texts(rows: pa.Table) -> list[str]:
    """Rows as JSON, whatever is in them."""
    records = ({name: _shown(one[name]) for name in rows.column_names} for one in _scalars(rows))
    return [json.dumps(record, default=str, ensure_ascii=False) for record in records]


def _scalars(rows: pa.Table) -> Iterator[dict[str, pa.Scalar]]:
    for index in range(rows.num_rows):
        yield {name: rows.column(name)[index] for name in rows.column_names}


def _shown(value: pa.Scalar) -> object:
    """A value for people; Python has none for some moments and some texts."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        of = value.type
        return repr(value.cast(pa.binary()).as_py()) if pa.types.is_string(of) else f"a {of} out of range"


def _without_zone(array: pa.Array) -> pa.Array:
    """Spark's timestamps are in UTC; ours have no zone."""
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return array.cast(pa.timestamp("us"))
    return array


def explain_record(record: str, stream: Relation) -> str:
    """Why a text is no row of a stream."""
    assert stream.source is not None
    try:
        if stream.source.format == "csv":
            _read_csv(record, stream)
        else:
            _read_json(record, stream)
    except RefusedError as refused:
        return refused.reason
    except (csv.Error, ValueError, ArithmeticError) as error:  # a reason must not stop what it explains
        return f"it cannot be read: {error}"
    columns = ", ".join(f"{f.name} {f.type}" for f in stream.arriving)
    return f"Spark does not read it as {columns}"


def _read_json(record: str, stream: Relation) -> None:
    try:
        value = json.loads(record, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise RefusedError("", f"it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise RefusedError("", "it is no JSON object")
    for f in stream.arriving:
        if value.get(f.name) is not None:
            _convert(f, value[f.name], from_json(f.type))


def _read_csv(record: str, stream: Relation) -> None:
    assert stream.source is not None
    options = parse_options(stream.source.options, SomeRows(stream.arriving, stream.arriving, stream.name))
    quote = options.quote or None
    [cells] = csv.reader([record], delimiter=options.delimiter, quotechar=quote, escapechar=options.escape or None)
    if len(cells) != len(stream.arriving):
        raise RefusedError("", f"it has {len(cells)} fields, not {len(stream.arriving)}")
    for f, cell in zip(stream.arriving, cells, strict=True):
        if cell != options.null:
            _convert(f, cell, from_text(f.type))


def _convert(f: t.Field, value: Any, convert: Callable[[Any], object]) -> None:
    try:
        convert(value)
    except RefusedError as refused:
        raise RefusedError("", f"{f.name} {f.type}: {refused.reason}") from None


def write_rejects(folder: Path, batch: str, arrived: Arrived) -> Path:
    """Keep rejected records, one JSON object a line; a batch that comes again writes the same file again."""
    target = folder / arrived.stream.name / f"{batch}.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        for one in arrived.rejects:
            line = {"reason": one.reason, "record": one.record, "place": one.place}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    partial.replace(target)
    return target
