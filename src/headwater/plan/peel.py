"""Expressions over synchronised relations, taken apart: what they are made of, and when all of it is up to date.

A query that reads `S1@p` and `S2@q` equals, whenever both p and q tick, the same query over S1 and S2 themselves
(Ghanem, Elmagarmid, Larson, Aref, "Supporting Views in Data Stream Management Systems", section 7.1: the peeled form;
theorems 2 and 3 pull the synchronisation out of operators). So a query is contained in a view if its data is and every
point of its own is one of the view's (section 7.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from headwater.algebra.nodes import Node, Scan
from headwater.algebra.renaming import reread

P = TypeVar("P")


@dataclass(frozen=True)
class Peeled(Generic[P]):
    """A query in peeled form.

    Attributes:
        data: the query over the relations themselves.
        points: the policies of what it reads. It is up to date in epochs in which all of them tick, which is always
            where there are none.
        mixed: some of what it reads is synchronised, and some is not: at other points it is neither here nor there.
    """

    data: Node
    points: frozenset[P]
    mixed: bool = False


def peel(node: Node, synchronised: Mapping[str, tuple[str, P]], still: frozenset[str] = frozenset()) -> Peeled[P]:
    """The peeled form of a query.

    Args:
        node: its tree.
        synchronised: of each synchronised relation what it stands for, and its policy.
        still: relations that never change, which are synchronised with everything.
    """
    read = node.relations
    policies = frozenset(synchronised[name][1] for name in read if name in synchronised)
    fresh = [name for name in read if name not in synchronised and name not in still]

    def finest(scan: Scan) -> Scan:
        found = synchronised.get(scan.relation)
        return scan if found is None else replace(scan, relation=found[0])

    return Peeled(reread(node, finest), policies, len(policies) > 1 or bool(policies and fresh))
