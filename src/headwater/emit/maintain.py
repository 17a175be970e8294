"""The SQL of a maintenance program: tables, and the statements of an epoch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from headwater import types as t
from headwater.algebra.folds import Pick
from headwater.algebra.nodes import Over, Present, Project, Sum
from headwater.algebra.scalars import TRUE, Column, Scalar
from headwater.emit.duckdb import Emitter
from headwater.emit.functions.build import fn, recast
from headwater.emit.layout import (
    EPOCH,
    MULTIPLICITY,
    SHOWN,
    Fill,
    Grouped,
    as_column,
    bigint,
    column,
    delta_table,
    fill,
    found_table,
    key_column,
    name,
    number,
    payload_column,
    pending_table,
    same_row,
    sql,
    store_table,
    total,
)
from headwater.emit.probes import OWN, Found, Probe, probes_of_settle
from headwater.emit.scalars import duckdb_scalar, duckdb_type
from headwater.plan.program import Add, Map, Program, Touch

Columns = tuple[tuple[str, t.Type], ...]


@dataclass(frozen=True)
class MapSQL:
    """Statements that belong to one map.

    Attributes:
        settle: turns pending contributions into the map's change of this epoch; None where they are that change.
        append: adds that change to the store; takes `$epoch`.
        settle_and_append: both in one, for when nothing else needs the change; takes `$epoch`.
        probes: what settling could look up.
    """

    settle: Fill | None
    append: str
    settle_and_append: str | None
    probes: tuple[Probe, ...] = ()


def key_columns(sums: Sum) -> Columns:
    return tuple((key_column(i), key.type) for i, (_, key) in enumerate(sums.keys))


def key_fields(sums: Sum) -> t.Schema:
    """The key columns with what is known of their NULLs."""
    nullable = {f.name: f.nullable for f in sums.input.schema}
    return tuple(
        t.Field(key_column(i), key.type, nullable[key.name] if isinstance(key, Column) else True)
        for i, (_, key) in enumerate(sums.keys)
    )


def payload_columns(sums: Sum) -> Columns:
    return tuple((payload_column(i), f.type) for i, f in enumerate(sums.payload))


def row_columns(fields: t.Schema) -> Columns:
    return tuple((f.name, f.type) for f in fields)


def grouped(one: Map) -> Grouped | None:
    """How a map is stored by group, if it is."""
    if one.present is None:
        return None
    sums = one.present.sums
    carried = dict(zip(sums.column_names, (*key_columns(sums), *payload_columns(sums)), strict=True))
    repeats = {
        text: carried[scalar.name][0]
        for text, scalar in one.present.outputs
        if isinstance(scalar, Column) and carried[scalar.name][1] == scalar.type
    }
    return Grouped(bool(sums.keys), repeats)


def grouped_maps(maps: Iterable[Map]) -> dict[str, Grouped]:
    """Of some maps those that are stored by group."""
    found = {one.name: grouped(one) for one in maps}
    return {text: stored for text, stored in found.items() if stored is not None}


def stored_columns(one: Map) -> Columns:
    """Columns of a map's store and delta, without `#n` and `#e`."""
    if isinstance(one.definition, Over):
        return (*_keys_of(one), *row_columns(one.fields))
    if one.present is None:
        return row_columns(one.fields)
    sums = one.present.sums
    return (*key_columns(sums), *payload_columns(sums), *_own_columns(one), (SHOWN, t.BOOLEAN))


def _own_columns(one: Map) -> Columns:
    """The columns of a map stored by group that do not just repeat others."""
    stored = grouped(one)
    assert stored is not None
    return tuple((text, of) for text, of in row_columns(one.fields) if text not in stored.repeats)


def create_store(relation: str, columns: Columns, runs: frozenset[str] = frozenset()) -> str:
    """CREATE TABLE for a store.

    Args:
        relation: whose.
        columns: its own; multiplicity and epoch come after them.
        runs: columns in which the same value stands many times in a row. DuckDB need not find out how to store them,
            which takes an eighth of the time that storing takes.
    """
    every: Columns = (*columns, (MULTIPLICITY, t.BIGINT), (EPOCH, t.BIGINT))
    stored = exp.ColumnConstraint(kind=exp.Var(this="USING COMPRESSION rle"))
    definitions = [
        exp.ColumnDef(this=name(text), kind=duckdb_type(of), constraints=[stored.copy()] if text in runs else None)
        for text, of in every
    ]
    return sql(exp.Create(this=exp.Schema(this=store_table(relation), expressions=definitions), kind="TABLE"))


