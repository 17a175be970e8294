"""No maintenance at all: evaluate the query whenever an input has changed, and take the difference.

For comparison, and for what cannot be maintained otherwise. It re-reads its inputs, so `STRICT` refuses it.
"""

from __future__ import annotations

from headwater.algebra.nodes import Node, Over, Present, Project
from headwater.plan.program import Map, Program, Recompute

NAME = "recompute"


def recompute(view: str, query: Node) -> Program:
    """Compile a view's query."""
    # Rows are compared as a whole, so a grouped query needs no payload beside them: wrap it into plain rows.
    plain = query
    if isinstance(query, Present | Over):
        plain = Project(query, tuple((f.name, query.column(f.name)) for f in query.schema))
    return Program(view, NAME, query, (Map(view, plain),), (Recompute(view),))
