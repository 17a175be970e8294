"""What holds of rows that meet some conditions, and what follows from it.

Conditions are taken apart as Goldstein and Larson do it ("Optimizing queries using materialized views: a practical,
scalable solution", SIGMOD 2001, section 3.1.1): columns that are equal form classes, comparisons of one expression with
constants are sets of values, and the rest must be there word for word, up to the classes. Beyond the paper, the sets
know IN, OR and NULL, and a condition with OR follows if it does so in each case of a condition with OR.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from headwater import types as t
from headwater.algebra.functions import REGISTRY
from headwater.algebra.joins import TURNED
from headwater.algebra.scalars import TRUE, Call, Cast, Column, Literal, Scalar, call, conjuncts, transform
from headwater.plan.intervals import KNOWN, NOTHING, NULL, Values, among, compared

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ANYTHING = Values(KNOWN.intervals, null=True)
#: Conditions with OR are looked at case by case if there are no more cases than this.
_MOST_CASES = 8
_Asked = tuple[Scalar, Values]


def is_identity(kind: t.Type) -> bool:
    """Whether values that are equal are the same; 0.0 and -0.0 are equal and not the same."""
    return isinstance(kind, t.Integer | t.Decimal | t.String | t.Date | t.Timestamp | t.Boolean | t.Binary)


class Facts:
    """What is known of rows for which all of some conditions are TRUE."""

    def __init__(self, conditions: Sequence[Scalar], not_null: Collection[str] = ()) -> None:
        """Take the conditions apart.

        Args:
            conditions: over columns whose names are unique.
            not_null: columns that are never NULL.
        """
        self._given = [part for one in conditions for part in conjuncts(_plain(one))]
        self._declared = frozenset(not_null)
        self._of: dict[Column, Column] = {}
        for part in self._given:
            sides = _equal_columns(part)
            if sides is not None:
                first, second = map(self._class, sides)
                for one in [one for one, of in self._of.items() if of == second] + [second]:
                    self._of[one] = first
                self._of[first] = first
        self._known = {one.name for part in self._given for one in _rejected(part)} | self._declared

    def _class(self, column: Column) -> Column:
        return self._of.get(column, column)

    def canonical(self, scalar: Scalar) -> Scalar:
        """The scalar in one form, whichever of equal columns it names, and whichever side it compares first."""

        def one(part: Scalar) -> Scalar | None:
            if isinstance(part, Column):
                return self._class(part)
            if isinstance(part, Call) and part.function in (*_COMPARISONS, "<=>", "not"):
                return _oriented(Call(part.function, tuple(transform(arg, one) for arg in part.args)))
            return None

        return transform(scalar, one)

    def equal(self, column: Column) -> Iterator[Column]:
        """The columns that are known to equal one, and the column itself."""
        yield column
        yield from (one for one in self._of if one != column and self._of[one] == self._class(column))

    def constant(self, scalar: Scalar) -> Literal | None:
        """The one value that an expression has, if it is known."""
        if not is_identity(scalar.type):
            return None
        value = self.values(self.canonical(scalar)).point
        return None if value is None else Literal(value, scalar.type)

    @cached_property
    def _sets(self) -> dict[Scalar, Values]:
        sets: dict[Scalar, Values] = {}
        for part in self._given:
            asked = self._asked(part)
            if asked is not None:
                sets[asked[0]] = sets.get(asked[0], _ANYTHING) & asked[1]
        return sets

    @cached_property
    def _residuals(self) -> frozenset[Scalar]:
        found = {self.canonical(part) for part in self._given}
        for one in list(found):
            if isinstance(one, Call) and one.function in ("<", "=") and _ordered(one.args[0].type):
                found.add(Call("<=", one.args))
                found.add(_oriented(Call("<>", one.args)) if one.function == "<" else Call("<=", one.args[::-1]))
        return frozenset(found)

    def values(self, scalar: Scalar) -> Values:
        """What an expression, in canonical form, can be."""
        found = self._sets.get(scalar, _ANYTHING)
        if isinstance(scalar, Literal):
            return NULL if scalar.value is None else compared("=", scalar.value, scalar.type)
        if self._is_known(scalar):
            found &= KNOWN
        match scalar:
            case Call(function="%", args=(of, Literal(value=int() as divisor))) if divisor:
                for other, values in self._sets.items():
                    found &= _remainder(other, values, of, divisor, scalar.type)
        return found

    def _is_known(self, scalar: Scalar) -> bool:
        """Whether an expression is not NULL."""
        match scalar:
            case Column():
                return any(one.name in self._known for one in self.equal(scalar))
            case Cast(arg=arg, safe=False):
                return self._is_known(arg)
            case Call(function="+" | "-" | "*", args=args):
                return all(map(self._is_known, args))
            case Literal(value=value):
                return value is not None
        return False

    def implies(self, condition: Scalar) -> bool:
        """Whether a condition is TRUE for all rows of which this is known."""
        return all(self._follows(part) for part in conjuncts(_plain(condition)))

    def _follows(self, part: Scalar, cases: bool = True) -> bool:
        if part == TRUE:
            return True
        sides = _equal_columns(part)
        if sides is not None and self._class(sides[0]) == self._class(sides[1]):
            return self._is_known(sides[0])
        asked = self._asked(part)
        if asked is not None and self.values(asked[0]) <= asked[1]:
            return True
        if self.canonical(part) in self._residuals:
            return True
        arms = _arms(part)
        if len(arms) > 1 and any(all(self._follows(one) for one in conjuncts(arm)) for arm in arms):
            return True
        return cases and any(self._in_each(other, part) for other in self._given if len(_arms(other)) > 1)

    def _in_each(self, either: Scalar, part: Scalar) -> bool:
        """Whether a condition follows in each case of one with OR."""
        arms = _arms(either)
        if len(arms) > _MOST_CASES:
            return False
        rest = [one for one in self._given if one != either]
        return all(Facts([*rest, arm], self._declared)._follows(part, cases=False) for arm in arms)

    def _asked(self, part: Scalar) -> _Asked | None:
        """The expression that a condition is about, and what it may be, if the condition says nothing else."""
        part = _plain(part)
        match part:
            case Call(function="or" | "and" as function, args=(a, b)):
                one, other = self._asked(a), self._asked(b)
                if one is None or other is None or one[0] != other[0]:
                    return None
                return one[0], one[1] | other[1] if function == "or" else one[1] & other[1]
        found = _set_of(part)
        return None if found is None else (self.canonical(found[0]), found[1])


def _plain(part: Scalar) -> Scalar:
    """A condition as one that is TRUE for the same rows, without IS TRUE and NOT as far as these can go."""
    match part:
        case Call(function="is true", args=(inner,)):
            return _plain(inner)
        case Call(function="not", args=(Call(function="not", args=(inner,)),)):
            return _plain(inner)
        case Call(function="not", args=(Call(function=function, args=args),)) if function in _OPPOSITE:
            return Call(_OPPOSITE[function], args)
        case Call(function="not", args=(Call(function="is null", args=args),)):
            return Call("is not null", args)
        case Call(function="not", args=(Call(function="is not null", args=args),)):
            return Call("is null", args)
        case Call(function="not", args=(Call(function="or", args=(a, b)),)):
            return call("and", _plain(call("not", a)), _plain(call("not", b)))
        case Call(function="and" | "or" as function, args=(a, b)):
            return call(function, _plain(a), _plain(b))
    return part


def _set_of(part: Scalar) -> _Asked | None:
    match part:
        case Call(function=function, args=(a, Literal(value=value))) if function in _COMPARISONS and value is not None:
            return (a, compared(function, value, a.type)) if _ordered(a.type) else None
        case Call(function=function, args=(Literal() as a, b)) if function in _COMPARISONS:
            return _set_of(Call(TURNED.get(function, function), (b, a))) if not isinstance(b, Literal) else None
        case Call(function="<=>", args=(a, Literal(value=value))) if _ordered(a.type):
            return a, NULL if value is None else compared("=", value, a.type)
        case Call(function="in", args=(a, *items)) if _ordered(a.type) and _constant(items):
            return a, among((one.value for one in items if isinstance(one, Literal)), a.type)
        case Call(function="not", args=(Call(function="in", args=(a, *items)),)) if _ordered(a.type):
            if not _constant(items):
                return None
            values = [one.value for one in items if isinstance(one, Literal)]
            out = KNOWN if None not in values else NOTHING
            for value in values:
                out = out & compared("<>", value, a.type) if value is not None else out
            return a, out
        case Call(function="is null", args=(a,)):
            return a, NULL
        case Call(function="is not null", args=(a,)):
            return a, KNOWN
        case Column(type=t.Boolean()):
            return part, compared("=", True, part.type)
        case (
            Call(function="not", args=(Column(type=t.Boolean()) as column,))
            | Call(function="is false", args=(Column() as column,))
        ):
            return column, compared("=", False, column.type)
    return None


def _constant(items: Sequence[Scalar]) -> bool:
    return all(isinstance(one, Literal) for one in items)


def _ordered(kind: t.Type) -> bool:
    return t.is_orderable(kind) and not isinstance(kind, t.Null)


def _equal_columns(part: Scalar) -> tuple[Column, Column] | None:
    """Two columns that a condition makes the same."""
    match part:
        case Call(function="=", args=(Column() as a, Column() as b)) if a.type == b.type and is_identity(a.type):
            return a, b
    return None


def _arms(part: Scalar) -> list[Scalar]:
    """The cases of a condition with OR."""
    if isinstance(part, Call) and part.function == "or":
        return [arm for arg in part.args for arm in _arms(arg)]
    return [part]


def _oriented(part: Call) -> Scalar:
    """A comparison with its sides in one order, and without NOT around it."""
    match part:
        case Call(function="not", args=(Call(function=function, args=args),)) if function in _OPPOSITE:
            return _oriented(Call(_OPPOSITE[function], args))
        case Call(function=">" | ">=" as function, args=(a, b)):
            return Call(TURNED[function], (b, a))
        case Call(function="=" | "<>" | "<=>" as function, args=(a, b)) if str(b) < str(a):
            return Call(function, (b, a))
    return part


def _rejected(part: Scalar) -> Iterator[Column]:
    """Columns that are not NULL where a condition is TRUE."""
    match part:
        case Call(function="is not null" | "is false", args=(arg,)):
            yield from _strict_in(arg)
        case _:
            yield from _strict_in(part)


def _strict_in(scalar: Scalar) -> Iterator[Column]:
    """Columns whose NULL makes a scalar NULL."""
    match scalar:
        case Column():
            yield scalar
        case Cast(arg=arg):
            yield from _strict_in(arg)
        case Call(function="in", args=(arg, *_)):
            yield from _strict_in(arg)
        case Call(function=function, args=args) if REGISTRY[function].strict and not REGISTRY[function].lazy:
            for arg in args:
                yield from _strict_in(arg)


def _remainder(other: Scalar, values: Values, of: Scalar, divisor: int, kind: t.Type) -> Values:
    """What `of % divisor` can be if another remainder of the same is known, by a multiple of the divisor."""
    match other:
        case Call(function="%", args=(same, Literal(value=int() as multiple))) if same == of and multiple:
            if multiple % divisor == 0 and isinstance(values.point, int):
                return compared("=", int(math.fmod(values.point, divisor)), kind)
    return _ANYTHING
