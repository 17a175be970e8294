"""Rows that meet their own group, and are grouped again by no more than it was: the group is enough.

    SELECT o.custkey, SUM(l.quantity) FROM orders o, lineitem l
    WHERE l.orderkey = o.orderkey AND 100 < (SELECT SUM(m.quantity) FROM lineitem m WHERE m.orderkey = l.orderkey) ...

Every row of `lineitem` meets the group of its order, and the query asks of it only the order and a sum. So the group
keeps that sum too, and how many rows it has, and the rows are not needed. (Ahmad et al., "DBToaster", section 5.2: the
map that the outer query needs of LineItem is the one that the nested query needs.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.algebra.functions import may_raise
from headwater.algebra.joins import FlatJoin, equates, flatten, joined
from headwater.algebra.nodes import COUNT, ONE, Node, Present, Scan, Sum, transform
from headwater.algebra.scalars import Call, Column, Scalar, call, substitute


def own_groups(node: Node) -> Node:
    """sum[g; t(R)](R join[k] P(R) join X) = sum[g; P'.t](P' join X), where P(R) are groups of R by k, P' with t too."""
    return transform(node, _rewrite)


@dataclass(frozen=True)
class _Match:
    """Rows and their own groups among the leaves of a join.

    Attributes:
        rows: the leaf that reads the relation.
        groups: the leaf with its groups.
        keys: columns of `rows` that tell the groups apart, with the groups' columns for them.
        own: the conditions that are about `rows` alone.
    """

    rows: Scan
    groups: Present
    keys: dict[str, Column]
    own: tuple[Scalar, ...]


def _rewrite(node: Node) -> Node:
    if not isinstance(node, Sum) or node.picks or node.count != ONE:
        return node
    flat = flatten(node.input)
    for rows in flat.leaves:
        for groups in flat.leaves:
            found = _match(rows, groups, flat)
            after = _folded(node, flat, found) if found is not None else None
            if after is not None:
                return after
    return node


def _match(rows: Node, groups: Node, flat: FlatJoin) -> _Match | None:
    if not isinstance(rows, Scan) or not isinstance(groups, Present) or not groups.sums.keys or groups.sums.picks:
        return None
    inner = flatten(groups.sums.input)
    if (
        len(inner.leaves) != 1
        or groups.sums.count != ONE
        or inner.size != len(inner.columns) + _sizes(inner.conditions)
    ):
        return None
    [same] = inner.leaves
    if not isinstance(same, Scan) or replace(same, alias=rows.alias) != rows:
        return None
    outputs = {scalar.name: Column(name, scalar.type) for name, scalar in groups.outputs if isinstance(scalar, Column)}
    meant = {f"{same.alias}.{f.name}": Column(f"{rows.alias}.{f.name}", f.type) for f in rows.fields}
    keys: dict[str, Column] = {}
    same_values = _classes(flat.conditions)
    for name, key in groups.sums.keys:
        over = substitute(inner.through(key), meant)
        if not isinstance(over, Column) or name not in outputs:
            return None
        if not any({over, outputs[name]} <= one for one in same_values):
            return None
        keys[over.name] = outputs[name]
    known = rows.column_types.keys()
    own = tuple(part for part in flat.conditions if part.columns and part.columns <= known)
    inside = {substitute(part, meant) for part in inner.conditions}
    there = {call("is not null", Column(name, rows.column_types[name])) for name in keys}
    if set(own) - there != inside - there:
        return None
    return _Match(rows, groups, keys, own)


def _sizes(scalars: Sequence[Scalar]) -> int:
    return sum(1 for one in scalars for _ in one.walk())


def _classes(conditions: Sequence[Scalar]) -> list[set[Scalar]]:
    """Columns that are equal in every row, and not NULL."""
    classes: list[set[Scalar]] = []
    for part in conditions:
        if isinstance(part, Call) and part.function == "=" and all(isinstance(side, Column) for side in part.args):
            met = [one for one in classes if one & set(part.args)]
            classes = [one for one in classes if one not in met] + [set(part.args).union(*met)]
    return classes


def _folded(node: Sum, flat: FlatJoin, found: _Match) -> Sum | None:
    """The sum without the rows; None if it asks more of them than their groups know."""
    known = found.rows.column_types.keys()
    by_key: dict[str, Scalar] = dict(found.keys)

    def over_groups(scalar: Scalar) -> Scalar | None:
        after = substitute(scalar, by_key)
        return None if after.columns & known else after

    conditions = list(dict.fromkeys(over_groups(one) for one in flat.conditions if one not in found.own))
    keys = [(name, over_groups(flat.through(key))) for name, key in node.keys]
    terms = [(name, flat.through(term)) for name, term in node.terms]
    added: dict[str, Scalar] = {}
    out: list[tuple[str, Scalar]] = []
    prefix = f"#{found.rows.alias}"
    count = Column(f"{prefix}.n", ONE.type)
    for name, term in terms:
        after = over_groups(term)
        if after is not None and not may_raise(term):
            out.append((name, call("weigh", after, count)))
        elif term.columns <= known and not may_raise(term):
            added[f"{prefix}.{name}"] = term
            weighed = call("weigh", term, ONE)
            out.append((name, call("carry", Column(f"{prefix}.{name}", weighed.type), ONE)))
        else:
            return None
    if None in conditions or any(key is None for _, key in keys):
        return None
    leaves = [_with_totals(found, added, count.name) if one is found.groups else one for one in flat.leaves]
    asked = [one for one in conditions if one is not None and not _says_nothing(one, found)]
    source = joined([one for one in leaves if one is not found.rows], asked)
    return Sum(source, tuple((name, key) for name, key in keys if key is not None), tuple(out), (), count)


def _says_nothing(condition: Scalar, found: _Match) -> bool:
    """Whether it is `k = k`, of a group's key, which is not NULL."""
    sides = equates(condition)
    return sides is not None and sides[0] == sides[1] and sides[0] in found.keys.values()


def _with_totals(found: _Match, added: dict[str, Scalar], count: str) -> Present:
    """The groups with further totals, of the rows that have a whole key."""
    groups, sums = found.groups, found.groups.sums
    there = [call("is not null", Column(f"{found.rows.alias}.{f.name}", f.type)) for f in found.rows.fields
             if f.nullable and f"{found.rows.alias}.{f.name}" in found.keys]  # fmt: skip
    inner = flatten(sums.input)
    back = {f"{found.rows.alias}.{f.name}": f"{_alias(inner)}.{f.name}" for f in found.rows.fields}

    def inside(scalar: Scalar) -> Scalar:
        return substitute(scalar, {old: Column(new, found.rows.column_types[old]) for old, new in back.items()})

    conditions = list(dict.fromkeys((*inner.conditions, *map(inside, there))))
    keys = tuple((name, inner.through(key)) for name, key in sums.keys)
    terms = (*((n, inner.through(one)) for n, one in sums.terms), *((n, inside(one)) for n, one in added.items()))
    first = {term: name for name, term in reversed(terms)}
    again = Sum(joined(inner.leaves, conditions), keys, tuple(one for one in terms if first[one[1]] == one[0]))
    outputs = [(name, again.column(first[inside(one)])) for name, one in added.items()]
    return Present(again, (*groups.outputs, *outputs, (count, again.column(COUNT))), groups.having)


def _alias(inner: FlatJoin) -> str:
    [leaf] = inner.leaves
    assert isinstance(leaf, Scan)
    return leaf.alias
