"""What an epoch changes in a view: as observers are told, and as it is kept for subscribers."""

from __future__ import annotations

from sqlglot import exp

from headwater.algebra.compose import bare
from headwater.algebra.nodes import Over, Scan, Version
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import EPOCH, as_column, bigint, changes_of, column, name, number, sql, store_table
from headwater.emit.maintain import create_store, epoch_parameter, row_columns
from headwater.store.catalog import Relation


def changelog_query(relation: Relation, emitter: Emitter) -> str:
    """The net change of a relation in the epoch under way: its columns and `#n`."""
    return sql(_net_rows(relation, Version.DELTA, emitter))


def contents_query(relation: Relation, emitter: Emitter, epoch: int) -> exp.Select:
    """What a relation holds, as if it had come in an epoch: its columns, `#n` and `#e`."""
    return _in_epoch(_net_rows(relation, Version.STORED, emitter), bigint(number(epoch)))


def in_epoch(table: str, epoch: int) -> exp.Select:
    """Rows that have `#n`, as of an epoch."""
    return _in_epoch(exp.select("*").from_(exp.Table(this=name(table))), bigint(number(epoch)))


def kept_query(relation: Relation, first: int, last: int) -> exp.Select:
    """The changes of some epochs that are kept of a view: its columns, `#n` and `#e`."""
    query = exp.Select(expressions=[exp.Star()]).from_(store_table(changes_of(relation.name)), copy=False)
    return query.where(exp.Between(this=column(EPOCH), low=number(first), high=number(last)), copy=False)


def create_kept(relation: Relation) -> str:
    """CREATE TABLE for the changes of a view that are kept."""
    return create_store(changes_of(relation.name), row_columns(relation.fields))


def keep_statement(relation: Relation, emitter: Emitter) -> str:
    """Adds the net change of a view in the epoch under way to those that are kept; takes `$epoch`."""
    query = _in_epoch(_net_rows(relation, Version.DELTA, emitter), epoch_parameter())
    return sql(exp.Insert(this=store_table(changes_of(relation.name)), expression=query))


def keep_contents(relation: Relation, emitter: Emitter, epoch: int) -> str:
    """Adds all that a view holds to the changes that are kept of it, as if it had come in an epoch."""
    query = contents_query(relation, emitter, epoch)
    return sql(exp.Insert(this=store_table(changes_of(relation.name)), expression=query))


def _net_rows(relation: Relation, version: Version, emitter: Emitter) -> exp.Query:
    rows = bare(Scan(relation.name, "r", relation.fields, version))
    program = relation.program
    if version is Version.DELTA and program is not None and not isinstance(program.map(program.view).definition, Over):
        return emitter.rows(rows)  # settled rows are net as they are, and of groups the emitter adds up what is shown
    return emitter.net_rows(rows)


def _in_epoch(rows: exp.Query, epoch: exp.Expr) -> exp.Select:
    query = exp.Select(expressions=[exp.Star(), as_column(epoch, EPOCH)])
    return query.from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=name("net"))), copy=False)
