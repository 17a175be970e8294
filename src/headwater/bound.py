"""What a query is known by, and what is ready to answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headwater.serve.query import Prepared
from headwater.sql.as_of import AsOf


class Key(NamedTuple):
    """What a query is known by.

    Attributes:
        text: its own.
        as_of: a point in the past that was asked for from outside.
        engine: what was asked to answer it.
        views: whether views may be read in place of what it names.
    """

    text: str
    as_of: AsOf | None = None
    engine: str | None = None
    views: bool = True


@dataclass(frozen=True)
class Bound:
    """A query that can be run.

    Attributes:
        query: its SQL.
        timeless: whether it means the same at every moment.
        engine: what it asks for in a hint.
        relations: what it reads, if Spark could read it by its name, too; else None.
        looked: whether views were tried, so that the values of its constants may have decided what it reads.
    """

    query: Prepared
    timeless: bool
    engine: str | None
    relations: tuple[str, ...] | None
    looked: bool = False
