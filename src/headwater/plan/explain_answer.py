"""What EXPLAIN says of a query's answer: which views give it, and why others do not."""

from __future__ import annotations

from headwater.plan.answer_from import Outcome


def answer_lines(found: Outcome) -> list[str]:
    """For people: the views that answer, what is left to do, and why others do not; nothing if none was tried."""
    lines = []
    for use in found.uses:
        lines.append(f"{use.view} answers: {use.after:,.0f} rows are read instead of {use.before:,.0f}")
    if found.uses:
        lines += [f"  {line}" for line in str(found.node).splitlines()]
    lines += [f"{view} does not answer: it {reason}" for view, reason in found.refused.items()]
    return lines


def answer_facts(found: Outcome) -> dict[str, object]:
    """The same as data."""
    return {
        "views": [{"view": use.view, "rows": use.after, "instead": use.before} for use in found.uses],
        "tree": str(found.node),
        "refused": found.refused,
    }
