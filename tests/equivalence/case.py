"""A case as plain data, and the script a person reads and `replay` runs again.

The script is SQL for what is created and one JSON array per row for what changes:

    # seed 17
    CREATE TABLE t0 (a INT, b STRING);
    CREATE VIEW v0 AS SELECT a, count(*) AS n FROM t0 GROUP BY a;
    epoch  # 1 at 2024-01-01 00:00:07
      insert t0
        [1, "a"]
    epoch
      delete t0
        [1, "a"]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from headwater import types as t

from .values import BY_NAME, decode, encode, literal

Row = tuple[object, ...]


@dataclass(frozen=True)
class Relation:
    """A base relation.

    Attributes:
        kind: `TABLE` or `STREAM`.
        key: primary key columns of a table, or KEY of a stream; none makes it a bag.
        retain: whether a stream keeps its rows for views that come later.
        sequence: SEQUENCE BY of a keyed stream.
        codes: whether a keyed stream has OP BY; rows that arrive then end with the code.
        rare: whether its doubles include NaN and infinities; only the generator looks at this.
    """

    name: str
    kind: str
    columns: tuple[t.Field, ...]
    key: tuple[str, ...] = ()
    retain: bool = False
    sequence: str | None = None
    codes: bool = False
    rare: bool = field(default=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def types(self) -> tuple[t.Type, ...]:
        return tuple(column.type for column in self.columns)

    def index(self, column: str) -> int:
        return self.names.index(column)

    def key_of(self, row: Row) -> Row:
        return tuple(row[self.index(name)] for name in self.key)

    @property
    def key_types(self) -> tuple[t.Type, ...]:
        return tuple(self.columns[self.index(name)].type for name in self.key)

    @property
    def is_keyed_stream(self) -> bool:
        """Whether an arriving row replaces the last one of its key."""
        return self.kind == "STREAM" and bool(self.key)

    @property
    def keeps_all(self) -> bool:
        """Whether all of its rows are there to be looked at: not those of a keyed stream that no view can use."""
        return self.retain or not self.is_keyed_stream

    def given(self, operation: str) -> tuple[t.Field, ...]:
        """The columns of the rows that an operation is given."""
        if operation == "delete_keys":
            return tuple(self.columns[self.index(name)] for name in self.key)
        return (*self.columns, CODE) if self.codes and operation in ARRIVING else self.columns

    @property
    def sql(self) -> str:
        parts = [str(column) for column in self.given("insert")]
        clauses = ""
        if self.key and self.kind == "TABLE":
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        elif self.key:
            clauses = f" KEY ({', '.join(self.key)})"
            clauses += f" SEQUENCE BY {self.sequence}" if self.sequence else ""
            clauses += f" OP BY {CODE.name}" if self.codes else ""
        clauses += " RETAIN ALL" if self.retain else ""
        return f"CREATE {self.kind} {self.name} ({', '.join(parts)}){clauses}"


@dataclass(frozen=True)
class View:
    """A view.

    Attributes:
        query: its Spark SQL text.
        strategy: the value of its STRATEGY option, if it has one.
        created: how many epochs have passed when it is created.
        duckdb: whether DuckDB's answer to the transpiled text is known to be Spark's.
        dropped: how many epochs have passed when it is dropped, if it is.
        replanned: how many epochs have passed when it gets another plan, if it does.
        replan: under which strategy; None leaves the choice to the planner.
        changes: whether and how its changes are kept: `STREAMED`, `COMPLETE`, `RETAIN CHANGES ALL`, or nothing said.
        refresh: its policy, as it is written behind REFRESH, if it has one.
    """

    name: str
    query: str
    strategy: str | None = None
    created: int = 0
    duckdb: bool = True
    dropped: int | None = None
    replanned: int | None = None
    replan: str | None = None
    changes: str = ""
    refresh: str = ""

    @property
    def keeps(self) -> bool:
        """Whether its changes are kept."""
        return self.changes in ("STREAMED", "RETAIN CHANGES ALL")

    @property
    def sql(self) -> str:
        before = f"{self.changes} " if self.changes in ("STREAMED", "COMPLETE") else ""
        option = f" {self.changes}" if self.changes and not before else ""
        option += f" REFRESH {self.refresh}" if self.refresh else ""
        option += f" STRATEGY '{self.strategy}'" if self.strategy else ""
        return f"CREATE {before}VIEW {self.name}{option} AS {self.query}"

    @property
    def replan_sql(self) -> str:
        return f"ALTER VIEW {self.name} REPLAN" + (f" STRATEGY '{self.replan}'" if self.replan else "")


@dataclass(frozen=True)
class Operation:
    """One change to one relation.

    `insert`, `delete`, `upsert` and `delete_keys` go through the row API and share an epoch. `insert_values`, `update`
    and `delete_where` are SQL statements, each an epoch of its own; `where` and `assign` pair columns with values
    (NULL in `where` asks IS NULL), which keeps their effect obvious. `refresh` is REFRESH of a view with a policy
    in place of the relation; it is an epoch of its own, too.
    """

    kind: str
    relation: str
    rows: tuple[Row, ...] = ()
    assign: tuple[tuple[str, object], ...] = ()
    where: tuple[tuple[str, object], ...] = ()

    @property
    def is_statement(self) -> bool:
        return self.kind in STATEMENTS

    def sql(self, relation: Relation | None) -> str:
        """The statement's text; `relation` is the one it changes."""
        if self.kind == "refresh":
            return f"REFRESH {self.relation}"
        assert relation is not None
        types = dict(zip(relation.names, relation.types, strict=True))
        if self.kind == "insert_values":
            given = [column.type for column in relation.given(self.kind)]
            rows = ("(" + ", ".join(map(literal, row, given)) + ")" for row in self.rows)
            return f"INSERT INTO {self.relation} VALUES {', '.join(rows)}"
        where = " AND ".join(
            f"{name} IS NULL" if value is None else f"{name} = {literal(value, types[name])}"
            for name, value in self.where
        )
        suffix = f" WHERE {where}" if where else ""
        if self.kind == "delete_where":
            return f"DELETE FROM {self.relation}{suffix}"
        assigned = ", ".join(f"{name} = {literal(value, types[name])}" for name, value in self.assign)
        return f"UPDATE {self.relation} SET {assigned}{suffix}"


