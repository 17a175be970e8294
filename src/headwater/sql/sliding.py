"""A query over a window of parts as views of parts: Yang, Golab and Ozsu, "ViewDF", section 5.2.

| aggregates | views |
|---|---|
| distributive (MAX, SUM of DOUBLE) | `helper`, which aggregates each part; the view merges those of the window |
| subtractable and exact (SUM, COUNT) | `helper`; `sums`, those of the window; the view selects from `sums` |
| others, or none | the query itself over the parts of the window |

Where we deviate: the paper's helper view for subtractable aggregates has sums since the beginning of time, and the
view is the difference of two of them. Ours has the sums of the window only: those of the part before, and the new
part's, less those of the part that leaves. So a group that has left takes no room, and a late row changes as many parts
as the window has, and not all that come after it. And a group has left when it has no row in the window: the paper asks
whether its sum is above zero, which is wrong where values are zero or negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from headwater import types as t
from headwater.sql import part_text as text
from headwater.sql.calls import function_name
from headwater.sql.function_names import AGGREGATES
from headwater.sql.names import fold
from headwater.sql.part_text import Lines, quoted, shown
from headwater.sql.parted import Names, Parted, as_type, plain, replaced, table, with_aliases
from headwater.sql.place import Place
from headwater.sql.statements import Name
from headwater.sql.window_aggregates import Merged, Partial, Value, WindowAggregates

_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400}

#: What a query may have that is taken apart; with anything else it is evaluated over the window's rows.
_CLAUSES = ("expressions", "from_", "where", "group", "having")


def sliding_views(
    query: exp.Select,
    source: exp.Table,
    parted: Parted,
    columns: tuple[Name, ...],
    place: Place,
    name: Callable[[str], str],
    final: Callable[[Lines, Lines], str],
) -> tuple[str, ...]:
    """The texts of the views that a window is translated to, the view itself last.

    Args:
        query: whose FROM is one relation with a window.
        source: that relation.
        parted: the same.
        columns: the names that CREATE VIEW gives to the columns, or none.
        place: where the query stands in the text.
        name: makes a name for a helper view.
        final: makes the view of its two queries.
    """
    width = _width(source.args["window"], parted, place)
    whole = query.copy()
    whole.args["from_"].set("this", table(parted.name, source.alias or source.name))
    outputs = tuple(one.name for one in parted.lower(whole, place.source, columns))
    read = _read(query, source, parted, outputs, place) if width > 1 else None
    if read is None:
        return (final(*(_direct(whole, outputs, parted, width, one) for one in "ij")),)
    views = _Views(read, parted, width)
    helper = name("helper")
    first = text.part_view(helper, views.helper("i"), views.helper("j"), parted.length)
    if not read.aggregates.subtractable:
        return (first, final(*(views.merged(helper, one) for one in "ij")))
    sums = name("sums")
    second = text.part_view(sums, views.first_sums(helper), views.sums(helper, sums), parted.length)
    return (first, second, final(*(views.selected(sums, one) for one in "ij")))


def _width(window: exp.Interval, parted: Parted, place: Place) -> int:
    """How many parts a window has."""
    count, unit = Decimal(window.this.name), window.args["unit"].name.upper().removesuffix("S")
    if unit != "PART" and unit not in _SECONDS:
        raise place.mistake(
            "HW195", f"a window has no unit {unit}", window, "write SECONDS, MINUTES, HOURS, DAYS or PARTS"
        )
    parts = count if unit == "PART" else count * _SECONDS[unit] / parted.length
    if parts < 1 or parts != int(parts):
        raise place.mistake(
            "HW195",
            f"a window is a whole number of parts, at least one, and a part of {parted.name} has"
            f" {parted.length} second{'' if parted.length == 1 else 's'}",
            window,
            "make the window a multiple of that, or the parts shorter",
        )
    return int(parts)


def _direct(whole: exp.Select, outputs: tuple[str, ...], parted: Parted, width: int, subscript: str) -> Lines:
    """The query over the rows of the window."""
    made = whole.copy()
    bounds: list[exp.Expr] = [exp.column(subscript)]
    if width > 1:
        bounds.insert(0, exp.Sub(this=exp.column(subscript), expression=exp.Literal.number(width - 1)))
    relation = made.args["from_"].this
    relation.set("part", exp.Tuple(expressions=bounds))
    if fold(relation.alias) == fold(parted.name):
        relation.set("alias", None)
    if len(made.expressions) == len(outputs):  # there is no * in it
        for item, name in zip(made.expressions, outputs, strict=True):
            if item.alias_or_name != name:
                item.replace(exp.alias_(item.unalias(), name, quoted=True))
    return shown(made, pretty=True).split("\n")


@dataclass(frozen=True)
class _Read:
    """A query that is taken apart.

    Attributes:
        where: the condition on rows.
        groups: the columns that groups have in the helper views, with the expressions over rows.
        grouped: whether there is a GROUP BY.
        aggregates: what is kept of each part.
        items: the names of the result's columns, with how they are made.
        having: how the condition on groups is made.
    """

    where: exp.Expr | None
    groups: tuple[tuple[str, exp.Expr], ...]
    grouped: bool
    aggregates: WindowAggregates
    items: tuple[tuple[str, Value], ...]
    having: Value | None


def _read(query: exp.Select, source: exp.Table, parted: Parted, outputs: tuple[str, ...], place: Place) -> _Read | None:
    """Take a query apart, or say that it has to be evaluated over the rows."""
    group, having, where = (query.args.get(key) for key in ("group", "having", "where"))
    if any(value for key, value in query.args.items() if key not in _CLAUSES):
        return None
    if any(one.is_star for one in query.expressions) or len(query.expressions) != len(outputs):
        return None
    if group is not None and any(value for key, value in group.args.items() if key != "expressions"):
        return None
    qualifier = source.alias or source.name
    named: dict[str, exp.Expr] = {}
    items: list[exp.Expr] = []
    for item in query.expressions:
        tree = with_aliases(plain(item.unalias(), parted, qualifier), parted, named)
        named.setdefault(fold(item.alias_or_name), tree)
        items.append(tree)
    if group is None and having is None and not any(map(_has_aggregate, items)):
        return None
    keys: list[exp.Expr] = []
    for node in group.expressions if group is not None else ():
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            key = items[int(node.name) - 1]
        else:
            key = with_aliases(plain(node, parted, qualifier), parted, named)
        while isinstance(key, exp.Paren):
            key = key.this
        if key not in keys:
            keys.append(key)
    names = Names.beside(parted)
    groups = tuple((_group_name(key, items, outputs, names, n), key) for n, key in enumerate(keys, 1))
    aggregates = WindowAggregates(parted, place.source, names, group is not None)
    made = [_value(one, groups, aggregates) for one in items]
    condition = None
    if having is not None:
        columns = {fold(key.name) for key in keys if isinstance(key, exp.Column)}
        tree = with_aliases(plain(having.this, parted, qualifier), parted, named, lambda one: fold(one) in columns)
        condition = _value(tree, groups, aggregates)
    values = [one for one in made if one is not None]
    if len(values) < len(made) or (having is not None and condition is None):
        return None
    if aggregates.subtractable:
        aggregates.rows()
    rows = plain(where.this, parted, qualifier) if where is not None else None
    return _Read(rows, groups, group is not None, aggregates, tuple(zip(outputs, values, strict=True)), condition)


def _group_name(key: exp.Expr, items: list[exp.Expr], outputs: tuple[str, ...], names: Names, number: int) -> str:
    """A column goes by its own name, an expression by that of the item that shows it."""
    if isinstance(key, exp.Column) and len(key.parts) == 1:
        return key.name
    shown_as = next((name for item, name in zip(items, outputs, strict=True) if item == key), None)
    return names.fresh(shown_as if shown_as is not None and shown_as.isidentifier() else f"g{number}")


def _is_aggregate(node: exp.Expr) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, exp.Any) or (isinstance(inner, exp.Anonymous) and function_name(inner) in AGGREGATES)


def _has_aggregate(tree: exp.Expr) -> bool:
    return any(_is_aggregate(one) for one in tree.walk())


def _value(tree: exp.Expr, groups: tuple[tuple[str, exp.Expr], ...], aggregates: WindowAggregates) -> Value | None:
    """How an expression over groups and aggregates is made, or None if the rows are needed for it."""
    values: dict[exp.Expr, Value] = {}
    marks: dict[str, Value] = {}

    def found(node: exp.Expr) -> exp.Expr | None:
        for name, key in groups:
            if node == key:
                return exp.column(name, table=_GROUP)
        if _is_aggregate(node) or isinstance(node, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls | exp.Window):
            value = values.get(node) or aggregates.value(node)
            if value is None:
                raise _NeedsRows
            values[node] = value
            mark = f"a{len(marks)}"
            marks[mark] = value
            return exp.column(mark, table=_MARK)
        if isinstance(node, exp.Column):
            raise _NeedsRows  # an expression over groups that is not recognised as such
        return None

    try:
        made = replaced(tree, found)
    except _NeedsRows:
        return None

    def value(merged: Merged) -> exp.Expr:
        def filled(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Column):
                return marks[node.name](merged) if node.table == _MARK else exp.column(node.name)
            return None

        return replaced(made, filled)

    return value


#: What columns that stand for groups and for aggregates are qualified with, while an expression is made.
_GROUP, _MARK = "#group", "#aggregate"


class _NeedsRows(Exception):
    """An expression has to be evaluated over the rows of the window."""


class _Views:
    """Writes the queries of the views."""

    def __init__(self, read: _Read, parted: Parted, width: int) -> None:
        self.read = read
        self.parted = parted
        self.width = width
        self.groups = [quoted(name) for name, _ in read.groups]
        self.partials = read.aggregates.partials

    def helper(self, subscript: str) -> Lines:
        """Each part for itself."""
        items = [text.named(shown(tree), name) for name, tree in self.read.groups]
        items += [text.named(shown(one.call), one.name) for one in self.partials]
        where = [shown(self.read.where)] if self.read.where is not None else []
        keys = [shown(tree) for _, tree in self.read.groups]
        return text.select(items, [text.reference(self.parted.name, subscript)], where, keys)

    def merged(self, helper: str, subscript: str) -> Lines:
        """The parts of the window, merged."""
        having = [shown(self.read.having(_merged))] if self.read.having is not None else []
        source = [text.reference(helper, subscript, self.width - 1, 0)]
        return text.select(self._items(_merged), source, group=self.groups, having=having)

    def first_sums(self, helper: str) -> Lines:
        """The sums of the first window, which has one part."""
        items = [*self.groups, *(quoted(one.name) for one in self.partials)]
        return text.select(items, [text.reference(helper, "i")])

    def sums(self, helper: str, sums: str) -> Lines:
        """The sums of the window before, and of the part that comes, less those of the part that goes."""
        names = [quoted(one.name) for one in self.partials]
        kept = [*self.groups, *names]
        gone = [*self.groups, *(f"-{one} AS {one}" for one in names)]
        united = [
            *text.select(kept, [text.reference(sums, "j", 1)]),
            "UNION ALL",
            *text.select(kept, [text.reference(helper, "j")]),
            "UNION ALL",
            *text.select(gone, [text.reference(helper, "j", self.width)]),
        ]
        items = [*self.groups, *(text.named(shown(_merged(one)), one.name) for one in self.partials)]
        rows = self.read.aggregates.rows()
        having = [f"sum({quoted(rows.name)}) > 0"] if self.read.grouped else []
        return text.select(items, text.derived(united, "Temp"), group=self.groups, having=having)

    def selected(self, sums: str, subscript: str) -> Lines:
        """What is shown of the sums."""
        where = [shown(self.read.having(_column))] if self.read.having is not None else []
        return text.select(self._items(_column), [text.reference(sums, subscript)], where)

    def _items(self, merged: Merged) -> list[str]:
        return [text.named(shown(value(merged)), name) for name, value in self.read.items]


def _merged(partial: Partial) -> exp.Expr:
    call = exp.Anonymous(this=partial.merge, expressions=[exp.column(partial.name)])
    # The sum of DECIMAL has ten digits more than what is summed, and these were counted once already.
    return as_type(call, partial.type) if isinstance(partial.type, t.Decimal) and partial.merge == "sum" else call


def _column(partial: Partial) -> exp.Expr:
    return exp.column(partial.name)
