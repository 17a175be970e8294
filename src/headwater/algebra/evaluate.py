"""What each node means, in plain Python: slow, short, and the definition everything else is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext

from headwater import types as t
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.nodes import (
    COUNT,
    Filter,
    IllFormed,
    Join,
    Named,
    Negate,
    Node,
    Present,
    Project,
    Scan,
    Sum,
    Union,
    Values,
)
from headwater.algebra.scalars import Scalar, conjuncts

Row = tuple[object, ...]
#: A relation: rows with a signed multiplicity, never zero.
Bag = Counter[Row]

#: One object stands for every NaN, so that rows with NaN are equal as tuples (tuples compare by identity first).
NAN = float("nan")


#: Digits with which decimals add up: far beyond DECIMAL(38), so that no total is ever rounded.
_EXACT = 120


def canonical(value: object) -> object:
    """A value in the form in which equal values are equal in Python: one NaN, no negative zero."""
    if isinstance(value, float):
        if value != value:
            return NAN
        return value + 0.0
    if isinstance(value, tuple | list):
        return tuple(canonical(item) for item in value)
    return value


def evaluate(node: Node, relation: Callable[[Scan], Bag]) -> Bag:
    """The rows of a tree.

    Args:
        node: any node that yields rows.
        relation: gives the contents that a `Scan` reads.
    """
    names = node.column_names
    match node:
        case Scan():
            return relation(node)
        case Values(rows=rows):
            return Counter(tuple(canonical(v) for v in row) for row in rows)
        case Filter(input=source, predicate=predicate):
            rows_in = evaluate(source, relation)
            return Counter({r: n for r, n in rows_in.items() if _holds(predicate, _env(names, r))})
        case Project(input=source, columns=columns):
            return _add((_row(columns, _env(source.column_names, r)), n) for r, n in evaluate(source, relation).items())
        case Join(left=left, right=right, condition=condition):
            right_rows = evaluate(right, relation)
            return _add(
                (a + b, n * m)
                for a, n in evaluate(left, relation).items()
                for b, m in right_rows.items()
                if _holds(condition, _env(names, a + b))
            )
        case Union(inputs=inputs):
            return _add(pair for one in inputs for pair in evaluate(one, relation).items())
        case Negate(input=source):
            return Counter({r: -n for r, n in evaluate(source, relation).items()})
        case Present():
            return _present(node, evaluate_map(node.sums, relation))
    raise IllFormed(f"{type(node).__name__} does not yield rows")


def evaluate_map(node: Sum, relation: Callable[[Scan], Bag]) -> dict[Row, Row]:
    """A map: from key values to payload values. Keys whose count is zero are kept; `Present` drops them."""
    with localcontext(prec=_EXACT):
        return _totals(node, evaluate(node.input, relation))


def _totals(node: Sum, rows: Bag) -> dict[Row, Row]:
    names = node.input.column_names
    out: dict[Row, list[int | float | Decimal]] = {}
    zeros = [_zero(field.type) for field in node.payload]
    for row, n in rows.items():
        env = _env(names, row)
        totals = out.setdefault(_row(node.keys, env), list(zeros))
        totals[0] += n
        for i, (_, term) in enumerate(node.terms, 1):
            value = evaluate_scalar(term, env)
            if not isinstance(value, int | float | Decimal):
                raise IllFormed(f"a term of a sum is {value!r}")
            totals[i] += n * int(value) if isinstance(value, bool) else n * value  # type: ignore[operator]
    if not node.keys and not out:
        out[()] = zeros
    return {key: tuple(totals) for key, totals in out.items()}


def _present(node: Present, rows: Mapping[Row, Row]) -> Bag:
    names = node.sums.column_names
    count = names.index(COUNT)
    out: Bag = Counter()
    for key, payload in rows.items():
        env = _env(names, key + payload)
        positive = not node.sums.keys or int(str((key + payload)[count])) > 0
        if positive and _holds(node.having, env):
            out[_row(node.outputs, env)] += 1
    return out


def _holds(condition: Scalar, env: Mapping[str, object]) -> bool:
    """Whether a condition is TRUE. Each conjunct guards those behind it, as if it were a filter below theirs."""
    return all(evaluate_scalar(part, env) is True for part in conjuncts(condition))


def _zero(of: t.Type) -> int | float | Decimal:
    match of:
        case t.Double():
            return 0.0
        case t.Decimal(_, scale):
            return Decimal(0).scaleb(-scale)
    return 0


def _env(names: tuple[str, ...], row: Row) -> dict[str, object]:
    return dict(zip(names, row, strict=True))


def _row(columns: tuple[Named, ...], env: Mapping[str, object]) -> Row:
    return tuple(canonical(evaluate_scalar(scalar, env)) for _, scalar in columns)


def _add(pairs: Iterable[tuple[Row, int]]) -> Bag:
    out: Bag = Counter()
    for row, n in pairs:
        out[row] += n
    return Counter({row: n for row, n in out.items() if n})
