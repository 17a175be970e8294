"""AS OF: a relation, or all relations of a query, as they were after an epoch or at a moment.

Spark writes `r VERSION AS OF 3` and `r TIMESTAMP AS OF ...`, with FOR before it if one likes. `AS OF EPOCH 3` and
`AS OF TIMESTAMP '2026-01-01'` mean the same. Behind a relation's name it is about the relation; at the end of a query,
behind anything else, about all relations of the query that say nothing of their own.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.errors import HeadwaterError
from headwater.sql.bind import Binder
from headwater.sql.place import Place

_MOST_DIGITS = 18


@dataclass(frozen=True)
class AsOf:
    """A point in the past: an epoch, or the last one at a moment."""

    epoch: int | None = None
    moment: dt.datetime | None = None

    def __str__(self) -> str:
        return f"EPOCH {self.epoch}" if self.epoch is not None else f"TIMESTAMP '{self.moment}'"


def read_as_of(version: exp.Version, place: Place) -> AsOf:
    """The point that a clause names.

    Raises:
        UserError: HW341, it is none.
    """
    if str(version.args.get("kind")).upper() != "AS OF":
        raise place.unsupported("HW201", f"{place.text(version)} is not supported", version, "write AS OF")

    def no_columns(node: exp.Column) -> HeadwaterError:
        raise place.mistake("HW341", f"AS OF needs an epoch or a moment, and {node.name} is a name", node)

    found = Binder(place, no_columns, clause="AS OF").constant(version.expression)  # type: ignore[arg-type]
    value = found.value
    if version.name.upper() == "VERSION":
        if isinstance(value, str) and value.isdigit() and len(value) <= _MOST_DIGITS:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**_MOST_DIGITS:
            raise place.mistake("HW341", "this is not the number of an epoch", version, "write AS OF EPOCH 3, say")
        return AsOf(epoch=value)
    moment = _moment(value, found.type)
    if moment is None:
        hint = "write AS OF TIMESTAMP '2026-01-01 00:00:00', or seconds since 1970"
        raise place.mistake("HW341", "this is not a moment", version, hint)
    return AsOf(moment=moment)


def _moment(value: object, of: t.Type) -> dt.datetime | None:
    if isinstance(value, dt.datetime):
        return value
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    try:
        if isinstance(of, t.Integer) and isinstance(value, int):
            return dt.datetime(1970, 1, 1) + dt.timedelta(seconds=value)
        found = dt.datetime.fromisoformat(str(value).strip()) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
    if found is None or found.tzinfo is None:
        return found
    return found.astimezone(dt.UTC).replace(tzinfo=None)
