"""FROM clauses: relations, derived tables, common table expressions and joins, as nodes and the names they offer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater import types as t
from headwater.algebra.compose import (
    anti_join,
    columns_of,
    full_join,
    left_join,
    looked_up,
    right_join,
    semi_join,
    shared,
)
from headwater.algebra.nodes import Filter, Join, Node, Project, Scan
from headwater.algebra.nodes import Outer as OuterJoin
from headwater.algebra.parts import PART, PART_TIMESTAMP
from headwater.algebra.scalars import TRUE, Column, Literal, Scalar, call, conjunction, substitute
from headwater.errors import HeadwaterError
from headwater.sql.aliases import Aliases
from headwater.sql.as_of import AsOf, read_as_of
from headwater.sql.bind import Binder, column
from headwater.sql.exploding import Exploding, is_exploding
from headwater.sql.names import fold
from headwater.sql.outer import Outer
from headwater.sql.part_references import Parting, check_times, parts_of
from headwater.sql.place import Place, check_width
from headwater.sql.scope import RelationInfo, Relations, Scope, Visible, find_relation
from headwater.sql.synchronised import difference, is_function, names_of

#: Finds a relation as it was: by its name, with what is known of it now.
History = Callable[[RelationInfo, AsOf], RelationInfo]

#: A query may read so many relations. What WITH defines is lowered at each use, so reads can double with each line.
MOST_READS = 256


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

    The node's own column names are unique; the names shown may repeat. Columns behind those that are shown are the ones
    that stand for columns of the query around it.

    Attributes:
        empty: for an aggregate without GROUP BY, what each column is over no rows at all; None where the node has the
            row of such an aggregate itself, and where it may have none.
    """

    node: Node
    names: tuple[str, ...]
    empty: tuple[Scalar, ...] | None = None

    def visible(self, alias: str | None) -> Scope:
        """Its columns as a FROM clause offers them."""
        pairs = zip(self.names, self.node.column_names, strict=False)
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
    outer: Outer | None = None
    #: Where a part of a view is evaluated: its subscript has a name then, and outer joins stay what they are.
    parting: Parting | None = None
    #: Where relations may be read as they were, and the point at which they are if they name none.
    history: History | None = None
    as_of: AsOf | None = None

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
            inner = replace(self, ctes=ctes[name].seen, aliases=Aliases(), outer=None)
            self.query(cte.this, inner, "", ctes[name].columns)
        return replace(self, ctes=ctes)


def lower_from(clause: exp.From, joins: list[exp.Join], env: Environment) -> tuple[Node, Scope]:
    """The relations of a FROM clause joined from left to right, and the names they offer."""
    env.place.only(clause, ("this",))
    env = replace(env, outer=None)  # only LATERAL sees what is outside
    node, scope = _relation(clause.this, env)
    for join in joins:
        node, scope = _join(node, scope, join, env)
    return node, scope


def lower_lateral_view(node: Node, names: Scope, view: exp.Lateral, env: Environment) -> tuple[Node, Scope]:
    """LATERAL VIEW: every row with each element of a collection."""
    place = env.place
    place.only(view, ("this", "alias", "view", "outer"))
    call = view.this
    if not is_exploding(call):
        raise place.unsupported("HW207", "LATERAL VIEW takes explode and posexplode", view)
    shown, columns = _alias(view.args.get("alias"), env)
    binder = Binder(place, lambda one: column(names, one, place), clause="LATERAL VIEW")
    made = Exploding.of(call, binder, columns)
    prefix = env.aliases.take(shown or "e")
    node = made.node(node, made.source, prefix, outer=bool(view.args.get("outer")))
    return node, names + Scope((Visible(shown, made.columns(prefix)),))


def _join(left: Node, names: Scope, join: exp.Join, env: Environment) -> tuple[Node, Scope]:
    place = env.place
    side, kind = join.side.upper(), join.kind.upper()
    natural = join.method.upper() == "NATURAL"
    if isinstance(join.this, exp.Lateral):
        return _lateral(left, names, join, env)
    way = _JOINS.get((side, kind))
    if way is None:
        what = " ".join(filter(None, (side, kind, "JOIN")))
        raise place.unsupported("HW202", f"{what} is not supported", join)
    place.only(join, ("this", "on", "side", "kind", "using", "unsaid", *(("method",) if natural else ())), "HW202")
    right, offered = _relation(join.this, env)
    if env.parting is not None and join.args.get("unsaid"):  # as the paper writes it: M[j] LEFT OUTER JOIN Helper[j-1]
        natural = True
    if natural or join.args.get("using"):
        return _join_using(left, names, right, offered, join, way, env)
    both = names + offered
    condition: Scalar = TRUE
    if join.args.get("on") is not None:
        binder = Binder(place, lambda node: column(both, node, place), clause="ON")
        condition = binder.condition(join.args["on"])
    return _combined(way, left, right, condition, env), names if way in ("semi", "anti") else both


#: Kinds of joins by the words in front of JOIN.
_JOINS = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}
_WAYS = {"left": left_join, "right": right_join, "full": full_join, "semi": semi_join, "anti": anti_join}


