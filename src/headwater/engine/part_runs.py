"""Parts that hold the same rows as the part before them, so that one need not evaluate them to know what they hold.

A part is a function of the rows that it reads, unless its query looks at PART. So where all that a part reads is as it
was for the part before, the part is as the one before: in a night without data the state of a pattern, a running sum
that has come to rest, the row of an empty window. Such a stretch of parts is found from the catalogue of parts where
they are empty, from copies that were made in the same epoch, and else by comparing neighbours, row by row.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import duckdb

from headwater.algebra.parts import Reference
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import Grouped
from headwater.emit.part_runs import differing
from headwater.engine.part_book import Book
from headwater.plan.parts import PartProgram
from headwater.store.catalog import Relation

#: So few parts are looked at one by one.
_NEAR = 64


class Neighbours(Protocol):
    """What is to be known of relations by who builds parts: the catalogue, or that part of it which tasks are sent."""

    @property
    def grouped(self) -> Mapping[str, Grouped]: ...

    def find(self, name: str) -> Relation | None: ...


@dataclass
class Alike:
    """Which neighbouring parts are known to hold the same rows, in the epoch under way.

    Parts of a relation are asked for when they are what they will be at the end of the epoch.
    """

    connection: duckdb.DuckDBPyConnection
    catalog: Neighbours
    book: Book
    #: Runs of equal parts, first and last, by relation, in order.
    _runs: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    #: Parts that differ from the one before.
    _other: dict[str, set[int]] = field(default_factory=dict)
    _held: dict[str, list[int]] = field(default_factory=dict)

    def note(self, relation: str, first: int, last: int) -> None:
        """Parts from one to another hold the same rows."""
        if first < last:
            insort(self._runs.setdefault(relation, []), (first, last))

    def changed(self, relation: str) -> None:
        """Parts of a relation have other rows now."""
        self._held.pop(relation, None)

    def first_other(self, relation: str, part: int, end: int) -> int:
        """The first part after one, and before `end`, that may hold other rows than the one before it; else `end`."""
        while part + 1 < end:
            known = self._known(relation, part)
            if known == part:
                if part + 1 in self._other.get(relation, ()):
                    return part + 1
                known = self._find(relation, part, end)
            if known == part:
                return part + 1
            part = known
        return end

    def first_with_rows(self, relation: str, part: int, end: int) -> int:
        """The first part from one on, and before `end`, that has rows; else `end`."""
        held = self.book.rows.get(relation, {})
        if end - part <= _NEAR:
            return next((one for one in range(part, end) if one in held), end)
        if relation not in self._held:
            self._held[relation] = sorted(held)
        place = bisect_right(self._held[relation], part - 1)
        return min(end, self._held[relation][place]) if place < len(held) else end

    def _known(self, relation: str, part: int) -> int:
        """The last part of the run that a part is in; itself, if it is in none."""
        runs = self._runs.get(relation, [])
        place = bisect_right(runs, (part, part)) - 1
        found = [one[1] for one in runs[max(0, place) : place + 2] if one[0] <= part <= one[1]]
        return max([part, *found])

    def _find(self, relation: str, part: int, end: int) -> int:
        """The last part of the run that a part is in, by what is stored."""
        held = self.book.rows.get(relation, {})
        if part not in held:
            return self.first_with_rows(relation, part, end) - 1
        last, found = part, self.catalog.find(relation)
        while last + 1 < end and held.get(last + 1) == held[part]:
            last += 1
        if last == part or found is None or found.parts is None:  # rows of a stream have their times
            return part
        query = differing(relation, found.fields, Emitter(self.catalog.grouped))
        given = {"first": part + 1, "last": last}
        others = sorted(one for (one,) in self.connection.execute(query, given).fetchall())
        self._other.setdefault(relation, set()).update(others)
        for begin, stop in zip([part, *others], [*others, last + 1], strict=True):
            self.note(relation, begin, stop - 1)
        return self._known(relation, part)


class Stretches:
    """Finds how far the parts of one view, from one on, hold what the part before them holds."""

    def __init__(self, alike: Alike, program: PartProgram) -> None:
        self._alike = alike
        self._program = program
        self._query = program.update
        own = [one for one in program.update.references if one.relation == program.view]
        self._own = own
        self._others = [one for one in program.update.references if one.relation != program.view]
        self._can = program.update.is_blind and all(one.first.keeps_distance(one.last) for one in own)
        #: For how many parts nothing is tried, after the view was found to be different from part to part; and for how
        #: many the next time.
        self._pause, self._patience = 0, 1

    def until(self, part: int, end: int, least: int) -> int:
        """The first part from one on that may hold something else than the part before `part`.

        Args:
            part: it and the one before are both made by UPDATE.
            end: no part from this one on is asked for.
            least: fewer parts are not worth it: the answer is `part` then.
        """
        if not self._can or end - part < least or self._is_gone(self._program.view, part - 1):
            return part
        if self._pause:
            self._pause -= 1
            return part
        for one in self._others:
            end = min(end, self._limit(one, part, end))
            if end - part < least:
                self._patience = 1
                return part
        for one in self._own:
            begin = one.first.at(part - 1)
            if self._is_gone(one.relation, begin) or self._alike.first_other(one.relation, begin, part) < part:
                self._pause, self._patience = self._patience, 2 * self._patience
                return part
        return end

    def _limit(self, reference: Reference, part: int, end: int) -> int:
        """The first part from one on for which a reference may read other rows than for the part before it."""
        least = reference.first.least_from(part - 1)
        if least is None or self._is_gone(reference.relation, least):
            return part
        beyond = max(reference.last.at(one) for one in (part, end)) + 1
        if reference.first.keeps_distance(reference.last):
            other = self._alike.first_other(reference.relation, least, beyond)
        else:
            other = self._alike.first_with_rows(reference.relation, least, beyond)
        return max(part, reference.last.first_to_reach(other, part - 1, end))

    def _is_gone(self, relation: str, part: int) -> bool:
        """Whether a part may have been deleted: then nobody knows what it held."""
        kept = self._alike.book.frontier(relation).kept
        return kept is not None and part < kept
