"""FROM clauses: relations, derived tables, common table expressions and joins, as nodes and the names they offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater.algebra.nodes import Join, Node, Scan
from headwater.algebra.scalars import TRUE, Column, Scalar, conjunction
from headwater.sql.bind import Binder, column
from headwater.sql.names import fold
from headwater.sql.place import Place
from headwater.sql.scope import Relations, Scope, Visible, find_relation


class Aliases:
    """Names for the relations of one tree, each given once however often queries repeat theirs."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """The wanted name, with a number behind it if it is taken.

        Columns are named `alias.column`, so an alias has no dot; `#` marks names that the planner adds.
        """
        wanted = wanted.replace(".", "_").replace("#", "_")
        name, number = wanted, 2
        while fold(name) in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(fold(name))
        return name


@dataclass(frozen=True)
class Cte:
    """A common table expression, and the ones its own body sees."""

    name: str
    query: exp.Expr
    columns: tuple[exp.Identifier, ...]
    seen: Mapping[str, Cte]


@dataclass(frozen=True)
class Lowered:
    """A query as a node, and the names its columns are known by, in order.

    The node's own column names are unique; the names shown may repeat.
    """

    node: Node
    names: tuple[str, ...]

    def visible(self, alias: str | None) -> Scope:
        """Its columns as a FROM clause offers them."""
        pairs = zip(self.names, self.node.column_names, strict=True)
        return Scope((Visible(alias, tuple((shown, self.node.column(name)) for shown, name in pairs)),))


@dataclass(frozen=True)
class Environment:
    """What is around a query: the text, the catalogue, names in use, and the common table expressions in sight.

    `query` lowers an inner query; it is given from outside because queries and FROM clauses contain each other.
    """

    place: Place
    relations: Relations
    query: Callable[[exp.Expr, Environment, str, tuple[exp.Identifier, ...]], Lowered]
    aliases: Aliases = field(default_factory=Aliases)
    ctes: Mapping[str, Cte] = field(default_factory=dict)

    def with_ctes(self, clause: exp.With | None) -> Environment:
        """The environment inside a query with a WITH clause; each expression sees those before it."""
        if clause is None:
            return self
        self.place.only(clause, ("expressions", "recursive"))
        if clause.args.get("recursive"):
            raise self.place.unsupported("HW213", "WITH RECURSIVE is not supported", clause)
        ctes = dict(self.ctes)
        own: set[str] = set()
        for cte in clause.expressions:
            self.place.only(cte, ("this", "alias"))
            if cte.args.get("materialized") is not None:
                raise self.place.unsupported("HW201", "[NOT] MATERIALIZED is not supported", cte, "leave it out")
            name = fold(cte.alias)
            if name in own:
                raise self.place.mistake("HW134", f"WITH defines {cte.alias} twice", cte.args["alias"].this)
            own.add(name)
            alias = cte.args["alias"]
            self.place.only(alias, ("this", "columns"))
            ctes[name] = Cte(cte.alias, cte.this, tuple(alias.args.get("columns") or ()), dict(ctes))
            # Lowered once for its own errors, so that one nobody uses is checked too.
            inner = replace(self, ctes=ctes[name].seen, aliases=Aliases())
            self.query(cte.this, inner, "", ctes[name].columns)
        return replace(self, ctes=ctes)


def lower_from(clause: exp.From, joins: list[exp.Join], env: Environment) -> tuple[Node, Scope]:
    """The relations of a FROM clause joined from left to right, and the names they offer."""
    env.place.only(clause, ("this",))
    node, scope = _relation(clause.this, env)
    for join in joins:
        node, scope = _join(node, scope, join, env)
    return node, scope


def _join(left: Node, names: Scope, join: exp.Join, env: Environment) -> tuple[Node, Scope]:
    place = env.place
    side, kind = join.side.upper(), join.kind.upper()
    natural = join.method.upper() == "NATURAL"
    if side or kind not in ("", "INNER", "CROSS"):
        what = " ".join(filter(None, (side, kind, "JOIN")))
        raise place.unsupported("HW202", f"{what} is not supported yet", join, "inner and cross joins are")
    place.only(join, ("this", "on", "side", "kind", "using", *(("method",) if natural else ())), "HW202")
    right, offered = _relation(join.this, env)
    if natural or join.args.get("using"):
        return _join_using(left, names, right, offered, join, place)
    names = names + offered
    condition = join.args.get("on")
    if condition is None:
        return Join(left, right, TRUE), names
    binder = Binder(place, lambda node: column(names, node, place), clause="ON")
    return Join(left, right, binder.condition(condition)), names


def _join_using(
    left: Node, names: Scope, right: Node, offered: Scope, join: exp.Join, place: Place
) -> tuple[Node, Scope]:
    """A join on equal columns of the same name, each of which is then one column."""
    wanted: list[exp.Identifier] = join.args.get("using") or []
    if join.method:
        theirs = {fold(shown) for shown, _ in offered.columns}
        wanted = [exp.to_identifier(shown, quoted=True) for shown, _ in names.columns if fold(shown) in theirs]
    conditions: list[Scalar] = []
    mine: list[tuple[str, Column]] = []
    hidden: list[Column] = []
    both = names + offered
    binder = Binder(place, lambda node: column(both, node, place), clause="USING")
    for name in wanted:
        node = exp.Column(this=name.copy())
        one, other = column(names, node, place), column(offered, node, place)
        conditions.append(binder.call("=", join, one, other, shown=f"USING ({name.name})"))
        mine.append((next(shown for shown, found in names.columns if found == one), one))
        hidden.append(other)
    return Join(left, right, conjunction(conditions)), both.merged(tuple(mine), hidden)


def _relation(node: exp.Expr, env: Environment) -> tuple[Node, Scope]:
    match node:
        case exp.Table():
            return _table(node, env)
        case exp.Subquery():
            return _subquery(node, env)
        case exp.Values():
            return _derived(node, node.args.get("alias"), env)
        case exp.Lateral() | exp.Unnest():
            raise env.place.unsupported("HW207", "LATERAL is not supported yet", node)
    raise env.place.unsupported("HW207", f"{env.place.text(node)} in FROM is not supported yet", node)


def _table(node: exp.Table, env: Environment) -> tuple[Node, Scope]:
    place = env.place
    if not isinstance(node.this, exp.Identifier):
        raise place.unsupported("HW207", "functions in FROM are not supported yet", node)
    if node.args.get("db"):
        raise place.mistake(
            "HW102", f"there is no relation {place.text(node)}", node, "relations have names of one part"
        )
    place.only(node, ("this", "alias", "joins"))
    cte = env.ctes.get(fold(node.name))
    if cte is not None:
        found = _named_query(node, cte, env)
    else:
        info = find_relation(node, env.relations, [one.name for one in env.ctes.values()], place)
        shown, columns = _alias(node.args.get("alias"), env)
        scan = Scan(info.name, env.aliases.take(shown or info.name), info.fields, since=info.since)
        names = _renamed(tuple(f.name for f in info.fields), columns, node, env)
        found = scan, Lowered(scan, names).visible(shown or node.name)
    for join in node.args.get("joins") or ():
        found = _join(*found, join, env)
    return found


def _named_query(node: exp.Table, cte: Cte, env: Environment) -> tuple[Node, Scope]:
    shown, columns = _alias(node.args.get("alias"), env)
    inner = replace(env, ctes=cte.seen)
    alias = env.aliases.take(shown or cte.name)
    lowered = env.query(cte.query, inner, f"{alias}.", cte.columns)
    names = _renamed(lowered.names, columns, node, env)
    return lowered.node, Lowered(lowered.node, names).visible(shown or node.name)


def _subquery(node: exp.Subquery, env: Environment) -> tuple[Node, Scope]:
    env.place.only(node, ("this", "alias", "joins", "with_"))
    inner = env.with_ctes(node.args.get("with_"))
    if isinstance(node.this, exp.Table):  # parentheses around relations and joins
        if node.args.get("alias"):
            raise env.place.unsupported("HW207", "an alias of a join in parentheses is not supported yet", node)
        found = _relation(node.this, inner)
    elif isinstance(node.this, exp.Subquery) and not node.args.get("alias"):
        found = _relation(node.this, inner)
    else:
        found = _derived(node.this, node.args.get("alias"), inner)
    for join in node.args.get("joins") or ():
        found = _join(*found, join, env)
    return found


def _derived(query: exp.Expr, alias: exp.TableAlias | None, env: Environment) -> tuple[Node, Scope]:
    shown, columns = _alias(alias, env)
    lowered = env.query(query, env, f"{env.aliases.take(shown or 'q')}.", columns)
    return lowered.node, lowered.visible(shown)


def _alias(alias: exp.TableAlias | None, env: Environment) -> tuple[str | None, tuple[exp.Identifier, ...]]:
    if alias is None:
        return None, ()
    env.place.only(alias, ("this", "columns"))
    return alias.name or None, tuple(alias.args.get("columns") or ())


def _renamed(
    names: tuple[str, ...], columns: tuple[exp.Identifier, ...], node: exp.Expr, env: Environment
) -> tuple[str, ...]:
    if not columns:
        return names
    check_width(len(names), columns, node, env.place)
    return tuple(one.name for one in columns)


def check_width(width: int, columns: tuple[exp.Identifier, ...], node: exp.Expr, place: Place) -> None:
    """Refuse a list of column names that does not fit its query."""
    if columns and len(columns) != width:
        raise place.mistake("HW128", f"{len(columns)} names for {width} columns", node)