def _combined(way: str, left: Node, right: Node, condition: Scalar, env: Environment) -> Node:
    if way == "inner":
        return Join(left, right, condition)
    if env.parting is not None and way in ("left", "right", "full"):
        return OuterJoin(left, right, condition, way != "right", way != "left")
    return _WAYS[way](left, right, condition, env.aliases.internal)


def _lateral(left: Node, names: Scope, join: exp.Join, env: Environment) -> tuple[Node, Scope]:
    """A derived table that sees the relations before it."""
    place = env.place
    side, kind = join.side.upper(), join.kind.upper()
    lateral = join.this
    place.only(lateral, ("this", "alias", "view", "outer"))
    if (side, kind) not in (("", ""), ("", "CROSS"), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER")):
        raise place.unsupported("HW202", f"{side or kind} JOIN LATERAL is not supported", join)
    place.only(join, ("this", "on", "side", "kind"), "HW202")
    if lateral.args.get("view") or not isinstance(lateral.this, exp.Subquery):
        raise place.unsupported("HW207", "LATERAL with a function is not supported yet", lateral)
    shown, columns = _alias(lateral.args.get("alias"), env)
    query = lateral.this.this
    outer = Outer(lambda node: column(names, node, place) if names.find(node) else None, env.aliases.internal(), query)

    def lower() -> Lowered:
        prefix = f"{env.aliases.take(shown or 'q')}."
        return env.query(query, replace(env, outer=outer), prefix, columns)

    lowered = outer.lowered(lower, env.aliases)
    left = shared(left)
    right = outer.with_domain(lowered.node, left)
    both = names + lowered.visible(shown)
    on: Scalar = TRUE
    if join.args.get("on") is not None:
        on = Binder(place, lambda node: column(both, node, place), clause="ON").condition(join.args["on"])
    met: list[Scalar] = [call("=" if outer.equated else "<=>", theirs, mine) for theirs, mine in outer.used.items()]
    if lowered.empty is None:
        return _combined("left" if side == "LEFT" else "inner", left, right, conjunction([*met, on]), env), both
    if on != TRUE and side == "LEFT":
        raise place.unsupported("HW202", "LEFT JOIN LATERAL of an aggregate takes no condition", join)
    node = _with_its_row(left, right, lowered, outer, conjunction(met), env)
    return Filter(node, on) if on != TRUE else node, both


def _with_its_row(left: Node, right: Node, lowered: Lowered, outer: Outer, met: Scalar, env: Environment) -> Node:
    """Every row of the left side with the one row that an aggregate has for it, over nothing if need be."""
    assert lowered.empty is not None
    found = lowered.node.column_names[: len(lowered.names)]
    inside = {name: env.aliases.internal() for name in found}
    own = tuple((inside[name], right.column(name)) for name in found)
    renamed = Project(right, (*own, *((one.name, one) for one in outer.columns)))
    values = tuple((name, renamed.column(inside[name])) for name in found)
    given: dict[str, Scalar] = {mine.name: theirs for theirs, mine in outer.used.items()}
    empty = tuple(substitute(one, given) for one in lowered.empty)
    return looked_up(left, renamed, met, values, empty, env.aliases.internal)


def _join_using(
    left: Node, names: Scope, right: Node, offered: Scope, join: exp.Join, way: str, env: Environment
) -> tuple[Node, Scope]:
    """A join on equal columns of the same name, each of which is then one column."""
    place = env.place
    wanted: list[exp.Identifier] = join.args.get("using") or []
    if join.method or join.args.get("unsaid"):
        theirs = {fold(shown) for shown, _ in offered.columns}
        wanted = [exp.to_identifier(shown, quoted=True) for shown, _ in names.columns if fold(shown) in theirs]
    conditions: list[Scalar] = []
    mine: list[tuple[str, Column]] = []
    hidden: list[Column] = []
    both = names + offered
    binder = Binder(place, lambda node: column(both, node, place), clause="USING")
    for name in wanted:
        read = exp.Column(this=name.copy())
        one, other = column(names, read, place), column(offered, read, place)
        conditions.append(binder.call("=", join, one, other, shown=f"USING ({name.name})"))
        shown = next(shown for shown, found in names.columns if found == one)
        mine.append((shown, other if way == "right" else one))
        hidden.append(one if way == "right" else other)
    node = _combined(way, left, right, conjunction(conditions), env)
    if way in ("semi", "anti"):
        return node, names
    if way != "full":
        return node, both.merged(tuple(mine), hidden)
    whole = [
        (shown, env.aliases.internal(), call("coalesce", one, other))
        for (shown, one), other in zip(mine, hidden, strict=True)
    ]
    node = Project(node, (*columns_of(node), *((name, scalar) for _, name, scalar in whole)))
    merged = tuple((shown, Column(name, scalar.type)) for shown, name, scalar in whole)
    gone = [*(one for _, one in mine), *hidden]
    return node, (both + Scope((Visible(None, merged),))).merged(merged, gone)


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
    found = _without(node, env) if node.args.get("minus") else _one_table(node, env)
    for join in node.args.get("joins") or ():
        found = _join(*found, join, env)
    return found


def _one_table(node: exp.Table, env: Environment) -> tuple[Node, Scope]:
    place = env.place
    named, policy = names_of(node, place) if is_function(node) else (node.this, None)
    if node.args.get("db"):
        raise place.mistake(
            "HW102", f"there is no relation {place.text(node)}", node, "relations have names of one part"
        )
    if node.args.get("pattern") or node.args.get("window"):
        what = "PATTERN" if node.args.get("pattern") else "[WINDOW ...]"
        raise place.mistake(
            "HW190", f"{what} stands in the FROM of a view, alone", node, "CREATE VIEW ... AS SELECT ... FROM it alone"
        )
    place.only(node, ("this", "alias", "joins", "minus", "part", "version"))
    cte = env.ctes.get(fold(named.name))
    if cte is not None and policy is None:
        if node.args.get("version"):
            raise place.mistake("HW340", f"{cte.name} is a query of WITH", node, "write AS OF inside it")
        return _named_query(node, cte, env)
    info = find_relation(named, env.relations, [one.name for one in env.ctes.values()], place, policy)
    info = _as_it_was(info, node, env)
    shown, columns = _alias(node.args.get("alias"), env)
    env.aliases.reads += 1
    if env.aliases.reads > MOST_READS:
        raise env.place.mistake(
            "HW142",
            f"the query reads more than {MOST_READS} relations",
            node,
            "what WITH defines counts each time it is read: make it a view",
        )
    scan = Scan(info.name, env.aliases.take(shown or named.name), info.fields, since=info.since, grows=info.grows)
    if info.length is not None or node.args.get("part"):
        return _parted(scan, node, info, (shown or named.name, columns), env)
    names = _renamed(tuple(f.name for f in info.fields), columns, node, env)
    return scan, Lowered(scan, names).visible(shown or named.name)


def _as_it_was(info: RelationInfo, node: exp.Table, env: Environment) -> RelationInfo:
    """A relation at the point that a query names, or as it is."""
    version = node.args.get("version")
    if version is not None and env.history is None:
        hint = "leave AS OF out: a view follows its relations as they change"
        raise env.place.mistake("HW340", "AS OF stands in queries that are answered once", node, hint)
    as_of = read_as_of(version, env.place) if version is not None else env.as_of
    if as_of is None or env.history is None:
        return info
    try:
        return env.history(info, as_of)
    except HeadwaterError as error:
        raise error.at(env.place.span(node), env.place.source) from error.__cause__


def _parted(
    scan: Scan, node: exp.Table, info: RelationInfo, alias: tuple[str, tuple[exp.Identifier, ...]], env: Environment
) -> tuple[Node, Scope]:
    """A relation with parts, or some of its parts. PART and PART_TIMESTAMP are there for whoever names them."""
    rows = parts_of(scan, node, info, env.parting, env.place)
    shown, columns = alias
    names = _renamed(tuple(f.name for f in info.fields if f.name != PART), columns, node, env)
    names += (PART,)
    unlisted = {Column(f"{scan.alias}.{PART}", t.BIGINT)}
    times = [one for one in node.root().find_all(exp.Column) if one.name.upper() == PART_TIMESTAMP]
    if times:
        check_times(times, shown, env.place)
        begins = call("part_timestamp", rows.column(f"{scan.alias}.{PART}"), Literal(info.length, t.INT))
        rows = Project(rows, (*columns_of(rows), (f"{scan.alias}.{PART_TIMESTAMP}", begins)))
        names += (PART_TIMESTAMP,)
        unlisted.add(Column(f"{scan.alias}.{PART_TIMESTAMP}", t.TIMESTAMP))
    return rows, replace(Lowered(rows, names).visible(shown), unlisted=frozenset(unlisted))


def _without(node: exp.Table, env: Environment) -> tuple[Node, Scope]:
    """`R(S) a - R(T) b`: what is in the one relation and not in the other, under the name of the first."""
    place = env.place
    sides = [_one_table(one, env) for one in (node, node.args["minus"])]
    stamps = set()
    for table, (side, _) in zip((node, node.args["minus"]), sides, strict=True):
        named, _ = names_of(table, place) if is_function(table) else (table.this, None)
        info = env.relations.find(fold(named.name)) if fold(named.name) not in env.ctes else None
        if info is not None and info.stamp is not None and isinstance(side, Scan):
            stamps.add(f"{side.alias}.{info.stamp}")
    (left, names), (right, _) = sides
    kinds = [[f.type for f in side.schema if f.name not in stamps] for side in (left, right)]
    if kinds[0] != kinds[1]:
        raise place.mistake("HW126", f"{place.text(node)} have different columns", node, "cast one of them in a view")
    rest = difference(left, right, frozenset(stamps), env.aliases.internal)
    [visible] = names.relations
    shown = tuple((text, column) for text, column in visible.columns if column.name not in stamps)
    return rest, Scope((Visible(visible.alias, shown),))


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