def append_statement(
    relation: str, columns: Columns, kept: frozenset[str] | None = None, condition: Scalar = TRUE
) -> str:
    """Adds the epoch's change of a relation to its store; takes `$epoch`.

    Args:
        relation: whose.
        columns: all of them.
        kept: columns to store; others are stored as NULL. All by default.
        condition: rows to store.
    """
    values = [column(text) if kept is None or text in kept else exp.null() for text, _ in columns]
    source = exp.Select(expressions=[*values, column(MULTIPLICITY), epoch_parameter()])
    source = source.from_(delta_table(relation), copy=False)
    if condition != TRUE:
        source = source.where(duckdb_scalar(condition, column), copy=False)
    return _insert(store_table(relation), source)


def epoch_parameter() -> exp.Parameter:
    """The number of the epoch under way."""
    return exp.Parameter(this=exp.Var(this="epoch"))


def _keys_of(one: Map) -> Columns:
    return tuple((key_column(i), key.type) for i, (_, key) in enumerate(one.keys or ()))


def _key_fields_of(one: Map) -> t.Schema:
    """The keys of a map that is evaluated by key, with what is known of their NULLs."""
    nullable = {f.name: f.nullable for f in one.source.schema}
    return tuple(
        t.Field(key_column(i), key.type, nullable[key.name] if isinstance(key, Column) else True)
        for i, (_, key) in enumerate(one.keys or ())
    )


def step_statement(statement: Add | Touch, target: Map, emitter: Emitter) -> Fill:
    """The SQL of one statement: what becomes pending for its target; more partial sums are their change as they are."""
    term = statement.term
    if isinstance(statement, Touch):
        assert isinstance(term, Project)
        named = tuple((key_column(i), key) for i, (_, key) in enumerate(term.columns))
        query: exp.Query = emitter.rows(replace(term, columns=named))
    elif isinstance(term, Sum) and target.sums is not None:
        return fill(delta_table(target.name), _partial_sums(term, emitter))
    elif isinstance(term, Sum):
        names = tuple(text for text, _ in key_columns(term) + payload_columns(term))
        query = emitter.groups(term, names)
    else:
        query = emitter.rows(term)
    return fill(pending_table(statement.target), query)


def stepwise_statement(statement: Add, target: Map, emitter: Emitter) -> str:
    """The SQL of a statement whose target takes it at once; takes `$epoch`."""
    assert isinstance(statement.term, Sum)
    query = _partial_sums(statement.term, emitter).select(epoch_parameter(), copy=False)
    return _insert(store_table(target.name), query)


def create_map(one: Map) -> str:
    """CREATE TABLE for a map's store."""
    return create_store(one.name, stored_columns(one))


def map_statements(
    program: Program, one: Map, emitter: Emitter, found: Found | None = None, alone: bool = False
) -> MapSQL:
    """The statements of one map of a program.

    Args:
        program: whose.
        one: the map.
        emitter: emits trees.
        found: what stands for stores that they read.
        alone: what is pending came from one statement, which has added it up by group already.
    """
    columns = stored_columns(one)
    emitter = emitter.finding(found) if found else emitter
    own = found_table(found[OWN]) if found and OWN in found else store_table(one.name)
    probes: tuple[Probe, ...] = ()
    if one.keys is not None and not program.recomputes(one.name):
        change: exp.Query = _settle_by_key(one, emitter, own)
        probes = probes_of_settle(one, _key_fields_of(one), emitter)
    elif one.present is not None:
        change = _settle_groups(one, one.present, own, alone)
        probes = probes_of_settle(one, key_fields(one.present.sums), emitter)
    elif one.sums is not None:
        return MapSQL(None, append_statement(one.name, columns), None)
    elif program.recomputes(one.name):
        change = emitter.sharing(lambda: _recompute(one, emitter))
    else:
        change = _settle_rows(one, emitter)
    text = sql(change)  # by far the longest part: printed once
    return MapSQL(
        fill(delta_table(one.name), text),
        append_statement(one.name, columns),
        f"INSERT INTO {sql(store_table(one.name))} SELECT *, $epoch FROM ({text}) AS change",
        probes,
    )


