"""The key of a view's rows: by which columns a row that has changed is known again.

It follows from the view's query and the keys of what that reads. A subscriber of a view with a key is told that a row
has become another one; without a key, only which rows have gone and which have come (Ghanem, Elmagarmid, Larson, Aref,
"Supporting Views in Data Stream Management Systems", section 6.2.2, has keys everywhere; here a bag of rows has none).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headwater.algebra.nodes import Join, Negate, Node, Over, Present, Project, Scan, Union
from headwater.algebra.scalars import TRUE, Call, Column, Literal, Scalar, conjuncts, substitute
from headwater.algebra.unique import Unique, bound, renamed


def row_key(node: Node, relations: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """The fewest columns that tell the rows of a tree apart, in their order.

    Args:
        node: the tree.
        relations: the keys of the relations that it reads, as far as these have one.

    Returns:
        Names of columns; none of them if there is one row at most. None where nothing tells rows apart, as far as is
        known.
    """
    found = _Keys(relations).sets(node)
    if not found:
        return None
    least = min(found, key=lambda one: (len(one), [name not in one for name in node.column_names]))
    return tuple(name for name in node.column_names if name in least)


def unique_by(node: Node, columns: frozenset[str], relations: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether no two rows of a tree agree in some columns, and none is there twice; arguments as of `row_key`."""
    return any(one <= columns for one in _Keys(relations).sets(node))


class _Keys(Unique):
    """Unique sets of columns that follow from the keys of relations, too."""

    def __init__(self, relations: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._relations = relations

    def find(self, node: Node) -> Iterator[frozenset[str]]:
        match node:
            case Scan(relation=relation, alias=alias) if relation in self._relations:
                yield frozenset(f"{alias}.{name}" for name in self._relations[relation])
            case Over(input=source, outputs=outputs):
                yield from renamed([*self.sets(source), *_numbered(node)], outputs)
            case Union(inputs=(Join(left=left) as pairs, Project() as alone)) if self._is_left_join(pairs, alone):
                yield from (one for one in self.sets(pairs) if one in self.sets(left))
            case _:
                yield from super().find(node)

    def _is_left_join(self, pairs: Join, alone: Project) -> bool:
        """Whether a union is a LEFT JOIN: pairs, and rows of the left side that are in none, with NULLs beside them.

        These are the rows of the left side without those that meet a value of the right side's; each meets one at most.
        """
        left, right = pairs.left, pairs.right
        match alone.input:
            case Union(inputs=(rows, Negate(input=Project(input=Join(right=Present() as values) as met) as gone))):
                keys = dict(values.sums.keys)
                shown = [(name, one.name) for name, one in values.outputs if isinstance(one, Column)]
                made_of = {name: keys[key] for name, key in shown if key in keys}
                told = bound(met.condition, left, values)
                return (
                    rows == met.left == left
                    and values.sums.input == right
                    and values.having == TRUE
                    and any(one <= told for one in self.sets(values))
                    and substitute(met.condition, made_of) == pairs.condition
                    and _keeps(gone, left)
                    and _keeps(alone, left)
                )
        return False


def _keeps(node: Project, left: Node) -> bool:
    """Whether a projection has all columns of a node, under their names."""
    columns = dict(node.columns)
    return all(columns.get(f.name) == Column(f.name, f.type) for f in left.schema)


def _numbered(node: Over) -> Iterator[frozenset[str]]:
    """What tells numbered rows apart: the partition and the number, or the partition, if only the first ones stay."""
    keys = [key.name for _, key in node.keys if isinstance(key, Column)]
    if len(keys) < len(node.keys):
        return
    for name, call in node.calls:
        if call.function == "row_number":
            first = any(_is_first(part, name) for part in conjuncts(node.having))
            yield frozenset(keys if first else (*keys, name))


def _is_first(part: Scalar, number: str) -> bool:
    """Whether a condition leaves one number: `n = 1`, `n <= 1`."""
    match part:
        case Call(function="=" | "<=", args=(Column(name=name), Literal(value=1))):
            return name == number
        case Call(function="=", args=(Literal(value=1), Column(name=name))):
            return name == number
    return False
