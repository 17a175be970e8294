"""Constants of a query that are left open, so that what is planned for one text serves others that differ in them.

A text is taken apart into its shape and its literals, without parsing it (`lift`). A plan is made for a shape with some
literals left open: those that are an operand of a comparison in a condition of WHERE, ON or HAVING (`mark`). All others
are part of what a plan is known by. Where such a comparison is bound, a `Given` of the type that the literal is
compared in takes its place (`Lifting.compared`); docs/design/reading.md says why that is right for all values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions import resolve
from headwater.algebra.scalars import Call, Given, Literal, Scalar, cast, transform
from headwater.algebra.simplify.fold_constants import fold
from headwater.sql import literals

#: Names, literals, and what a text must not have to be taken apart: comments, escapes, other quotes.
_TOKENS = re.compile(
    r"`[^`]*`|[A-Za-z_]\w*|('[^'\\\x00-\x1f]*'|\d+(?:\.\d+)?)|([?'\"`\\$@#{]|--|/\*|[^\x00-\x7f])", re.ASCII
)
#: What makes a number part of something else, before it and after it.
_JOINED = re.compile(r"[\w.'\"`]", re.ASCII)
#: Halves of characters, which no text may have.
_HALVES = re.compile("[\ud800-\udfff]")
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
#: Types whose values DuckDB takes from Python as they are.
_SENT = (t.Integer, t.Decimal, t.Float, t.Double, t.String, t.Date, t.Timestamp)
#: Where the number of an open literal is noted in a tree.
_MARK = "given"


@dataclass(frozen=True)
class Shape:
    """A text without its literals.

    Attributes:
        text: what is left, with `?` for a number and `'` for a string.
        literals: as they are written, in order.
        starts: where they begin.
    """

    text: str
    literals: tuple[str, ...]
    starts: tuple[int, ...] = field(compare=False)


def lift(text: str) -> Shape | None:
    """The shape of a text; None if it has no literals, or something that is not worth the while to tell from them.

    >>> lift("SELECT a1 FROM t WHERE b > 17.5 AND c = 'x'")
    Shape(text="SELECT a1 FROM t WHERE b > ? AND c = '", literals=('17.5', "'x'"), starts=(27, 40))
    >>> lift("SELECT 1L, t.1, 1e3 -- 7") is None
    True
    """
    if not text.isascii() and _HALVES.search(text):
        return None
    kept: list[str] = []
    found: list[str] = []
    starts: list[int] = []
    done = 0
    for token in _TOKENS.finditer(text):
        if token[2] is not None:
            return None
        literal = token[1]
        if literal is None:
            continue
        start, end = token.span()
        if (start and _JOINED.match(text, start - 1)) or _JOINED.match(text, end):
            return None
        kept += (text[done:start], "'" if literal[0] == "'" else "?")
        found.append(literal)
        starts.append(start)
        done = end
    if not found:
        return None
    kept.append(text[done:])
    return Shape("".join(kept), tuple(found), tuple(starts))


def mark(query: exp.Expr, shape: Shape) -> dict[int, bool]:
    """Mark the literals of a query that may be left open; returns their numbers, and whether a minus is before each."""
    numbers = {start: number for number, start in enumerate(shape.starts)}
    out: dict[int, bool] = {}
    for condition in _conditions(query):
        for operand in _operands(condition):
            literal = operand.this if isinstance(operand, exp.Neg) else operand
            number = numbers.get(literal.meta.get("start", -1))
            if number is not None:
                operand.meta[_MARK] = number
                out[number] = literal is not operand
    return out


def _conditions(query: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions of a query and of those that it reads from; not of those in expressions: they name columns."""
    if not isinstance(query, exp.Select | exp.SetOperation | exp.Subquery):
        return
    with_ = query.args.get("with_")
    for one in with_.expressions if with_ else ():
        yield from _conditions(one.this)
    if not isinstance(query, exp.Select):
        yield from _conditions(query.this)
        yield from _conditions(query.args.get("expression"))
        return
    source = query.args.get("from_")
    if source is not None:
        yield from _conditions(source.this)
    for join in query.args.get("joins") or ():
        yield from _conditions(join.this)
        if join.args.get("on") is not None:
            yield join.args["on"]
    for clause in (query.args.get("where"), query.args.get("having")):
        if clause is not None:
            yield clause.this


