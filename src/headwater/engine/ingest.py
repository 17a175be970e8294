"""Rows as people have them into an Arrow table of exactly a relation's schema.

Rows may be Arrow (a Table, RecordBatch or RecordBatchReader, or anything that exports an Arrow stream, as Polars and
DuckDB do), a pandas or Spark DataFrame, one dict, or any iterable of dicts or of tuples. Columns are found by name,
without case; tuples are in the order of the columns. Rows are numbered from 0 in messages, as Python numbers a list.

Nothing is guessed: a value that is not of the column's type, or that would not survive exactly, is refused with the
row, the column and the value. `docs/rows.md` lists what each type takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from headwater import types as t
from headwater.engine.arrow_types import arrow_schema, arrow_type
from headwater.engine.ingest_columns import column_of_arrow, column_of_values
from headwater.engine.ingest_values import WRONG_TYPE, RefusedError, as_mapping, show
from headwater.errors import UserError
from headwater.sql.names import fold

Where = Callable[[int], str]
"""How the place of a row, by its index, is written in a message."""

NOT_ROWS = "HW320"
MISSING_COLUMN = "HW321"
UNKNOWN_COLUMN = "HW322"
WRONG_LENGTH = "HW323"
NOT_NULL = "HW327"
COLUMN_TWICE = "HW329"

_FORMS = "give a list of dicts or tuples, an Arrow table, or a pandas, Polars or Spark DataFrame"


def rows_to_arrow(rows: object, fields: t.Schema, *, relation: str, columns: tuple[str, ...] | None = None) -> pa.Table:
    """Rows as an Arrow table with exactly the schema of `fields`.

    Args:
        rows: rows in any of the forms this module's description names.
        fields: the columns of the relation.
        relation: its name, for messages.
        columns: the columns that the rows have, if not all; the others become NULL.

    Returns:
        The table; columns that already have the right Arrow type are not copied.

    Raises:
        UserError: HW320 to HW330, about the first value at fault in the first column that has one.
    """
    wanted = wanted_columns(fields, relation=relation, columns=columns)
    if _is_columnar(rows):
        return _fit_columnar(rows, fields, wanted, relation, row_number)
    records = _as_list(rows, wanted, relation)
    if records and _is_columnar(records[0]):
        return _fit_batches(records, fields, wanted, relation)
    typed = [
        typed_column(partial(column_of_values, values, field.type), field, relation=relation, where=row_number)
        for field, values in zip(wanted, _by_column(records, wanted, relation), strict=True)
    ]
    return assemble(wanted, typed, len(records), fields, relation=relation, where=row_number)


def row_number(index: int) -> str:
    """The place of a row that came through the API."""
    return f"row {index} (counting from 0)"


def wanted_columns(fields: t.Schema, *, relation: str, columns: tuple[str, ...] | None) -> t.Schema:
    """The columns that rows must have, in their order: all, or those listed."""
    if columns is None:
        return fields
    known = {fold(field.name): field for field in fields}
    chosen: list[t.Field] = []
    for name in columns:
        field = known.get(fold(name))
        if field is None:
            _refuse_unknown(name, fields, relation, "")
        if field in chosen:
            raise UserError(COLUMN_TWICE, f"the column {field.name} of {relation} is listed twice")
        chosen.append(field)
    return tuple(chosen)


def match_names(names: Sequence[str], wanted: t.Schema, *, relation: str, where: str = "") -> list[int]:
    """For each wanted column, its position among the names that the rows have."""
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        if fold(name) in positions:
            raise UserError(COLUMN_TWICE, f"{where}the column {name} for {relation} is given twice")
        positions[fold(name)] = position
    for field in wanted:
        if fold(field.name) not in positions:
            _refuse_missing(field, [str(name) for name in names], relation, where)
    if len(positions) > len(wanted):
        known = {fold(field.name) for field in wanted}
        _refuse_unknown(next(name for name in names if fold(name) not in known), wanted, relation, where)
    return [positions[fold(field.name)] for field in wanted]


def fit_table(table: pa.Table, fields: t.Schema, wanted: t.Schema, *, relation: str, where: Where) -> pa.Table:
    """An Arrow table of any order, spelling and width of columns, in the exact schema of `fields`."""
    positions = match_names(table.column_names, wanted, relation=relation)
    typed = [
        typed_column(
            partial(column_of_arrow, table.column(position), field.type), field, relation=relation, where=where
        )
        for field, position in zip(wanted, positions, strict=True)
    ]
    return assemble(wanted, typed, table.num_rows, fields, relation=relation, where=where)


def typed_column(
    make: Callable[[], pa.ChunkedArray], field: t.Field, *, relation: str, where: Where
) -> pa.ChunkedArray:
    """The column that `make` builds, or the error that says where in the relation it went wrong."""
    try:
        return make()
    except RefusedError as refused:
        place = "" if refused.index is None else f", {where(refused.index)}"
        message = f"{relation}.{field.name} {field.type}{place}: {refused.reason}"
        raise UserError(refused.code, message, hint=refused.hint) from None


def assemble(
    wanted: t.Schema,
    columns: Sequence[pa.ChunkedArray],
    length: int,
    fields: t.Schema,
    *,
    relation: str,
    where: Where,
) -> pa.Table:
    """The table of all fields, with NULL for those that were not given, once NOT NULL holds."""
    given = dict(zip(wanted, columns, strict=True))
    out = []
    for field in fields:
        column = given.get(field)
        if column is None:
            if not field.nullable:
                raise UserError(
                    NOT_NULL,
                    f"{relation}.{field.name} {field.type} is NOT NULL and is not among the columns given",
                    hint="list it and give it a value",
                )
            column = pa.chunked_array([pa.nulls(length, arrow_type(field.type))])
        elif not field.nullable and column.null_count:
            first = pc.index(pc.is_null(column), True).as_py()
            raise UserError(
                NOT_NULL,
                f"{relation}.{field.name} {field.type}, {where(first)}: NULL in a column that is NOT NULL",
                hint="keys and columns declared NOT NULL need a value in every row",
            )
        out.append(column)
    return pa.Table.from_arrays(out, schema=arrow_schema(fields))


def _is_columnar(rows: object) -> bool:
    """Whether rows come as a table or a frame, rather than one by one. A single column (a Series) is neither."""
    library, names = _family(rows)
    if library:
        return bool(names & {"DataFrame", "LazyFrame"})
    if isinstance(rows, pa.Array | pa.ChunkedArray):
        return False
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__")


def _fit_columnar(rows: Any, fields: t.Schema, wanted: t.Schema, relation: str, where: Where) -> pa.Table:
    library, names = _family(rows)
    if library == "pandas":
        return _fit_pandas(rows, fields, wanted, relation, where)
    if library == "pyspark":
        table = rows.toArrow()
    elif isinstance(rows, pa.RecordBatchReader):
        table = rows.read_all()
    else:
        table = pa.table(rows.collect() if "LazyFrame" in names else rows)
    return fit_table(table, fields, wanted, relation=relation, where=where)


def _fit_batches(batches: list[object], fields: t.Schema, wanted: t.Schema, relation: str) -> pa.Table:
    """Several tables or batches in a list or from a generator."""
    tables: list[pa.Table] = []
    before = 0
    for position, batch in enumerate(batches):
        if not _is_columnar(batch):
            _refuse_row(batch, position, relation)
        tables.append(_fit_columnar(batch, fields, wanted, relation, partial(_row_after, before)))
        before += tables[-1].num_rows
    return pa.concat_tables(tables)


def _row_after(before: int, index: int) -> str:
    return row_number(before + index)


def _fit_pandas(frame: Any, fields: t.Schema, wanted: t.Schema, relation: str, where: Where) -> pa.Table:
    """A pandas frame, without its index. A missing value is NULL, and pandas' word for missing in floats is NaN."""
    positions = match_names([str(name) for name in frame.columns], wanted, relation=relation)
    typed = [
        typed_column(
            partial(_pandas_column, frame.iloc[:, position], field.type), field, relation=relation, where=where
        )
        for field, position in zip(wanted, positions, strict=True)
    ]
    return assemble(wanted, typed, len(frame), fields, relation=relation, where=where)


