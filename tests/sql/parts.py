"""Runs the texts of views of parts, part by part, without an engine: whoever evaluates a query over tables can do it.

A part reference becomes a table with the rows of these parts. INITIALIZE makes the first part, UPDATE every later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.algebra.evaluate import Bag, evaluate
from headwater.algebra.nodes import Node, Scan
from headwater.errors import Source
from headwater.sql.lower import lower_view
from headwater.sql.parse import parse
from headwater.sql.scope import RelationInfo
from headwater.sql.statements import CreatePartView, CreateView
from headwater.sql.translate import Parted, translate

Row = tuple[object, ...]
Tables = dict[str, tuple[t.Schema, list[Row]]]

#: Rows of a query over tables; the second argument has the tables by name.
Evaluate = Callable[[exp.Expr, Tables], tuple[t.Schema, list[Row]]]


@dataclass
class Relation:
    """A relation with its rows by part."""

    fields: t.Schema
    parts: dict[int, list[Row]] = field(default_factory=dict)


def texts(statement: str, parted: Parted) -> tuple[str, ...]:
    """What a view is translated to."""
    [view] = parse(statement)
    assert isinstance(view, CreateView)
    return translate(view, parted, lambda suffix: f"{view.name.text}_{suffix}")


def run(statements: Iterable[str], relations: dict[str, Relation], parts: range, using: Evaluate) -> Relation:
    """Make all parts of some views, each over those before it; the last one is the answer."""
    made = Relation(())
    for text in statements:
        [view] = parse(text)
        assert isinstance(view, CreatePartView)
        made = Relation(())
        for part in parts:
            query = view.initialize if part == parts.start else view.update
            tree = query.query.copy()
            around = {**relations, view.name.text: made} if part != parts.start else relations
            tables: Tables = {}
            for table in list(tree.find_all(exp.Table)):
                reference = table.args.get("part")
                if reference is not None:
                    bounds = [_subscript(one, query.variable, part) for one in reference.expressions]
                    name = f"{table.name}_{bounds[0]}_{bounds[-1]}"
                    whole = around[table.name]
                    rows = [row for at in range(bounds[0], bounds[-1] + 1) for row in whole.parts.get(at, [])]
                    tables[name] = (whole.fields, rows)
                    table.set("part", None)
                    if not table.alias:
                        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
                    table.set("this", exp.to_identifier(name, quoted=True))
            fields, rows = using(tree, tables)
            if part == parts.start:
                made.fields = fields
            else:
                assert [one.type for one in fields] == [one.type for one in made.fields], (text, fields, made.fields)
            made.parts[part] = rows
        relations = {**relations, view.name.text: made}
    return made


def _subscript(tree: exp.Expr, variable: str, value: int) -> int:
    match tree:
        case exp.Column():
            assert tree.name == variable
            return value
        case exp.Literal():
            return int(tree.name)
        case exp.Sub():
            return _subscript(tree.this, variable, value) - _subscript(tree.expression, variable, value)
        case exp.Add():
            return _subscript(tree.this, variable, value) + _subscript(tree.expression, variable, value)
    raise AssertionError(tree)


@dataclass(frozen=True)
class _Catalogue:
    tables: Tables

    def find(self, name: str) -> RelationInfo | None:
        found = next((one for one in self.tables if one.lower() == name), None)
        return RelationInfo(found, self.tables[found][0]) if found else None

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
        return None

    def names(self) -> list[str]:
        return list(self.tables)


def lowered(tree: exp.Expr, tables: Tables) -> Node:
    """The algebra of a query over tables."""
    return lower_view(tree, _Catalogue(tables), Source(""))


def by_definition(tree: exp.Expr, tables: Tables) -> tuple[t.Schema, list[Row]]:
    """Evaluate a query by what the nodes of the algebra mean."""
    node = lowered(tree, tables)
    bags = {name: Counter(rows) for name, (_, rows) in tables.items()}

    def read(scan: Scan) -> Bag:
        return bags[scan.relation]

    found = evaluate(node, read)
    return node.schema, [row for row, count in found.items() for _ in range(count)]