def _operands(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The literals that something else is compared with."""
    left = [condition]
    while left:
        match left.pop():
            case exp.And() | exp.Or() as both:
                left += (both.this, both.expression)
            case exp.Not() | exp.Paren() as one:
                left.append(one.this)
            case exp.Between() as between if not _is_literal(between.this):
                yield from filter(_is_literal, (between.args["low"], between.args["high"]))
            case exp.Binary() as compared if type(compared) in _COMPARISONS:
                sides = compared.this, compared.expression
                if not all(map(_is_literal, sides)):
                    yield from filter(_is_literal, sides)


def _is_literal(node: exp.Expr) -> bool:
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    return isinstance(node, exp.Literal)


@dataclass(frozen=True)
class Open:
    """A literal that is left open.

    Attributes:
        function: what compares it.
        args: what it is compared with, and the literal that stood there first.
        place: which of them it is.
        params: the types in which they are compared.
    """

    function: str
    args: tuple[Scalar, ...]
    place: int
    params: tuple[t.Type, ...]

    def value(self, literal: Literal) -> Literal | None:
        """What is given for a literal; None if it would be compared in other types, or cannot be computed."""
        args = tuple(literal if i == self.place else arg for i, arg in enumerate(self.args))
        try:
            if resolve(self.function, args).params != self.params:
                return None
        except ValueError:
            return None
        made = fold(cast(literal, self.params[self.place]))
        return made if isinstance(made, Literal) and isinstance(made.type, _SENT) and made.value is not None else None


@dataclass
class Lifting:
    """What was left open of a query, by the literals' numbers.

    Attributes:
        marked: the literals that may be, and whether a minus is before each.
        opened: those that are, each with all places where it was bound.
        closed: those that are not.
    """

    marked: Mapping[int, bool] = field(default_factory=dict)
    opened: dict[int, list[Open]] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)

    def compared(self, bound: Scalar, nodes: Sequence[exp.Expr], args: tuple[Scalar, ...]) -> Scalar:
        """A comparison, with what is left open of it.

        Args:
            bound: the comparison.
            nodes: its operands as written.
            args: these as bound, before they were converted.
        """
        if not self.marked:
            return bound
        for place, node in enumerate(nodes):
            number = node.meta.get(_MARK)
            if number is None:
                continue
            assert isinstance(bound, Call)
            params = tuple(one.type for one in bound.args)
            literal, there = args[place], Open(bound.function, args, place, params)
            if not isinstance(literal, Literal) or there.value(literal) != bound.args[place]:
                self.closed.add(number)
                continue
            self.opened.setdefault(number, []).append(there)
            given = Given(number, params[place])
            bound = Call(bound.function, tuple(given if i == place else one for i, one in enumerate(bound.args)))
        return bound

    @property
    def is_clean(self) -> bool:
        """Whether each literal that is marked was bound, and always in the same way.

        One that was not stands in something that was found by how it is written, and may stand for more than itself.
        """
        alike = all(one == places[0] for places in self.opened.values() for one in places)
        return alike and not self.opened.keys() & self.closed and self.opened.keys() | self.closed == self.marked.keys()


def literal_of(text: str, negative: bool) -> Literal:
    """A literal as it is written in a shape.

    Raises:
        ValueError: it has too many digits.
    """
    return Literal(text[1:-1], t.STRING) if text[0] == "'" else literals.number(f"-{text}" if negative else text)


def put_back(scalar: Scalar, values: Mapping[int, Literal]) -> Scalar:
    """A scalar with constants for what is given."""
    return transform(scalar, lambda one: values[one.number] if isinstance(one, Given) else None)
