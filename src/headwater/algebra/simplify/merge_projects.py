"""Fewer projections: what is computed is computed where it is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.algebra.nodes import Named, Node, Over, Present, Project, Sum, transform
from headwater.algebra.scalars import Column, Scalar, substitute

#: A merged node may have so many scalars and not more, unless it had them before: x + x over x + x over ... doubles.
_MOST_SCALARS = 500


def merge_projects(node: Node) -> Node:
    """Project over Project is one Project; over Present one Present; below Sum none. One that changes nothing goes."""
    return transform(node, _merge)


def _merge(node: Node) -> Node:
    match node:
        case Project(input=source, columns=columns) if _is_identity(source, columns):
            return source
        case Project(input=Project(input=source, columns=inner), columns=outer):
            merged = _through(inner, outer)
            return node if merged is None else _merge(Project(source, merged))
        case Project(input=Present() | Over() as block, columns=outer):
            # Equal rows of different keys add up in the projection as they do in the block.
            merged = _through(block.outputs, outer)
            return node if merged is None else replace(block, outputs=merged)
        case Sum(input=Project(input=source, columns=inner), keys=keys, terms=terms, picks=picks, count=count):
            args = tuple(("", arg) for _, pick in picks for arg in pick.scalars)
            merged = _through(inner, keys + terms + args + (("", count),))
            if merged is not None:
                given = iter(scalar for _, scalar in merged[len(keys) + len(terms) :])
                again = tuple((name, one.map(lambda _: next(given))) for name, one in picks)
                below = merged[: len(keys)], merged[len(keys) : len(keys) + len(terms)]
                return Sum(source, *below, again, merged[-1][1])
    return node


def _is_identity(source: Node, columns: tuple[Named, ...]) -> bool:
    return tuple(columns) == tuple((field.name, Column(field.name, field.type)) for field in source.schema)


def _through(inner: tuple[Named, ...], outer: tuple[Named, ...]) -> tuple[Named, ...] | None:
    values = dict(inner)
    merged = tuple((name, substitute(scalar, values)) for name, scalar in outer)
    before = _size(s for _, s in inner) + _size(s for _, s in outer)
    return merged if _size(s for _, s in merged) <= max(before, _MOST_SCALARS) else None


def _size(scalars: Iterable[Scalar]) -> int:
    return sum(1 for scalar in scalars for _ in scalar.walk())
