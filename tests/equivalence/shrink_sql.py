"""Simpler queries from a query, by small edits of its tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

Edit = Callable[[exp.Expr], None]

#: Nodes that are no values of their own, although they stand among a value's children.
_NO_VALUES = (exp.Identifier, exp.DataType, exp.Var, exp.Star, exp.Interval, exp.Tuple)


def simpler_queries(query: str) -> Iterator[str]:
    """Queries one edit away, the boldest edits first. Many will not resolve."""
    try:
        tree = parse_one(query, read="spark")
    except ParseError:  # sqlglot's own parser knows less than ours
        return
    seen = {query, tree.sql("spark")}
    edits = [(at, edit) for at, node in enumerate(tree.walk()) for edit in _edits(node)]
    for bold in (True, False):
        for at, (is_bold, edit) in edits:
            if is_bold is not bold:
                continue
            for everywhere in (True, False):
                text = _edited(tree, at, edit, everywhere)
                if text not in seen:
                    seen.add(text)
                    yield text


def _edited(tree: exp.Expr, at: int, edit: Edit, everywhere: bool) -> str:
    """The query after an edit of one node, or of all that equal it: a grouping expression stands in two places."""
    root = exp.Subquery(this=tree.copy())  # so that the query itself can be replaced too
    nodes = list(root.this.walk())
    chosen = [node for node in nodes if node == nodes[at]] if everywhere else [nodes[at]]
    for node in reversed(chosen):
        edit(node)
    return str(root.this.sql("spark"))


def inlined(query: str, name: str, by: str) -> str:
    """The query with a derived table in place of a relation's name; the same text if it does not read it."""
    tree = parse_one(query, read="spark")
    reads = [table for table in tree.find_all(exp.Table) if table.name == name]
    for table in reads:
        table.replace(_derived(by, table.alias or name))
    return tree.sql("spark") if reads else query


def _derived(query: str, alias: str) -> exp.Subquery:
    return exp.Subquery(this=parse_one(query, read="spark"), alias=exp.TableAlias(this=exp.to_identifier(alias)))


def _edits(node: exp.Expr) -> Iterator[tuple[bool, Edit]]:
    """What can be done to a node, and whether it takes away much."""
    if isinstance(node, exp.Select):
        yield from ((True, edit) for edit in _select_edits(node))
    elif isinstance(node, exp.SetOperation):
        yield True, lambda n: _replace(n, n.this)
        yield True, lambda n: _replace(n, n.expression)
    elif isinstance(node, exp.Subquery):
        yield from ((True, edit) for edit in _derived_table_edits(node))
    elif isinstance(node, exp.Group):
        for i in range(len(node.expressions) if len(node.expressions) > 1 else 0):
            yield True, lambda n, i=i: n.expressions.pop(i)  # type: ignore[misc]
    elif isinstance(node, exp.Case) and len(node.args["ifs"]) > 1:
        yield from ((False, edit) for edit in _value_edits(node))
        yield False, lambda n: n.args["ifs"].pop()
    elif _is_value(node) and not isinstance(node, exp.Column | exp.Literal):
        yield from ((False, edit) for edit in _value_edits(node))
    elif isinstance(node, exp.Column) and not isinstance(node.parent, exp.Alias | exp.Select | exp.Group):
        yield False, lambda n: _replace(n, exp.Literal.number(1))


def _select_edits(select: exp.Select) -> Iterator[Edit]:
    yield from _with_edits(select)
    for clause in ("where", "having", "group", "laterals", "distinct", "qualify", "order", "limit", "offset"):
        if select.args.get(clause):
            yield lambda n, clause=clause: n.set(clause, None)  # type: ignore[misc]
    for i in range(len(select.args.get("joins") or ())):
        yield lambda n, i=i: n.args["joins"].pop(i)  # type: ignore[misc]
        yield lambda n, i=i: _keep_only_join(n, i)  # type: ignore[misc]
        yield lambda n, i=i: _make_inner(n, i)  # type: ignore[misc]
    for i in range(len(select.expressions) if len(select.expressions) > 1 else 0):
        yield lambda n, i=i: n.expressions.pop(i)  # type: ignore[misc]


def _with_edits(select: exp.Select) -> Iterator[Edit]:
    with_ = select.args.get("with_")
    for i, cte in enumerate(with_.expressions if with_ else ()):
        name, text = cte.alias, cte.this.sql("spark")

        def inline(n: exp.Expr, i: int = i, name: str = name, text: str = text) -> None:
            ctes = n.args["with_"].expressions
            ctes.pop(i)
            if not ctes:
                n.set("with_", None)
            for table in list(n.find_all(exp.Table)):
                if table.name == name:
                    table.replace(_derived(text, table.alias or name))

        yield inline


def _make_inner(select: exp.Expr, i: int) -> None:
    join = select.args["joins"][i]
    join.set("side", None)
    join.set("kind", None)


def _keep_only_join(select: exp.Expr, i: int) -> None:
    """Read the joined side alone, in place of the first."""
    join = select.args["joins"].pop(i)
    select.args["from_"].set("this", join.this)


def _derived_table_edits(subquery: exp.Subquery) -> Iterator[Edit]:
    """What a derived table reads, in its own place and under its alias."""
    inner = subquery.this
    if not isinstance(inner, exp.Select) or not inner.args.get("from_") or not subquery.alias:
        return

    def lift(n: exp.Expr) -> None:
        read = n.this.args["from_"].this.copy()
        read.set("alias", exp.TableAlias(this=exp.to_identifier(n.alias)))
        n.replace(read)

    yield lift


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The values an expression is computed from; those of CASE stand inside its arms."""
    children: list[exp.Expr] = list(node.iter_expressions())
    if isinstance(node, exp.Case):
        children = [value for arm in node.args["ifs"] for value in (arm.args["true"], arm.this)] + children
    return [child for child in children if _is_value(child)]


def _is_value(node: exp.Expr) -> bool:
    arm = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    return isinstance(node, exp.Condition | exp.Case | exp.If) and not arm and not isinstance(node, _NO_VALUES)


def _value_edits(node: exp.Expr) -> Iterator[Edit]:
    operands = _operands(node)
    for i in range(len(operands)):
        yield lambda n, i=i: _replace(n, _operands(n)[i])  # type: ignore[misc]
    if operands and not isinstance(node, exp.Paren):
        for plain in (exp.Null(), exp.Literal.number(1), exp.true()):
            yield lambda n, plain=plain: _replace(n, plain)  # type: ignore[misc]


def _replace(node: exp.Expr, by: exp.Expr) -> None:
    node.replace(by.copy())