def rebuild_statements(one: Map, emitter: Emitter) -> tuple[Fill, Fill]:
    """Fill the pending table with all that the map's definition yields now, less all that is stored."""
    stored = store_table(one.name)
    pending = pending_table(one.name)
    if one.keys is not None:  # every key that is there or was
        named = tuple((key_column(i), key) for i, (_, key) in enumerate(one.keys))
        there = exp.Select(expressions=[*(column(text) for text, _ in named), column(MULTIPLICITY)])
        return fill(pending, emitter.rows(Project(one.source, named))), fill(pending, there.from_(stored, copy=False))
    if one.sums is not None:
        picks = {text: pick.type for text, pick in one.sums.picks}  # what is there stays there
        negated = [
            recast(exp.null(), duckdb_type(picks[f.name])) if f.name in picks else exp.Neg(this=column(f.name))
            for f in one.sums.payload
        ]
        keys_now = [column(text) for text, _ in one.sums.keys]
        minus = exp.Select(expressions=[*keys_now, *negated, column(MULTIPLICITY)]).from_(stored, copy=False)
        delta = delta_table(one.name)
        return fill(delta, _partial_sums(one.sums, emitter)), fill(delta, minus)
    if one.present is None:
        names = [f.name for f in one.fields]
        minus = exp.Select(expressions=[*(column(text) for text in names), exp.Neg(this=column(MULTIPLICITY))])
        return fill(pending, emitter.rows(one.definition)), fill(pending, minus.from_(stored, copy=False))
    sums = one.present.sums
    keys = [text for text, _ in key_columns(sums)]
    payload = [text for text, _ in payload_columns(sums)]
    gone = exp.Neg(this=column(MULTIPLICITY))
    kept = len(sums.terms) + 1
    signed: list[exp.Expr] = [exp.Mul(this=column(text), expression=gone.copy()) for text in payload[:kept]]
    signed += [recast(exp.null(), duckdb_type(pick.type)) for _, pick in sums.picks]  # what is there stays there
    minus = exp.Select(expressions=[*(column(text) for text in keys), *signed]).from_(stored, copy=False)
    return fill(pending, emitter.groups(sums, (*keys, *payload))), fill(pending, minus)


def first_fill(one: Map, emitter: Emitter, recomputed: bool) -> str:
    """The statement that fills an empty map with all that its definition yields now."""
    names = tuple(text for text, _ in stored_columns(one))
    if recomputed:
        rows: exp.Query = emitter.sharing(lambda: emitter.consolidated(emitter.rows(one.definition), names))
    elif one.sums is not None:
        rows = _partial_sums(one.sums, emitter)
    elif one.present is not None:
        rows = _groups_now(one, one.present, emitter, None)
    elif one.keys is not None:
        rows = emitter.consolidated(_windows_now(one, emitter, None), names)
    else:
        rows = emitter.consolidated(emitter.rows(one.definition), names)
    return f"INSERT INTO {sql(store_table(one.name))} SELECT *, $epoch FROM ({sql(rows)}) AS found"


def _insert(into: exp.Table, query: exp.Query) -> str:
    return sql(exp.Insert(this=into, expression=query))


def _settle_rows(one: Map, emitter: Emitter) -> exp.Query:
    pending = exp.Select(expressions=[exp.Star()]).from_(pending_table(one.name), copy=False)
    return emitter.consolidated(pending, tuple(f.name for f in one.fields))


def _partial_sums(sums: Sum, emitter: Emitter) -> exp.Select:
    """The entries of a map as rows of its store."""
    query = emitter.groups(sums)
    return query.select(as_column(bigint(number(1)), MULTIPLICITY), copy=False)


def _recompute(one: Map, emitter: Emitter) -> exp.Query:
    names = tuple(f.name for f in one.fields)
    now = emitter.rows(one.definition)
    minus = exp.Neg(this=column(MULTIPLICITY))
    before = exp.Select(expressions=[*(column(text) for text in names), as_column(minus, MULTIPLICITY)])
    before = before.from_(store_table(one.name), copy=False)
    both = exp.Union(this=now, expression=before, distinct=False)
    return emitter.consolidated(both, names)


# -- by key -------------------------------------------------------------------------------------------------------


def _settle_by_key(one: Map, emitter: Emitter, own: exp.Table) -> exp.Query:
    """What the touched keys show now, less what the store says they showed."""
    keys = _key_fields_of(one)
    names = [text for text, _ in stored_columns(one)]
    touched_keys = _TOUCHED if keys else None
    if one.present is not None:
        new: exp.Query = _groups_now(one, one.present, emitter, touched_keys)
    else:
        new = _windows_now(one, emitter, touched_keys)
    gone = as_column(exp.Neg(this=column(MULTIPLICITY)), MULTIPLICITY)
    old = exp.Select(expressions=[*(column(text) for text in names), gone])
    found = _stored_of_touched(own, keys, names, _table_of_touched())
    old = old.from_(_aliased(found, _OLD), copy=False)
    change: exp.Query = emitter.consolidated(exp.Union(this=old, expression=new, distinct=False), tuple(names))
    if not keys:
        return change
    touched = exp.Select(expressions=[column(f.name) for f in keys]).from_(pending_table(one.name), copy=False)
    return change.with_(name(_TOUCHED), as_=touched.distinct(copy=False), materialized=True, copy=False)


