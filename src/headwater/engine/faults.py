"""Named points at which the fault tests kill the process.

In normal use `reach` does nothing. A test sets `hook` in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable

#: Every point, in the order in which an epoch and a consolidation pass them.
POINTS = (
    "epoch begun",
    "changes resolved",
    "relation stepped",
    "before commit",
    "after commit",
    "view filled",
    "consolidation copied",
    "consolidation swapped",
    "consolidation committed",
    "parts deleted",
)
#: Those that only a warehouse passes whose programs run in tasks: of an epoch, of moving, of putting segments together,
#: and of filling a new view.
AWAY_POINTS = (
    "tasks begin",
    "tasks done",
    "brought home",
    "rows divided",
    "sent away",
    "moved",
    "merge done",
    "merge listed",
    "slice done",
    "slices listed",
)

hook: Callable[[str], None] | None = None


def reach(point: str) -> None:
    if hook is not None:
        assert point in POINTS + AWAY_POINTS, point
        hook(point)
