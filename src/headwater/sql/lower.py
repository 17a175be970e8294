"""Queries: from trees to the typed algebra.

`lower_view` is for what a view keeps, `lower_answer` for a query that is answered once, `lower_rows` for INSERT.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import NoEquality, distinct, intersect, subtract
from headwater.algebra.during import NoWindow, with_windows
from headwater.algebra.nodes import Node, Project, Union, Values
from headwater.algebra.renaming import with_definitions
from headwater.algebra.scalars import cast
from headwater.algebra.simplify import simplify
from headwater.errors import HeadwaterError, Source
from headwater.sql.as_of import AsOf, read_as_of
from headwater.sql.assign import assign_rows
from headwater.sql.bind import Binder
from headwater.sql.lifting import Lifting
from headwater.sql.lower_from import Environment, History, Lowered
from headwater.sql.lower_select import OrderKey, check_orderable, limited, lower_select, unique_names
from headwater.sql.names import fold
from headwater.sql.part_references import Parting
from headwater.sql.place import Place, check_width
from headwater.sql.scope import Relations
from headwater.sql.statements import Name

__all__ = ["Answer", "OrderKey", "lower_answer", "lower_rows", "lower_view"]

T = TypeVar("T")
_TOP = ("order", "limit", "offset")


@dataclass(frozen=True)
class Answer:
    """A query to be answered once.

    Attributes:
        node: the rows. Its first columns are those shown; columns behind them are there for `order` only.
        names: the names shown, which may repeat, unlike the node's own.
        order: how to sort the rows; columns of `node`.
        limit: how many rows to give, or None for all.
        offset: how many rows to leave out first.
        timeless: whether it is the same query at every moment: it does not read the clock.
    """

    node: Node
    names: tuple[str, ...]
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    timeless: bool = True


def lower_view(
    query: exp.Expr,
    relations: Relations,
    source: Source,
    offset: int = 0,
    columns: tuple[Name, ...] = (),
    through: Mapping[str, Node] = MappingProxyType({}),
    windows: bool = True,
) -> Node:
    """The tree of a view's query.

    Args:
        query: as parsed.
        relations: what the query can read.
        source: the text errors point into.
        offset: where in that text the tree's positions begin.
        columns: the names CREATE VIEW gives to the columns, or none.
        through: the queries of views that are read as if the query had written them.
        windows: make windows of conditions on the clock; else they stay filters, for whoever looks at the clock then.

    Returns:
        A node whose columns have the names a user sees, distinct whatever their case.
    """
    env = _environment(relations, source, offset)
    given = tuple(_identifier(name, offset) for name in columns)
    lowered = _guarded(lambda: lower_query(query, env, "", given), env, query)
    _check_view_columns(lowered, query, given, env)
    try:
        node = simplify(with_definitions(lowered.node, through))
        return with_windows(node) if windows else node
    except NoWindow as error:
        raise env.place.no_window(error.part, error.by_months) from None


def lower_part(
    query: exp.Expr, relations: Relations, source: Source, parting: Parting, columns: tuple[Name, ...] = ()
) -> Node:
    """The tree of what a part of a view holds; the other arguments are those of `lower_view`.

    Args:
        query: as parsed.
        relations: what the query can read.
        source: the text errors point into.
        parting: takes the part references that the query has.
        columns: the names CREATE VIEW gives to the columns, or none.
    """
    env = replace(_environment(relations, source, 0), parting=parting)
    given = tuple(_identifier(name, 0) for name in columns)
    lowered = _guarded(lambda: lower_query(query, env, "", given), env, query)
    _check_view_columns(lowered, query, given, env)
    return simplify(lowered.node)


def lower_answer(
    query: exp.Expr,
    relations: Relations,
    source: Source,
    offset: int = 0,
    moment: dt.datetime | None = None,
    history: History | None = None,
    as_of: exp.Version | AsOf | None = None,
    lifting: Lifting | None = None,
) -> Answer:
    """The tree of a query that is answered once; ORDER BY, LIMIT and OFFSET may stand at its end.

    Args:
        query: as parsed.
        relations: what the query can read.
        source: the text errors point into.
        offset: where in that text the tree's positions begin.
        moment: what `now()` means.
        history: finds relations as they were; without it AS OF is refused.
        as_of: the point at which relations are read that name none of their own.
        lifting: leaves constants open.
    """
    env = _environment(relations, source, offset, moment)
    if lifting is not None:
        env = replace(env, place=replace(env.place, lifting=lifting))
    if isinstance(as_of, exp.Version):
        as_of = read_as_of(as_of, env.place)
    env = replace(env, history=history, as_of=as_of)
    answer = _guarded(lambda: _answer(query, env), env, query)
    return replace(answer, timeless=not env.place.clocks)


def lower_rows(
    query: exp.Expr,
    target_fields: t.Schema,
    relations: Relations,
    source: Source,
    offset: int = 0,
    moment: dt.datetime | None = None,
) -> Node:
    """The tree of the rows that an INSERT inserts: the target's columns, by position, in its types.

    The other arguments are those of `lower_answer`.
    """
    env = _environment(relations, source, offset, moment)

    def lower() -> Node:
        lowered = lower_query(query, env, "", ())
        return assign_rows(lowered.node, target_fields, query, env.place)

    return simplify(_guarded(lower, env, query))


def lower_query(
    query: exp.Expr,
    env: Environment,
    prefix: str,
    columns: tuple[exp.Identifier, ...],
    allowed: tuple[str, ...] = (),
) -> Lowered:
    """Any query; the arguments are those of `lower_select`."""
    match query:
        case exp.Select():
            return _select(query, env, prefix, columns, allowed)
        case exp.SetOperation():
            return _limited_union(query, env, prefix, columns, allowed)
        case exp.Values():
            return _values(query, env, prefix, columns, allowed)
        case exp.Subquery() if not query.args.get("alias"):
            env.place.only(query, ("this", "with_", *(allowed or _TOP)))
            inner = lower_query(query.this, env.with_ctes(query.args.get("with_")), prefix, columns)
            return _first_rows(query, inner, _order_by_outputs(query.args.get("order"), inner, env), env, allowed)
    raise env.place.unsupported("HW207", f"{env.place.text(query)} is not supported as a query", query)


def _environment(relations: Relations, source: Source, offset: int, moment: dt.datetime | None = None) -> Environment:
    return Environment(Place(source, offset, moment), relations, lower_query)


def _guarded(lower: Callable[[], T], env: Environment, query: exp.Expr) -> T:
    try:
        return lower()
    except RecursionError:
        raise env.place.mistake(
            "HW002", "the query is nested too deeply", query, "make inner queries views of their own"
        ) from None
    except NoEquality as error:
        raise env.place.unsupported(
            "HW216",
            f"an inner query, or an outer join, reads a {error.kind} of the rows around it, which has no equality",
            query,
            "take what is needed out of it in a derived table",
        ) from None


def _identifier(name: Name, offset: int) -> exp.Identifier:
    made = exp.Identifier(this=name.text)
    made.update_positions(line=1, col=1, start=name.span.start - offset, end=name.span.end - 1 - offset)
    return made


# -- views -----------------------------------------------------------------------------------------------------------


def _check_view_columns(lowered: Lowered, query: exp.Expr, given: tuple[exp.Identifier, ...], env: Environment) -> None:
    seen: set[str] = set()
    for position, (name, field) in enumerate(zip(lowered.names, lowered.node.schema, strict=True)):
        at = given[position] if given else _output_node(query, position)
        if fold(name) in seen:
            raise env.place.mistake("HW127", f"two columns are named {name}", at, "rename one with AS")
        if name.startswith("#") or not name:
            raise env.place.mistake("HW127", f"{name or 'nothing'} cannot be a column's name", at, "use AS")
        if isinstance(field.type, t.Null):
            raise env.place.mistake(
                "HW133", f"column {name} is always NULL and has no type", at, "give it one: CAST(NULL AS INT)"
            )
        seen.add(fold(name))


def _output_node(query: exp.Expr, position: int) -> exp.Expr:
    """The part of a query that makes a column, as near as can be told."""
    while isinstance(query, exp.Subquery | exp.SetOperation):
        query = query.this
    items = query.expressions if isinstance(query, exp.Select) else []
    stars = [item for item in items if item.is_star]
    return stars[0] if stars else items[position] if position < len(items) else query


# -- answers ---------------------------------------------------------------------------------------------------------


def _answer(query: exp.Expr, env: Environment) -> Answer:
    clause = query.args.get("order")
    if isinstance(query, exp.Select):
        lowered, order = lower_select(query, env, "", (), clause, _TOP)
    elif isinstance(query, exp.Subquery) and not any(query.args.get(key) for key in _TOP):
        env.place.only(query, ("this", "with_"))
        return _answer(query.this, env.with_ctes(query.args.get("with_")))
    else:
        lowered = lower_query(query, env, "", (), _TOP)
        order = _order_by_outputs(clause, lowered, env)
    limit, offset = query.args.get("limit"), query.args.get("offset")
    rows, skipped = _row_count(limit, "LIMIT", env), _row_count(offset, "OFFSET", env)
    return Answer(simplify(lowered.node), lowered.names, order, rows, skipped or 0)


def _order_by_outputs(clause: exp.Order | None, lowered: Lowered, env: Environment) -> tuple[OrderKey, ...]:
    """The keys of an ORDER BY after UNION ALL, which can only name columns of the result."""
    keys = []
    place = env.place
    if clause is not None:
        place.only(clause, ("expressions",))
    for one in clause.expressions if clause else ():
        place.only(one, ("this", "desc", "nulls_first"))
        if isinstance(one.this, exp.Literal) and one.this.name.isdigit() and not one.this.is_string:
            number = int(one.this.name)
            if not 1 <= number <= len(lowered.names):
                raise place.mistake(
                    "HW131", f"ORDER BY {number}: the result has columns 1 to {len(lowered.names)}", one.this
                )
            name = lowered.node.column_names[number - 1]
        elif isinstance(one.this, exp.Column):
            name = lowered.visible(None).column(one.this, place).name
        else:
            raise place.unsupported(
                "HW201", "after UNION, ORDER BY can only name a column of the result", one, "order a derived table"
            )
        check_orderable(lowered.node.column(name).type, one, env)
        keys.append(OrderKey(name, bool(one.args.get("desc")), bool(one.args.get("nulls_first"))))
    return tuple(keys)


def _row_count(clause: exp.Expr | None, word: str, env: Environment) -> int | None:
    if clause is None:
        return None
    env.place.only(clause, ("expression",))
    expression = clause.expression
    if isinstance(expression, exp.Var | exp.Column) and expression.name.upper() == "ALL":
        return None

    def no_columns(node: exp.Column) -> HeadwaterError:
        raise env.place.mistake("HW132", f"{word} needs a number, and {node.name} is a name", node)

    value = Binder(env.place, no_columns, clause=word).constant(expression)  # type: ignore[arg-type]
    if not isinstance(value.type, t.Integer) or not isinstance(value.value, int) or value.value < 0:
        raise env.place.mistake("HW132", f"{word} needs a whole number that is not negative", clause)
    return value.value


# -- LIMIT -----------------------------------------------------------------------------------------------------------


def _select(
    query: exp.Select, env: Environment, prefix: str, columns: tuple[exp.Identifier, ...], allowed: tuple[str, ...]
) -> Lowered:
    """A SELECT; ORDER BY counts only together with LIMIT or OFFSET."""
    if allowed:
        return lower_select(query, env, prefix, columns, None, allowed)[0]
    lowered, order = lower_select(query, env, prefix, columns, query.args.get("order"), _TOP)
    return _first_rows(query, lowered, order, env)


def _first_rows(
    query: exp.Expr,
    lowered: Lowered,
    order: tuple[OrderKey, ...],
    env: Environment,
    allowed: tuple[str, ...] = (),
) -> Lowered:
    limit = _row_count(query.args.get("limit"), "LIMIT", env)
    skipped = _row_count(query.args.get("offset"), "OFFSET", env) or 0
    outer = env.outer.columns if env.outer is not None else ()
    node = lowered.node
    if allowed or (limit is None and not skipped):
        extra = len(node.column_names) - len(lowered.names) - len(outer)
        if allowed or not extra:
            return lowered
        kept = (*node.column_names[: len(lowered.names)], *(one.name for one in outer))
        return replace(lowered, node=Project(node, tuple((name, node.column(name)) for name in kept)))
    for f in node.schema:
        if not t.is_orderable(f.type):
            raise env.place.unsupported("HW201", f"LIMIT over {f.type}, which has no order, is not supported", query)
    made = limited(lowered, order, limit, skipped, outer, env.aliases.internal())
    return Lowered(made, lowered.names)


# -- UNION, INTERSECT, EXCEPT and VALUES -----------------------------------------------------------------------------


def _limited_union(
    query: exp.SetOperation,
    env: Environment,
    prefix: str,
    columns: tuple[exp.Identifier, ...],
    allowed: tuple[str, ...],
) -> Lowered:
    inner = env.with_ctes(query.args.get("with_"))
    lowered = _union(query, inner, prefix, columns, allowed or _TOP)
    if allowed:
        return lowered
    return _first_rows(query, lowered, _order_by_outputs(query.args.get("order"), lowered, inner), inner)


def _union(
    query: exp.SetOperation,
    env: Environment,
    prefix: str,
    columns: tuple[exp.Identifier, ...],
    allowed: tuple[str, ...],
) -> Lowered:
    env.place.only(query, ("this", "expression", "distinct", "with_", *allowed), "HW208")
    branches = _branches(query, env)
    rows = [_branch(one, env, prefix, columns) for one in branches]
    word = _word(query)
    names = rows[0][0].names
    for lowered, node in rows[1:]:
        if len(lowered.names) != len(names):
            raise env.place.mistake(
                "HW126", f"{word} of {len(names)} and {len(lowered.names)} columns", node, "give both the same columns"
            )
    kinds = []
    for position, name in enumerate(names):
        met = meet(one.node.schema[position].type for one, _ in rows)
        if isinstance(met, tuple):
            raise env.place.mistake(
                "HW126",
                f"column {name} of {word} is {met[0]} here and {met[1]} there",
                rows[-1][1],
                "cast one of them",
            )
        kinds.append(met)
    outer = env.outer.columns if env.outer is not None else ()
    outputs = (*unique_names(names, prefix), *(one.name for one in outer))
    kinds += [one.type for one in outer]
    shaped = [_shaped(one.node, outputs, kinds) for one, _ in rows]
    return Lowered(_combined(query, shaped, env), names)


def _word(query: exp.SetOperation) -> str:
    return f"{query.key.upper()}{' ALL' if query.args.get('distinct') is False else ''}"


def _combined(query: exp.SetOperation, nodes: list[Node], env: Environment) -> Node:
    every = query.args.get("distinct") is False
    if not every or not isinstance(query, exp.Union):
        for f in nodes[0].schema:
            if not t.is_groupable(f.type):
                raise env.place.mistake(
                    "HW125", f"{f.type} has no equality, so {_word(query)} cannot compare it", query
                )
    match query:
        case exp.Intersect():
            return intersect(nodes[0], nodes[1], every, env.aliases.internal)
        case exp.Except():
            return subtract(nodes[0], nodes[1], every, env.aliases.internal)
    whole = Union(tuple(nodes))
    return whole if every else distinct(whole)


def _branch(
    query: exp.Expr, env: Environment, prefix: str, columns: tuple[exp.Identifier, ...]
) -> tuple[Lowered, exp.Expr]:
    return lower_query(query, env, prefix, columns), query


def _branches(query: exp.SetOperation, env: Environment) -> list[exp.Expr]:
    """The two sides, or all queries of a chain of UNION or of UNION ALL, which leans left and may be long."""
    if not isinstance(query, exp.Union | exp.Except | exp.Intersect):
        raise env.place.unsupported("HW208", f"{query.key.upper()} is not supported", query)
    found: list[exp.Expr] = []
    below: exp.Expr = query
    while (
        isinstance(below, exp.Union)
        and isinstance(query, exp.Union)
        and below.args.get("distinct") == query.args.get("distinct")
        and (below is query or not any(below.args.get(key) for key in (*_TOP, "with_")))
    ):
        if below is not query:
            env.place.only(below, ("this", "expression", "distinct"), "HW208")
        found.append(below.expression)
        below = below.this
    return [below, *reversed(found)] if found else [query.this, query.expression]


def _shaped(node: Node, names: tuple[str, ...], kinds: list[t.Type]) -> Node:
    """The node's columns by position under other names and in other types."""
    if [(f.name, f.type) for f in node.schema] == list(zip(names, kinds, strict=True)):
        return node
    return Project(
        node,
        tuple(
            (name, cast(node.column(field.name), kind))
            for name, field, kind in zip(names, node.schema, kinds, strict=True)
        ),
    )


