"""An inner query's list of the outer rows' values, met by those rows themselves, says nothing new.

An inner query that reads columns of the outer one is evaluated for each value that the outer rows have (the domain),
and joined with them. Where nothing but joins, filters and projections came of it, each outer row meets exactly its own
entry of the domain: its columns take the entry's place. (Ahmad et al., "DBToaster", section 5.1, rule 4.)
"""

from __future__ import annotations

from headwater.algebra.joins import FlatJoin, equates, flatten, joined
from headwater.algebra.nodes import ONE, Join, Node, Present, Project, transform
from headwater.algebra.scalars import TRUE, Call, Column, Scalar, call, conjuncts, substitute


def own_domain(node: Node) -> Node:
    """join[k <=> d and c](A, F(distinct[d := k](A), X)) = F'(A, X), with k in place of d."""
    return transform(node, _drop)


def _drop(node: Node) -> Node:
    if not isinstance(node, Join):
        return node
    flat = flatten(node.right)
    asked = tuple(conjuncts(substitute(node.condition, flat.columns)))
    for leaf in flat.leaves:
        meant = _meant(leaf, node.left)
        if meant and all(_meets(name, key, asked) for name, key in meant.items()):
            return _without(node, flat, asked, leaf, meant)
    return node


def _meant(leaf: Node, outer: Node) -> dict[str, Scalar]:
    """What the columns of a domain are over the rows that it was made of; nothing if it is no domain of these."""
    if not isinstance(leaf, Present) or leaf.having != TRUE or leaf.sums.picks or leaf.sums.count != ONE:
        return {}
    if leaf.sums.input != outer:
        return {}
    keys = dict(leaf.sums.keys)
    columns = {name: keys.get(scalar.name) for name, scalar in leaf.outputs if isinstance(scalar, Column)}
    known = {name: key for name, key in columns.items() if key is not None}
    shown = {scalar.name for _, scalar in leaf.outputs if isinstance(scalar, Column)}
    return known if len(known) == len(leaf.outputs) and keys.keys() <= shown else {}


def _meets(name: str, key: Scalar, asked: tuple[Scalar, ...]) -> bool:
    return any(_is_entry(name, key, part) for part in asked)


def _is_entry(name: str, key: Scalar, part: Scalar) -> bool:
    """Whether a condition is `key = name`."""
    sides = equates(part)
    if sides is None:
        return False
    return any(mine == key and isinstance(other, Column) and other.name == name for mine, other in (sides, sides[::-1]))


def _without(node: Join, flat: FlatJoin, asked: tuple[Scalar, ...], leaf: Node, meant: dict[str, Scalar]) -> Node:
    conditions: list[Scalar] = []
    for part in (*flat.conditions, *asked):
        found = [key for name, key in meant.items() if _is_entry(name, key, part)]
        if not found:
            conditions.append(substitute(part, meant))
        elif isinstance(part, Call) and part.function == "=":
            conditions.append(call("is not null", found[0]))
    leaves = [node.left, *(one for one in flat.leaves if one is not leaf)]
    columns: dict[str, Scalar] = {f.name: Column(f.name, f.type) for f in node.left.schema}
    columns |= {name: substitute(scalar, meant) for name, scalar in flat.columns.items()}
    return Project(joined(leaves, conditions), tuple((name, columns[name]) for name in node.column_names))