def _pandas_column(series: Any, type_: t.Type) -> pa.ChunkedArray:
    if series.dtype == object:
        # Python values of any kind: Arrow would guess one type for all of them.
        return column_of_values([None if isinstance(v, float) and v != v else v for v in series], type_)
    try:
        column = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise RefusedError(
            WRONG_TYPE, f"the pandas type {series.dtype} is not one that {type_} takes ({error})"
        ) from None
    return column_of_arrow(column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column]), type_)


def _family(rows: object) -> tuple[str, set[str]]:
    """The library that an object's class, or a base of it, comes from, and the names of these classes."""
    classes = type(rows).__mro__
    libraries = {cls.__module__.partition(".")[0] for cls in classes} & {"pandas", "polars", "pyspark"}
    # A Spark Row is a tuple with names and no frame; it is a row like any other.
    return (libraries.pop() if libraries else ""), {cls.__name__ for cls in classes}


def _as_list(rows: object, wanted: t.Schema, relation: str) -> list[object]:
    """The rows one by one; a single mapping or named tuple is one row."""
    if isinstance(rows, list):
        return rows
    named = as_mapping(rows)
    if named is not None:
        if _is_dict_of_columns(named, wanted):
            raise UserError(
                NOT_ROWS,
                f"a dict of columns is not rows for {relation}",
                hint="use pyarrow.table({...}) or pandas.DataFrame({...}), or one dict for each row",
            )
        return [rows]
    if isinstance(rows, str | bytes | bytearray) or not isinstance(rows, Iterable) or hasattr(rows, "dtype"):
        message = f"{show(rows)} is a {type(rows).__name__}, which is not rows for {relation}"
        raise UserError(NOT_ROWS, message, hint=_FORMS)
    return list(rows)


