"""Delta rules: one case per node.

An epoch is carried out as one step per changed relation, in a fixed order. In the step of relation R only R changes:
relations whose step came before hold their new contents already, later ones still hold their old contents. So a rule
here differentiates with respect to a single relation, and the sum over the steps is the whole change:

    Q(A', B') - Q(A, B)  =  [Q(A', B) - Q(A, B)]  +  [Q(A', B') - Q(A', B)]

(Ahmad, Kennedy, Koch, Nikolic, "DBToaster", section 3.2, has the rules for simultaneous changes; the product term
dA x dB of their join rule appears here only where one relation stands on both sides.)
"""

from __future__ import annotations

from dataclasses import replace

from headwater.algebra.nodes import (
    During,
    Explode,
    Filter,
    IllFormed,
    Join,
    Negate,
    Node,
    Project,
    Repeat,
    Scan,
    Sum,
    Union,
    Values,
    Version,
    rebuild,
    transform,
)
from headwater.algebra.scalars import conjunction


def derive(node: Node, relation: str) -> tuple[Node, ...]:
    """The change of a linear tree when `relation` changes, as terms to add up; no terms means no change.

    Terms instead of one tree, because a union below a join would hide from the engine that each term is a plain join
    that starts from few rows.

    >>> from headwater import types as t
    >>> r = Scan("r", "r", (t.Field("a", t.INT),))
    >>> [str(term) for term in derive(Negate(r), "r")]
    ['negate(\\n  delta r as r)']
    """
    match node:
        # d(R) = dR;  d(S) = 0
        case Scan(relation=name):
            if node.version is not Version.STORED:
                raise IllFormed("the delta of a delta")
            return (replace(node, version=Version.DELTA),) if name == relation else ()
        # d(constant) = 0
        case Values():
            return ()
        # d(filter Q) = filter(dQ), and so for every node that treats rows one by one
        case (
            Filter(input=source)
            | Project(input=source)
            | Negate(input=source)
            | Repeat(input=source)
            | Explode(input=source)
            | Sum(input=source, picks=())
        ):
            return tuple(rebuild(node, (term,)) for term in derive(source, relation))
        # d(during Q) = filter(dQ): in the step of a relation the clock stands still (`headwater.delta.clock`)
        case During(input=source, starts=starts, ends=ends):
            condition = conjunction([starts, ends])
            return tuple(Filter(term, condition) for term in derive(source, relation))
        # d(A + B) = dA + dB
        case Union(inputs=inputs):
            return tuple(term for one in inputs for term in derive(one, relation))
        # d(A x B) = dA x B_new + A_old x dB
        case Join(left=left, right=right, condition=condition):
            right_new = after(right, relation)
            return (
                *(Join(term, right_new, condition) for term in derive(left, relation)),
                *(Join(left, term, condition) for term in derive(right, relation)),
            )
    raise IllFormed(f"{type(node).__name__} is not linear: cut the tree there")


def after(node: Node, relation: str) -> Node:
    """The tree as of the end of the relation's step."""

    def read_new(one: Node) -> Node:
        if isinstance(one, Scan) and one.relation == relation:
            return replace(one, version=Version.NEW)
        return one

    return transform(node, read_new)
