"""Part references, as the compiler's functions: what users write as `M[j]` is a condition on the column PART."""

from __future__ import annotations

import datetime as dt

from headwater import types as t
from headwater.algebra.functions.errors import overflow
from headwater.algebra.functions.registry import define
from headwater.algebra.functions.signatures import takes
from headwater.algebra.scalars import Call


@define("bound", takes(t.INT, result=t.BIGINT), internal=True)
def bound(call: Call, place: object) -> object:
    """The first or the last part of a reference, by its place among all bounds of the references of a query."""
    raise AssertionError("a bound has a value only for a part: see headwater.algebra.parts.at_part")


@define("part_timestamp", takes(t.BIGINT, t.INT, result=t.TIMESTAMP), internal=True, raises=True)
def part_timestamp(call: Call, part: object, length: object) -> object:
    """When a part begins: its subscript times the partition length, in seconds since 1970."""
    assert isinstance(part, int) and isinstance(length, int)
    try:
        return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=part * length)
    except OverflowError:
        raise overflow("the time of a part") from None