def meet(kinds: Iterable[t.Type]) -> t.Type | tuple[t.Type, t.Type]:
    """The type all values of a column meet at, or two types that do not."""
    # Strings last: they take the type of what they meet, and the others must have met before.
    first, *others = sorted(kinds, key=lambda kind: isinstance(kind, t.String))
    for other in others:
        met = t.common_type(first, other)
        if met is None:
            return first, other
        first = met
    return first


def _values(
    query: exp.Values,
    env: Environment,
    prefix: str,
    columns: tuple[exp.Identifier, ...],
    allowed: tuple[str, ...],
) -> Lowered:
    place = env.place
    place.only(query, ("expressions", "alias", *allowed))

    def no_columns(node: exp.Column) -> HeadwaterError:
        raise place.mistake("HW101", f"VALUES cannot read columns, and {place.text(node)} is a name", node)

    binder = Binder(place, no_columns, clause="VALUES")  # type: ignore[arg-type]
    cells = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in query.expressions]
    width = len(cells[0])
    if not width:
        raise place.mistake("HW128", "a row of VALUES has at least one value", query)
    for row, node in zip(cells, query.expressions, strict=True):
        if len(row) != width:
            raise place.mistake("HW128", f"a row of {len(row)} values below rows of {width}", node)
    rows = [[binder.constant(cell) for cell in row] for row in cells]
    kinds = []
    for position in range(width):
        met = meet(row[position].type for row in rows)
        if isinstance(met, tuple):
            raise place.mistake(
                "HW126",
                f"column {position + 1} of VALUES is {met[0]} here and {met[1]} there",
                query,
                "cast one of them",
            )
        kinds.append(met)
    check_width(width, columns, query, place)
    shown = tuple(one.name for one in columns) or tuple(f"col{n}" for n in range(1, width + 1))
    values = tuple(
        tuple(
            binder.value(binder.convert(cell, kind, node), node).value
            for cell, kind, node in zip(row, kinds, nodes, strict=True)
        )
        for row, nodes in zip(rows, cells, strict=True)
    )
    fields = tuple(
        t.Field(name, kind, any(row[position] is None for row in values))
        for position, (name, kind) in enumerate(zip(unique_names(shown, prefix), kinds, strict=True))
    )
    return Lowered(Values(fields, values), shown)
