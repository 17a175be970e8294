"""The first rows of a whole relation, found without looking at all of it again.

    first k of R  =  first k of (first k of each bucket of R)

for buckets of any kind. A change touches few buckets, so few rows are sorted: those of the buckets, and the first ones
of every bucket. Buckets are the remainders of a whole number that the rows have; without one there is only one bucket.
"""

from __future__ import annotations

from dataclasses import replace

from headwater import types as t
from headwater.algebra.compose import columns_of
from headwater.algebra.folds import WindowCall
from headwater.algebra.nodes import Node, Over
from headwater.algebra.scalars import Call, Column, Literal, Scalar, call, conjuncts

BUCKETS = 128
#: With more rows than this, the first ones of all buckets are many themselves.
MOST = 1_000


def by_bucket(node: Node) -> Node:
    """A node that numbers all rows and keeps the first ones, over the first ones of each bucket."""
    match node:
        case Over(keys=(), calls=((number, WindowCall(function="row_number")),)):
            wanted = [part for part in conjuncts(node.having) if _is_limit(part, number)]
            buckets = [f for f in node.input.schema if isinstance(f.type, t.Integer)]
            if wanted and buckets:
                column = Column(buckets[0].name, buckets[0].type)
                bucket = call("&", column, Literal(BUCKETS - 1, column.type))
                keys = (("#bucket", bucket),)
                return replace(node, input=Over(node.input, keys, node.calls, columns_of(node.input), wanted[0]))
    return node


def _is_limit(part: Scalar, number: str) -> bool:
    match part:
        case Call(function="<=", args=(Column(name=name), Literal(value=int(most)))):
            return name == number and most <= MOST
    return False
