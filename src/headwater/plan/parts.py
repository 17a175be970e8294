"""Programs of views of parts: what a part holds, in terms of parts of other relations and earlier ones of its own.

(Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View Maintenance for Streaming Data", section 4.1.)

Like other programs they are inert data: the engine runs them, EXPLAIN prints them, the catalogue holds them as JSON.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from headwater import types as t
from headwater.algebra.parts import PartQuery, Reference
from headwater.algebra.read import read_node
from headwater.algebra.subscripts import from_json


@dataclass(frozen=True)
class PartProgram:
    """How a view of parts is maintained.

    Attributes:
        view: its name.
        length: how many seconds a part spans.
        initialize: what the first part holds.
        update: what every later part holds.
        backfill: the first part is the oldest one that its sources have, and not the newest one that is complete.
    """

    view: str
    length: int
    initialize: PartQuery
    update: PartQuery
    backfill: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """Relations other than itself that it reads."""
        return tuple(sorted((self.initialize.query.relations | self.update.query.relations) - {self.view}))

    @property
    def sources(self) -> frozenset[str]:
        """Relations other than itself of which it reads parts."""
        references = (*self.initialize.references, *self.update.references)
        return frozenset(one.relation for one in references) - {self.view}

    @property
    def stored_reads(self) -> frozenset[str]:
        """Relations whose contents it reads: all of them."""
        return frozenset(self.inputs)

    def shown(self, subscript: int) -> str:
        """A part, for people: its subscript and when it begins."""
        began = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=subscript * self.length)
        return f"part {subscript} ({began})"

    def query_of(self, subscript: int, first: int) -> PartQuery:
        """What says what a part holds."""
        return self.initialize if subscript == first else self.update

    def to_dict(self) -> dict[str, object]:
        return {
            "view": self.view,
            "length": self.length,
            "initialize": self.initialize.to_dict(),
            "update": self.update.to_dict(),
            "backfill": self.backfill,
        }


def part_program_from_dict(data: Mapping[str, object], schemas: Mapping[str, t.Schema]) -> PartProgram:
    """A program from its catalogue form; `schemas` are those of its inputs, and its own."""

    def query(entry: object) -> PartQuery:
        assert isinstance(entry, dict)
        references = tuple(Reference(name, from_json(a), from_json(b)) for name, a, b in entry["references"])
        return PartQuery(read_node(entry["query"], schemas), references)

    length = data["length"]
    assert isinstance(length, int)
    parts = query(data["initialize"]), query(data["update"])
    return PartProgram(str(data["view"]), length, *parts, bool(data["backfill"]))