#: Operations whose rows arrive at a keyed stream, and the column with which one says what they do there.
ARRIVING = ("insert", "insert_values", "upsert")
CODE = t.Field("op", t.STRING)
#: The clock before the first epoch; it stands still in a script that does not say otherwise.
START = datetime(2023, 12, 1)

STATEMENTS = ("insert_values", "update", "delete_where", "refresh")
OPERATIONS = ("insert", "delete", "upsert", "delete_keys", *STATEMENTS)

Epoch = tuple[Operation, ...]


@dataclass(frozen=True)
class Case:
    """Relations, views in dependency order, and epochs, each with its clock reading."""

    seed: int
    relations: tuple[Relation, ...]
    views: tuple[View, ...]
    epochs: tuple[Epoch, ...]
    clocks: tuple[datetime, ...] = ()

    def clock(self, epoch: int) -> datetime:
        """What the clock reads when that many epochs have passed."""
        return self.clocks[min(epoch, len(self.clocks)) - 1] if epoch and self.clocks else START

    def relation(self, name: str) -> Relation:
        return next(each for each in self.relations if each.name == name)

    def created_at(self, epoch: int) -> list[View]:
        """Views created when that many epochs have passed."""
        return [view for view in self.views if view.created == epoch]

    def replanned_at(self, epoch: int) -> list[View]:
        """Views that get another plan when that many epochs have passed."""
        return [view for view in self.views if view.replanned == epoch]

    def dropped_at(self, epoch: int) -> list[View]:
        """Views dropped when that many epochs have passed."""
        return [view for view in self.views if view.dropped == epoch]

    def __str__(self) -> str:
        return "\n".join(_script(self)) + "\n"


def _script(case: Case) -> Iterator[str]:
    yield f"# seed {case.seed}"
    for relation in case.relations:
        yield relation.sql + ";"
    yield from _views(case, 0)
    for number, epoch in enumerate(case.epochs, 1):
        yield f"epoch  # {number}" + (f" at {case.clock(number)}" if case.clocks else "")
        for operation in epoch:
            yield from _operation(operation)
        yield from (f"{view.replan_sql};" for view in case.replanned_at(number))
        yield from (f"DROP VIEW {view.name};" for view in case.dropped_at(number))
        yield from _views(case, number)


def _views(case: Case, epoch: int) -> Iterator[str]:
    for view in case.created_at(epoch):
        yield view.sql + ";" + ("" if view.duckdb else "  # not on duckdb")


def _operation(operation: Operation) -> Iterator[str]:
    conditions = {
        name: {column: encode(value) for column, value in pairs}
        for name, pairs in (("set", operation.assign), ("where", operation.where))
        if pairs
    }
    tail = " " + json.dumps(conditions, ensure_ascii=False) if conditions else ""
    yield f"  {operation.kind} {operation.relation}{tail}"
    for row in operation.rows:
        yield f"    {json.dumps([encode(value) for value in row], ensure_ascii=False)}"