def _windows_now(one: Map, emitter: Emitter, touched: str | None) -> exp.Query:
    assert isinstance(one.definition, Over)
    return emitter.over(one.definition, touched, keys=True)


def _groups_now(one: Map, present: Present, emitter: Emitter, touched: str | None) -> exp.Query:
    sums = present.sums
    names = [text for text, _ in key_columns(sums)] + [text for text, _ in payload_columns(sums)]
    new = emitter.groups(sums, tuple(names), touched)
    return _shown(one, present, names, new, [text for text, _ in payload_columns(sums)])


# -- groups -------------------------------------------------------------------------------------------------------

_TOUCHED, _OLD, _NEW, _SHOWN, _NULLS = "touched", "old", "new", "shown", "nulls"


def _settle_groups(one: Map, present: Present, own: exp.Table, alone: bool) -> exp.Query:
    """Old rows of the touched groups leave, new ones come.

    Old rows are read from the store and never computed again, so that what is retracted is exactly what was issued.
    """
    sums = present.sums
    keys = [text for text, _ in key_columns(sums)]
    payload = [text for text, _ in payload_columns(sums)]
    stored = [text for text, _ in stored_columns(one)]

    gone = as_column(exp.Neg(this=column(MULTIPLICITY)), MULTIPLICITY)
    leaving = exp.Select(expressions=[*(column(text) for text in stored), gone])
    leaving = leaving.from_(exp.Table(this=name(_OLD)), copy=False)
    touched = _table_of_touched(one.name if alone else None)
    coming = _coming(one, present, keys, payload, touched)
    change = exp.Union(this=leaving, expression=coming, distinct=False)
    if not alone:
        totals = _touched(one.name, sums, keys, payload)
        change = change.with_(name(_TOUCHED), as_=totals, materialized=True, copy=False)
    old = _old(own, key_fields(sums), stored, touched)
    return change.with_(name(_OLD), as_=old, materialized=True, copy=False)


def _table_of_touched(pending: str | None = None) -> exp.Table:
    """The touched groups: what is pending for a map, or what that adds up to."""
    if pending is None:
        return exp.Table(this=name(_TOUCHED))
    table = pending_table(pending)
    table.set("alias", exp.TableAlias(this=name(_TOUCHED)))
    return table


def _touched(map_name: str, sums: Sum, keys: list[str], payload: list[str]) -> exp.Select:
    """The net change of each group's payload; groups in which nothing changed are left out."""
    picks = dict(zip(payload[len(sums.terms) + 1 :], (pick for _, pick in sums.picks), strict=True))
    totals = [
        exp.Anonymous(this=picks[text].function, expressions=[column(text)]) if text in picks else total(column(text))
        for text in payload
    ]
    casts = [recast(one.copy(), duckdb_type(f.type)) for one, f in zip(totals, sums.payload, strict=True)]
    query = exp.Select(
        expressions=[*(column(text) for text in keys), *(as_column(c, p) for c, p in zip(casts, payload, strict=True))]
    ).from_(pending_table(map_name), copy=False)
    if not keys:  # the one entry of a map without keys exists from the start, when nothing has changed yet
        return query
    changed = [
        exp.NEQ(this=one.copy(), expression=number(0))
        for one, text in zip(totals, payload, strict=True)
        if text not in picks
    ]
    query = query.having(exp.or_(*changed), copy=False)
    return query.group_by(*(column(text) for text in keys), copy=False)


def _old(own: exp.Table, keys: t.Schema, stored: list[str], touched: exp.Table) -> exp.Select:
    """What the store shows for the touched groups now."""
    count = total(column(MULTIPLICITY))
    found = _stored_of_touched(own, keys, stored, touched)
    query = exp.Select(expressions=[*(column(text) for text in stored), as_column(bigint(count), MULTIPLICITY)])
    query = query.from_(exp.Subquery(this=found, alias=exp.TableAlias(this=name("s"))), copy=False)
    query = query.group_by(*(column(text) for text in stored), copy=False)
    return query.having(exp.NEQ(this=count.copy(), expression=number(0)), copy=False)


