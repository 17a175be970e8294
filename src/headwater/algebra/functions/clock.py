"""The clock, as the compiler's functions: what users write (`now()`, `current_date()`, `Now`) is made of these."""

from __future__ import annotations

from headwater import types as t
from headwater.algebra.functions.registry import define
from headwater.algebra.functions.signatures import takes
from headwater.algebra.scalars import Call


@define("now", takes(result=t.TIMESTAMP), internal=True)
def now(call: Call) -> object:
    """The clock of the epoch under way."""
    raise AssertionError("now() has a value only at a moment: see headwater.algebra.during.at")


@define("before", takes(result=t.TIMESTAMP), internal=True)
def before(call: Call) -> object:
    """The clock of the epoch before."""
    raise AssertionError("before() has a value only at a moment: see headwater.algebra.during.at")
