"""Windows of time: where those begin that a moment falls into.

Windows of a length begin every so often, at `start` and at whole slides before and after it; a moment is in those that
have begun and have not ended. `start` counts from 1970, in UTC, and everything in microseconds.
"""

from __future__ import annotations

import datetime as dt

from headwater import types as t
from headwater.algebra.functions.casts import from_microseconds, microseconds
from headwater.algebra.functions.registry import define
from headwater.algebra.functions.signatures import takes
from headwater.algebra.scalars import Call


def _begun(micros: int, slide: int, start: int) -> int:
    """The last moment until then at which a window begins."""
    return micros - (micros - start) % slide


@define("window_start", takes(t.TIMESTAMP, t.BIGINT, t.BIGINT, result=t.TIMESTAMP), internal=True, raises=True)
def window_start(call: Call, at: dt.datetime, slide: int, start: int) -> object:
    """When the last window begins that a moment is in."""
    return from_microseconds(_begun(microseconds(at), slide, start))


_four = takes(t.TIMESTAMP, t.BIGINT, t.BIGINT, t.BIGINT, result=t.Array(t.TIMESTAMP))


@define("window_starts", _four, internal=True, raises=True)
def window_starts(call: Call, at: dt.datetime, length: int, slide: int, start: int) -> object:
    """When the windows begin that a moment is in, in order."""
    micros = microseconds(at)
    # What began by `micros - length` is over, and the next one begins within a slide after it.
    first, last = _begun(micros - length + slide, slide, start), _begun(micros, slide, start)
    return tuple(from_microseconds(one) for one in range(first, last + 1, slide))
