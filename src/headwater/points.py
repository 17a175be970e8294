"""`get` and `get_many`: which columns a key is of, and whether its values fit."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater import types as t
from headwater.engine.arrow_types import to_storage
from headwater.engine.engine import Engine
from headwater.engine.ingest import rows_to_arrow
from headwater.errors import UserError
from headwater.reading import consistently
from headwater.relations import relations_for_queries
from headwater.serve.points import Access, Points, Row, as_table
from headwater.serve.uppers import Uppers
from headwater.sql.names import fold
from headwater.store.catalog import Catalog, Relation

#: Values that need no conversion, by the type of their column: point reads are many.
_PLAIN: dict[type[t.Type], type] = {t.String: str, t.Boolean: bool}
_NOT_COUNTED = contextlib.nullcontext()


class Getting:
    """Answers `get` and `get_many`."""

    def __init__(self, engine: Engine, whole: Callable[[str], pa.Table], uppers: Uppers) -> None:
        """Be ready.

        Args:
            engine: of the warehouse.
            whole: gives all rows of a relation, for a view that is evaluated when it is read.
            uppers: counts reads of views that need not be kept.
        """
        self._engine = engine
        self._whole = whole
        self._uppers = uppers
        self.points = Points(engine)
        self._catalog: Catalog | None = None
        self._ways: dict[tuple[str, tuple[str, ...] | None], Access] = {}

    def get(self, name: str, key: object, columns: Sequence[str] | None) -> dict[str, Any] | None:
        """The row of a key, or None.

        Raises:
            UserError: HW346, several rows have the key.
        """
        access, rows = self._rows_of(name, key)
        if not rows:
            _shown_columns(access.relation, columns)
            return None
        if access.nested or access.converted:
            row = as_table(rows, access.relation.fields).to_pylist()[0]
        else:
            row = dict(zip((f.name for f in access.relation.fields), rows[0], strict=True))
        shown = _shown_columns(access.relation, columns)
        return row if shown is None else {one: row[one] for one in shown}

    def row(self, name: str, key: object, columns: Sequence[str] | None) -> pa.Table:
        """The same as a table."""
        access, rows = self._rows_of(name, key)
        shown = _shown_columns(access.relation, columns)
        table = as_table(rows, access.relation.fields)
        return table if shown is None else table.select(shown)

    def _rows_of(self, name: str, key: object) -> tuple[Access, list[Row]]:
        def look() -> tuple[Access, list[Row]]:
            access, values = self._way(name, key)
            wanted = _one_key(access, values)
            if access.relation.lazy:
                given = rows_to_arrow([tuple(values)], access.keys, relation=name) if values else pa.table({})
                rows = list(_tuples(to_storage(self._picked(access, given), access.relation.fields)))
            else:
                with self._counted(access.relation):
                    rows = self.points.row(access, wanted)
            if len(rows) > 1:
                raise UserError(
                    "HW346",
                    f"{len(rows)} rows of {access.relation.name} have this key",
                    hint="get_many gives them all",
                )
            return access, rows

        return consistently(self._engine, look)

    def rows(self, name: str, keys: object, columns: Sequence[str] | None) -> pa.Table:
        """The rows of some keys."""

        def look() -> pa.Table:
            access, given = self._ways_of_many(name, keys)
            shown = _shown_columns(access.relation, columns)
            if access.relation.lazy:
                rows = self._picked(access, given)
            else:
                with self._counted(access.relation):
                    rows = self.points.rows(access, to_storage(given, access.keys))
            return rows if shown is None else rows.select(shown)

        return consistently(self._engine, look)

    def _counted(self, relation: Relation) -> contextlib.AbstractContextManager[None]:
        """Around a look into a relation: if it need not be kept, it is a read, which takes as long as this."""
        return self._read(relation.name) if relation.timing is not None else _NOT_COUNTED

    @contextlib.contextmanager
    def _read(self, view: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._uppers.read((view,))
        self._uppers.took((view,), (time.perf_counter() - began) * 1000)

    def _picked(self, access: Access, keys: pa.Table) -> pa.Table:
        """The rows of some keys of a view that is evaluated when it is read."""
        rows = self._whole(access.relation.name)  # which counts
        if not access.keys:
            return rows
        wanted = keys.cast(pa.schema([rows.schema.field(name) for name in access.names]))
        places = rows.select(access.names).append_column("#i", pa.array(range(rows.num_rows), pa.int64()))
        found = places.join(wanted, keys=list(access.names), join_type="left semi").column("#i")
        return rows.take(found)

    def _way(self, name: str, key: object) -> tuple[Access, tuple[object, ...]]:
        """How a relation is read by a key, and the values of its columns."""
        if isinstance(key, dict):
            names = tuple(key)
            access = self._access(name, names)
            by_name = {fold(str(text)): value for text, value in key.items()}
            return access, tuple(by_name[fold(f.name)] for f in access.keys)
        access = self._access(name, None)
        return access, tuple(key) if isinstance(key, tuple | list) else (key,)

    def _ways_of_many(self, name: str, keys: object) -> tuple[Access, pa.Table]:
        names: tuple[str, ...] | None = None
        if isinstance(keys, list | tuple) and keys and isinstance(keys[0], dict):
            names = tuple(keys[0])
        elif isinstance(keys, pa.Table):
            names = tuple(keys.column_names)
        access = self._access(name, names)
        if isinstance(keys, list | tuple) and len(access.keys) == 1:
            keys = [one if isinstance(one, dict | tuple | list) else (one,) for one in keys]
        return access, rows_to_arrow(keys, access.keys, relation=access.relation.name)

    def _access(self, name: str, names: tuple[str, ...] | None) -> Access:
        catalog = self._engine.catalog
        if self._catalog is not catalog:
            self._ways, self._catalog = {}, catalog
        ways = self._ways
        found = ways.get((name, names))
        if found is None:
            found = ways[name, names] = _access(self._engine, catalog, name, names)
        return found


def _access(engine: Engine, catalog: Catalog, name: str, names: tuple[str, ...] | None) -> Access:
    relation = catalog.find(name) if isinstance(name, str) else None
    if relation is None or relation.policy is not None:
        raise UserError("HW102", f"there is no relation named {name!r}", hint="SHOW RELATIONS lists what exists")
    relations_for_queries(engine, catalog).find(fold(name))  # raises if it keeps too little to be read
    fields = {fold(f.name): f for f in relation.fields}
    for one in names or ():
        if fold(str(one)) not in fields:
            hint = "its columns are " + ", ".join(f.name for f in relation.fields)
            raise UserError("HW101", f"{relation.name} has no column {one!r}", hint=hint)
    keys = _keys(relation)
    wanted = None if names is None else {fold(str(one)) for one in names}
    for key in keys:
        if wanted is None or {fold(one) for one in key} == wanted:
            return Access(catalog, relation, tuple(_not_null(fields[fold(one)]) for one in key))
    known = " or ".join(f"({', '.join(key)})" for key in keys)
    shown = f"by ({', '.join(names)})" if names is not None else "by a key"
    columns = ", ".join(names) if names else "columns"
    raise UserError(
        "HW343",
        f"{relation.name} cannot be read {shown}" + (f": its rows are found by {known}" if keys else ": it has no key"),
        hint=f"CREATE INDEX name ON {relation.name} ({columns}), or write a query",
    )


def _keys(relation: Relation) -> list[tuple[str, ...]]:
    """The columns by which rows may be asked for: the key first."""
    own = relation.key or relation.identity
    return ([own] if own is not None and (own or not relation.key) else []) + [one.columns for one in relation.indexes]


def _not_null(field: t.Field) -> t.Field:
    return t.Field(field.name, field.type, nullable=False)


def _one_key(access: Access, values: tuple[object, ...]) -> list[object]:
    """The values of a key in storage form."""
    if len(values) != len(access.keys):
        names = ", ".join(access.names)
        raise UserError(
            "HW344",
            f"a key of {access.relation.name} is ({names}), and {len(values)} values were given",
            hint="give one value for each column, as a tuple or a dict",
        )
    for value, field in zip(values, access.keys, strict=True):
        if value is None:
            raise UserError("HW344", f"{field.name} is NULL, by which no row is found", hint="write a query: IS NULL")
    if all(_fits(value, field.type) for value, field in zip(values, access.keys, strict=True)):
        return list(values)
    try:
        row = rows_to_arrow([tuple(values)], access.keys, relation=access.relation.name)
    except UserError as error:
        raise UserError("HW344", error.message, hint=error.hint) from error
    return [column[0].as_py() for column in to_storage(row, access.keys).columns]


def _fits(value: object, of: t.Type) -> bool:
    if isinstance(of, t.Integer):
        return type(value) is int and -(2 ** (of.bits - 1)) <= value < 2 ** (of.bits - 1)
    return type(value) is _PLAIN.get(type(of))


def _tuples(rows: pa.Table) -> Iterator[Row]:
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _shown_columns(relation: Relation, columns: Sequence[str] | None) -> list[str] | None:
    if columns is None:
        return None
    known = {fold(f.name): f.name for f in relation.fields}
    for one in columns:
        if fold(str(one)) not in known:
            hint = "its columns are " + ", ".join(known.values())
            raise UserError("HW101", f"{relation.name} has no column {one!r}", hint=hint)
    return [known[fold(one)] for one in columns]