def _by_column(records: list[Any], wanted: t.Schema, relation: str) -> list[list[object]]:
    """The values of each wanted column; quick for rows that are all alike, exact about the first that is not."""
    if not records:
        return [[] for _ in wanted]
    kinds = set(map(type, records))
    if kinds == {dict} and set(map(len, records)) == {len(wanted)}:
        spelt = {fold(key): key for key in records[0] if isinstance(key, str)}
        try:
            return [list(map(itemgetter(spelt[fold(field.name)]), records)) for field in wanted]
        except KeyError:
            pass
    elif kinds <= {tuple, list} and set(map(len, records)) == {len(wanted)}:
        return [list(map(itemgetter(position), records)) for position in range(len(wanted))]
    rows = [_in_order(row, index, wanted, relation) for index, row in enumerate(records)]
    return [list(map(itemgetter(position), rows)) for position in range(len(wanted))]


def _in_order(row: object, index: int, wanted: t.Schema, relation: str) -> Sequence[object]:
    """One row's values in the order of the wanted columns."""
    named = as_mapping(row)
    if named is not None:
        where = f"{row_number(index)}: "
        names: list[str] = []
        for name in named:
            if not isinstance(name, str):
                raise UserError(NOT_ROWS, f"{where}{show(name)} is not the name of a column of {relation}")
            names.append(name)
        values = list(named.values())
        return [values[position] for position in match_names(names, wanted, relation=relation, where=where)]
    if not isinstance(row, tuple | list):
        _refuse_row(row, index, relation)
    if len(row) != len(wanted):
        raise UserError(
            WRONG_LENGTH,
            f"{row_number(index)} for {relation} has {len(row)} value{'' if len(row) == 1 else 's'}, "
            f"and {len(wanted)} are needed: " + ", ".join(field.name for field in wanted),
            hint="give one value per column, None for NULL, or use dicts",
        )
    return row


def _refuse_row(row: object, index: int, relation: str) -> NoReturn:
    raise UserError(
        NOT_ROWS,
        f"{row_number(index)} for {relation} is {show(row)}, a {type(row).__name__}, which is not a row",
        hint="a row is a dict, or a tuple with one value per column: [(1, 'a')], and [(1,)] for one column",
    )


def _is_dict_of_columns(row: Mapping[object, object], wanted: t.Schema) -> bool:
    """Whether a lone dict holds a list per column where at least one column is not an array."""
    if not row or not all(isinstance(v, list | tuple) or hasattr(v, "dtype") for v in row.values()):
        return False
    arrays = {fold(field.name) for field in wanted if t.is_nested(field.type)}
    return any(fold(str(name)) not in arrays for name in row)


def _refuse_missing(field: t.Field, names: list[str], relation: str, where: str) -> NoReturn:
    have = ", ".join(names) or "none"
    raise UserError(
        MISSING_COLUMN,
        f"{where}the column {field.name} of {relation} is missing; the columns given are {have[:200]}",
        hint="give every column, with None for NULL, or list the columns you give",
    )


def _refuse_unknown(name: str, fields: t.Schema, relation: str, where: str) -> NoReturn:
    expected = ", ".join(field.name for field in fields)
    raise UserError(
        UNKNOWN_COLUMN,
        f"{where}there is no column {show(name)} to fill in {relation}; expected: {expected[:200]}",
        hint="leave it out, or correct its name",
    )
