"""What each node means, in plain Python: slow, short, and the definition everything else is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, localcontext

from headwater import types as t
from headwater.algebra.functions.evaluate import evaluate_scalar
from headwater.algebra.functions.picks import PICKS
from headwater.algebra.nodes import (
    COUNT,
    During,
    Explode,
    Filter,
    IllFormed,
    Join,
    Keep,
    Named,
    Negate,
    Node,
    Outer,
    Over,
    Present,
    Project,
    Repeat,
    Scan,
    Sum,
    Union,
    Values,
)
from headwater.algebra.scalars import Scalar, conjunction, conjuncts
from headwater.algebra.windows import evaluate_window

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


class _Once:
    """What the relations contain, and the rows of nodes that may stand in several places."""

    def __init__(self, relation: Callable[[Scan], Bag]) -> None:
        self._relation = relation
        self._rows: dict[int, tuple[Node, Bag]] = {}

    def __call__(self, scan: Scan) -> Bag:
        return self._relation(scan)

    def rows(self, node: Node) -> Bag:
        """The rows of a node, evaluated once."""
        if id(node) not in self._rows:
            self._rows[id(node)] = (node, _evaluate(node, self))
        return self._rows[id(node)][1]


def evaluate(node: Node, relation: Callable[[Scan], Bag]) -> Bag:
    """The rows of a tree.

    Args:
        node: any node that yields rows.
        relation: gives the contents that a `Scan` reads.
    """
    once = relation if isinstance(relation, _Once) else _Once(relation)
    return once.rows(node) if isinstance(node, Keep | Present | Over) else _evaluate(node, once)


def _evaluate(node: Node, relation: _Once) -> Bag:
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
        case Outer():
            return _outer(node, evaluate(node.left, relation), evaluate(node.right, relation))
        case Union(inputs=inputs):
            return _add(pair for one in inputs for pair in evaluate(one, relation).items())
        case Negate(input=source):
            return Counter({r: -n for r, n in evaluate(source, relation).items()})
        case Keep(input=source):
            return evaluate(source, relation)
        case During(input=source, starts=starts, ends=ends):
            rows_in = evaluate(source, relation)
            due = conjunction([starts, ends])
            return Counter({r: n for r, n in rows_in.items() if _holds(due, _env(names, r))})
        case Repeat(input=source, times=times):
            at = source.column_names.index(times)
            return _add((r[:at] + r[at + 1 :], n * int(str(r[at]))) for r, n in evaluate(source, relation).items())
        case Explode():
            return _explode(node, evaluate(node.input, relation))
        case Over():
            return _over(node, evaluate(node.input, relation))
        case Present():
            return _present(node, evaluate_map(node.sums, relation))
    raise IllFormed(f"{type(node).__name__} does not yield rows")


def _outer(node: Outer, left: Bag, right: Bag) -> Bag:
    names = node.column_names
    met = [(a, b) for a in left for b in right if _holds(node.condition, _env(names, a + b))]
    out = [(a + b, left[a] * right[b]) for a, b in met]
    nothing: tuple[Row, Row] = ((None,) * len(node.left.schema), (None,) * len(node.right.schema))
    if node.keeps_left:
        lonely = left.keys() - {mine for mine, _ in met}
        out += [(row + nothing[1], left[row]) for row in lonely]
    if node.keeps_right:
        lonely = right.keys() - {theirs for _, theirs in met}
        out += [(nothing[0] + row, right[row]) for row in lonely]
    return _add(out)


def evaluate_map(node: Sum, relation: Callable[[Scan], Bag]) -> dict[Row, Row]:
    """A map: from key values to payload values. Keys whose count is zero are kept; `Present` drops them."""
    with localcontext(prec=_EXACT):
        return _totals(node, evaluate(node.input, relation))


def _totals(node: Sum, rows: Bag) -> dict[Row, Row]:
    names = node.input.column_names
    out: dict[Row, list[int | float | Decimal]] = {}
    picked: dict[Row, list[tuple[dict[str, object], int]]] = {}
    zeros = [_zero(field.type) for field in node.payload[: len(node.terms) + 1]]
    for row, n in rows.items():
        env = _env(names, row)
        key = _row(node.keys, env)
        totals = out.setdefault(key, list(zeros))
        if node.picks:
            picked.setdefault(key, []).append((env, n))
        counted = evaluate_scalar(node.count, env)
        assert isinstance(counted, int)
        totals[0] += n * counted
        for i, (_, term) in enumerate(node.terms, 1):
            value = evaluate_scalar(term, env)
            if not isinstance(value, int | float | Decimal):
                raise IllFormed(f"a term of a sum is {value!r}")
            totals[i] += n * int(value) if isinstance(value, bool) else n * value  # type: ignore[operator]
    if not node.keys and not out:
        out[()] = zeros
    return {key: (*totals, *_picks(node, picked.get(key, []))) for key, totals in out.items()}


def _picks(node: Sum, rows: list[tuple[dict[str, object], int]]) -> Iterator[object]:
    for _, pick in node.picks:
        function = PICKS[pick.function]
        found = [(tuple(canonical(evaluate_scalar(arg, env)) for arg in pick.scalars), n) for env, n in rows]
        yield canonical(function.evaluate(pick, found)) if found else function.empty


def _explode(node: Explode, rows: Bag) -> Bag:
    names = node.input.column_names
    width = len(node.names)
    out: Bag = Counter()
    for row, n in rows.items():
        found = evaluate_scalar(node.source, _env(names, row))
        made: list[Row] = []
        for at, element in enumerate(found if isinstance(found, tuple) else ()):
            value = element if isinstance(node.source.type, t.Map) else (element,)
            made.append((*((at,) if node.numbered else ()), *value))
        for one in made or ([(None,) * width] if node.outer else []):
            out[row + tuple(canonical(v) for v in one)] += n
    return out


def _over(node: Over, rows: Bag) -> Bag:
    names = node.input.column_names
    parts: dict[Row, list[dict[str, object]]] = {}
    for row, n in rows.items():
        if n < 0:
            raise IllFormed(f"a window over a row that is there {n} times")
        env = _env(names, row)
        parts.setdefault(_row(node.keys, env), []).extend(dict(env) for _ in range(n))
    out: Bag = Counter()
    with localcontext(prec=_EXACT):
        for part in parts.values():
            values = {name: evaluate_window(call, part, names) for name, call in node.calls}
            for position, env in enumerate(part):
                whole = {**env, **{name: found[position] for name, found in values.items()}}
                if _holds(node.having, whole):
                    out[_row(node.outputs, whole)] += 1
    return out


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
