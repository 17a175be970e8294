"""Part references in FROM: `M[j]`, `M[60 * j .. 60 * j + 59]`, as filters of relations by their parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from headwater import types as t
from headwater.algebra.functions.casts import cast_value
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Filter, Node, Scan
from headwater.algebra.parts import PART, Reference, between
from headwater.algebra.scalars import Literal, call, conjunction
from headwater.algebra.subscripts import VARIABLE, NotLinear, Subscript, number
from headwater.sql.names import fold
from headwater.sql.parts_parser import compared_texts
from headwater.sql.place import Place
from headwater.sql.scope import RelationInfo

_SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "/",
    exp.Mod: "%",
}


#: What a subscript with divisions does must repeat after so many parts.
LONGEST_PERIOD = 10_000


@dataclass
class Parting:
    """A query that says what a part holds, while it is lowered.

    Attributes:
        view: the view whose part it is.
        length: how many seconds a part spans.
        variable: the name of its subscript.
        references: those that were met so far.
    """

    view: str
    length: int
    variable: str
    references: list[Reference] = field(default_factory=list)


def parts_of(scan: Scan, node: exp.Table, info: RelationInfo, parting: Parting | None, place: Place) -> Node:
    """The rows of a relation that a table of FROM means: all, or those of the parts that it names."""
    named: exp.Tuple | None = node.args.get("part")
    if named is None:
        if parting is not None and fold(info.name) == fold(parting.view):
            raise place.mistake(
                "HW185", f"{info.name} reads itself whole: a part cannot follow from itself", node, "name earlier parts"
            )
        return scan
    if info.length is None:
        raise place.mistake(
            "HW184", f"{info.name} has no parts", node, "a stream has them with PARTITION LENGTH; name it without [...]"
        )
    bounds = [_subscript(one, parting, place) for one in named.expressions]
    first, last = bounds[0], bounds[-1]
    if parting is None:
        return _constant(scan, first, last)
    reference = Reference(info.name, first, last)
    _check(reference, info.length, parting, named.expressions[-1], place)
    parting.references.append(reference)
    return between(scan, 2 * len(parting.references) - 2, first == last)


def check_times(columns: Iterable[exp.Column], alias: str, place: Place) -> None:
    """Refuse texts that PART_TIMESTAMP of a relation is compared with and that are no times."""
    for column in columns:
        for text in compared_texts(column) if fold(column.table) in ("", fold(alias)) else ():
            try:
                cast_value(text.name, t.STRING, t.TIMESTAMP)
            except EvaluationError:
                hint = "write '2015-01-01 00:00:00', or '2015/01/01 0:00'"
                raise place.mistake("HW129", f"{place.text(text)} is not a TIMESTAMP", text, hint) from None


def _constant(scan: Scan, first: Subscript, last: Subscript) -> Node:
    part = scan.column(f"{scan.alias}.{PART}")
    low, high = Literal(first.at(0), t.BIGINT), Literal(last.at(0), t.BIGINT)
    return Filter(scan, conjunction([call(">=", part, low), call("<=", part, high)]))


def _subscript(node: exp.Expr, parting: Parting | None, place: Place) -> Subscript:
    """An expression of a subscript."""
    match node:
        case exp.Paren():
            return _subscript(node.this, parting, place)
        case exp.Neg():
            return Subscript("-", (number(0), _subscript(node.this, parting, place)))
        case exp.Literal() if not node.is_string and node.name.isdigit() and len(node.name) < 19:
            return number(int(node.name))
        case exp.Column() if parting is not None and not node.table and fold(node.name) == fold(parting.variable):
            return VARIABLE
        case exp.Column():
            known = f"the subscript is {parting.variable}" if parting else "write the number of a part, or use PART"
            raise place.mistake("HW184", f"{node.name} is no subscript here", node, known)
    sign = _SIGNS.get(type(node))
    if sign is None:
        raise place.mistake("HW184", "a subscript is made of whole numbers with + - * / and %", node)
    made = Subscript(sign, (_subscript(node.this, parting, place), _subscript(node.expression, parting, place)))
    try:
        if made.slope is None or made.period > LONGEST_PERIOD:
            hint = f"divide by {LONGEST_PERIOD:,} at most"
            raise place.mistake("HW184", "a subscript repeats only after very many parts", node, hint)
    except ZeroDivisionError:
        raise place.mistake("HW184", "a subscript that divides by zero", node) from None
    except NotLinear:
        hint = "multiply it by numbers only, and divide by numbers only"
        raise place.mistake("HW184", "a subscript does not rise evenly with the part", node, hint) from None
    return made


def _check(reference: Reference, length: int, parting: Parting, node: exp.Expr, place: Place) -> None:
    """Refuse what can never be there when the part is evaluated, and lengths that do not go together."""
    longer, shorter = max(length, parting.length), min(length, parting.length)
    if longer % shorter:
        raise place.mistake(
            "HW186",
            f"parts of {reference.relation} span {length} seconds, and those of {parting.view} {parting.length}",
            node,
            "one length must be a multiple of the other",
        )
    itself = fold(reference.relation) == fold(parting.view)
    if itself and any(one.slope != 1 for one in (reference.first, reference.last)):
        raise place.mistake(
            "HW185",
            f"{reference} is not always an earlier part",
            node,
            f"of {parting.view} itself name parts by their distance: {parting.view}[j - 1]",
        )
    worst = latest(reference.last, length, parting.length)
    if itself and worst == parting.length:
        raise place.mistake(
            "HW185", f"{reference} is the part itself", node, f"name an earlier part: {reference.relation}[j - 1]"
        )
    if worst is None or worst > parting.length or (itself and worst >= parting.length):
        raise place.mistake(
            "HW185",
            f"{reference} lies in the future of part j of {parting.view}",
            node,
            "a part follows from what is over when it ends",
        )


def keeps_pace(reference: Reference, length: int, own: int) -> bool:
    """Whether the parts that are read of a relation go on as fast as the parts that read them."""
    return reference.last.slope * length == own


def latest(subscript: Subscript, length: int, own: int) -> int | None:
    """How long after the beginning of part j the part that a subscript names ends at most, in seconds.

    None if there is no such limit. It is computed for large subscripts, as those of present times are.
    """
    pace = subscript.slope * length - own
    if pace > 0:
        return None
    if pace < 0:  # it falls behind, or stands
        return 0
    base = 10**6 - 10**6 % max(1, subscript.period)
    return max((subscript.at(j) + 1) * length - j * own for j in range(base, base + subscript.period))