_SEED = re.compile(r"# seed (-?\d+)")
_RELATION = re.compile(
    r"CREATE (TABLE|STREAM) (\w+) \((.*?)(?:, op STRING)?(?:, PRIMARY KEY \((.*)\))?\)(?: KEY \(([\w, ]*)\))?"
    r"(?: SEQUENCE BY (\w+))?( OP BY op)?( RETAIN ALL)?;"
)
_COLUMN = re.compile(r"(\w+|`[^`]+`) (.+?)( NOT NULL)?$")
_VIEW = re.compile(
    r"CREATE (?:(STREAMED|COMPLETE) )?VIEW (\w+)( RETAIN CHANGES ALL)?(?: REFRESH (MANUAL|AUTO|(?:ON|EVERY) [\w ]+?))?"
    r"(?: STRATEGY '([^']*)')? AS (.*);"
    r"(  # not on duckdb)?",
    re.DOTALL,
)
_REPLAN = re.compile(r"ALTER VIEW (\w+) REPLAN(?: STRATEGY '([^']*)')?;")
_EPOCH = re.compile(r"epoch(?:\s+#[^a]*)?(?:at (.+))?")
_DROP = re.compile(r"DROP VIEW (\w+);")
_OPERATION = re.compile(rf"  ({'|'.join(OPERATIONS)}) (\w+)(?: (\{{.*\}}))?")


def parse_script(text: str) -> Case:
    """The inverse of `str(case)`; comments and blank lines are skipped.

    Raises:
        ValueError: a line is none of the script's.
    """
    seed = 0
    relations: list[Relation] = []
    views: list[View] = []
    epochs: list[list[Operation]] = []
    clocks: list[datetime] = []
    for line in text.splitlines():
        if found := _SEED.fullmatch(line):
            seed = int(found[1])
        elif not line.strip() or line.startswith("#"):
            continue
        elif found := _RELATION.fullmatch(line):
            kind, name, columns, primary, key, sequence, codes, retain = found.groups()
            fields = tuple(_column(part) for part in _split(columns))
            keys = tuple(_split(primary or key or ""))
            relations.append(Relation(name, kind, fields, keys, bool(retain), sequence, bool(codes)))
        elif found := _VIEW.fullmatch(line):
            mode, name, retain, refresh, strategy, query, skipped = found.groups()
            changes = mode or (retain or "").strip()
            views.append(View(name, query, strategy, len(epochs), not skipped, changes=changes, refresh=refresh or ""))
        elif found := _REPLAN.fullmatch(line):
            after = {"replanned": len(epochs), "replan": found[2]}
            views = [replace(one, **after) if one.name == found[1] else one for one in views]
        elif found := _DROP.fullmatch(line):
            views = [replace(one, dropped=len(epochs)) if one.name == found[1] else one for one in views]
        elif found := _EPOCH.fullmatch(line):
            epochs.append([])
            clocks += [datetime.fromisoformat(found[1])] if found[1] else []
        elif line.startswith("  refresh "):
            epochs[-1].append(Operation("refresh", line.split()[1]))
        elif found := _OPERATION.fullmatch(line):
            relation = next(each for each in relations if each.name == found[2])
            conditions = json.loads(found[3] or "{}")
            assign, where = (_pairs(conditions.get(part, {}), relation) for part in ("set", "where"))
            epochs[-1].append(Operation(found[1], relation.name, (), assign, where))
        elif line.startswith("    "):
            operation = epochs[-1].pop()
            relation = next(each for each in relations if each.name == operation.relation)
            types = [column.type for column in relation.given(operation.kind)]
            row = tuple(decode(value, of) for value, of in zip(json.loads(line), types, strict=True))
            epochs[-1].append(replace(operation, rows=(*operation.rows, row)))
        else:
            raise ValueError(f"not a line of a case: {line!r}")
    return Case(seed, tuple(relations), tuple(views), tuple(map(tuple, epochs)), tuple(clocks))


def _pairs(data: dict[str, object], relation: Relation) -> tuple[tuple[str, object], ...]:
    return tuple((name, decode(value, relation.types[relation.index(name)])) for name, value in data.items())


def _column(text: str) -> t.Field:
    found = _COLUMN.fullmatch(text)
    if not found:
        raise ValueError(f"not a column: {text!r}")
    return t.Field(found[1], BY_NAME[found[2]], not found[3])


def _split(text: str) -> list[str]:
    """Parts between the commas that stand outside brackets."""
    parts, depth, part = [], 0, ""
    for char in text:
        depth += (char in "(<") - (char in ")>")
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return [*parts, part.strip()] if part.strip() else parts