def _stored_of_touched(own: exp.Table, keys: t.Schema, stored: list[str], touched: exp.Table) -> exp.Query:
    """Rows of the store that belong to touched groups.

    Groups without a NULL in their key are found by `=` (see `layout.same_row`). Groups with one are found apart, in a
    second pass that costs nothing when there are none, because DuckDB does not scan for an empty side of a join.
    """

    def part(groups: exp.Expr | None, on: exp.Expr | None) -> exp.Select:
        source = own.copy()
        source.set("alias", exp.TableAlias(this=name("s")))
        query = exp.Select(expressions=[*(column(text, "s") for text in stored), column(MULTIPLICITY, "s")])
        query = query.from_(source, copy=False)
        return query.join(groups, on=on, join_type="SEMI", copy=False) if groups is not None else query

    if not keys:
        return part(None, None)
    without_null = tuple(replace(f, nullable=False) for f in keys)
    plain = part(touched.copy(), same_row(without_null, "s", _TOUCHED))
    nullable = [f for f in keys if f.nullable]
    if not nullable:
        return plain
    nulls = exp.Select(expressions=[column(f.name) for f in keys]).from_(touched.copy(), copy=False)
    nulls = nulls.where(exp.or_(*(exp.Is(this=column(f.name), expression=exp.null()) for f in nullable)), copy=False)
    with_null = part(_aliased(nulls, _NULLS), same_row(keys, "s", _NULLS))
    return exp.Union(this=plain, expression=with_null, distinct=False)


def _coming(one: Map, present: Present, keys: list[str], payload: list[str], touched: exp.Table) -> exp.Select:
    """The touched groups' new rows, hidden ones included: their payload must be kept."""
    picks = dict(zip(payload[len(present.sums.terms) + 1 :], (pick for _, pick in present.sums.picks), strict=True))
    summed = [
        as_column(recast(_merged(text, picks.get(text)), duckdb_type(f.type)), text)
        for text, f in zip(payload, present.sums.payload, strict=True)
    ]
    on = same_row(key_fields(present.sums), _TOUCHED, _OLD) if keys else exp.true()
    new = exp.Select(expressions=[*(column(text, _TOUCHED) for text in keys), *summed])
    new = new.from_(touched.copy(), copy=False)
    new = new.join(exp.Table(this=name(_OLD)), on=on, join_type="LEFT", copy=False)

    return _shown(one, present, [*keys, *payload], new, payload)


def _merged(text: str, pick: Pick | None) -> exp.Expr:
    """A column of the payload from what comes and what was there."""
    if pick is None:
        return exp.Add(this=column(text, _TOUCHED), expression=fn("COALESCE", column(text, _OLD), number(0)))
    function = "least" if pick.function == "min" else "greatest"
    return exp.Anonymous(this=function, expressions=[column(text, _TOUCHED), column(text, _OLD)])


def _shown(one: Map, present: Present, carried: list[str], new: exp.Query, payload: list[str]) -> exp.Select:
    """Rows for a map's store, from keys and payload."""
    own = {text for text, _ in _own_columns(one)}
    outputs = [scalar for text, scalar in present.outputs if text in own]
    physical = dict(zip(present.sums.column_names, carried, strict=True))

    def emit(scalar: Scalar, alias: str) -> exp.Expr:
        return duckdb_scalar(scalar, lambda text: column(physical[text], alias))

    if present.having == TRUE:
        source, alias = new, _NEW
        shown: exp.Expr = exp.true()
        values = [emit(scalar, alias) for scalar in outputs]
    else:
        # Outputs of a group that HAVING hides are not computed: they may not even be defined for it.
        condition = fn("COALESCE", emit(present.having, _NEW), exp.false())
        source = exp.Select(expressions=[*(column(text, _NEW) for text in carried), as_column(condition, SHOWN)])
        source = source.from_(_aliased(new, _NEW), copy=False)
        alias, shown = _SHOWN, column(SHOWN, _SHOWN)
        values = [exp.Case(ifs=[exp.If(this=column(SHOWN, alias), true=emit(scalar, alias))]) for scalar in outputs]
    rows = exp.Select(expressions=[*(column(text, alias) for text in carried), *values, shown, bigint(number(1))])
    rows = rows.from_(_aliased(source, alias), copy=False)
    if present.sums.keys:
        rows = rows.where(exp.GT(this=column(payload[0], alias), expression=number(0)), copy=False)
    return rows


def _aliased(query: exp.Query, alias: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name(alias)))
