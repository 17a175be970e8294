"""Which parts can still change, and which nobody can need any more.

A part of a stream is closed when no row can come to it. A part of a view is closed when it is built and nothing that
it reads can change, so this goes through views of parts step by step. What a view of parts may read again is what its
parts read that are not closed, or still to be built: a sliding window of ten parts needs ten parts of its helper, a
pattern the last one, and both as many more as rows may come late. (Yang, Golab and Ozsu, "ViewDF", sections 4.1, 4.3
and 5.1.)

Tables that are read whole may change at any time, and do not count: parts that would need what was deleted are final.
"""

from __future__ import annotations

from headwater.engine.part_book import Book, Frontier
from headwater.engine.ticks import SECOND
from headwater.plan.parts import PartProgram
from headwater.store.catalog import RETAIN_ALL, Catalog, Relation


def takes_rows_for(stream: Relation) -> int | None:
    """For how many microseconds after its end a part of a stream takes rows; None for ever."""
    if stream.lateness is not None or stream.length is None:
        return stream.lateness
    return stream.retain if isinstance(stream.retain, int) else None


def rolled_up_before(relation: Relation, frontier: Frontier) -> int:
    """The first part that is not to be rolled up yet: larger parts are, as soon as all of them is old enough."""
    if relation.roll_up is None or relation.length is None or frontier.next is None:
        return 0
    after, into = relation.roll_up
    old = frontier.next * relation.length * SECOND - after
    return max(0, old // (into * SECOND)) * (into // relation.length)


class Limits:
    """What is known at one moment. A limit is a part: what is said holds for those before it; 0 stands for none."""

    def __init__(self, catalog: Catalog, book: Book) -> None:
        self._catalog = catalog
        self._book = book
        self._closed: dict[str, int] = {}

    def closed(self, relation: Relation) -> int:
        """The first part that can still change or come; those before it are closed."""
        if relation.name not in self._closed:
            found = self._closed_of_view(relation) if relation.parts is not None else self._closed_of_stream(relation)
            self._closed[relation.name] = found
        return self._closed[relation.name]

    def deletable(self, relation: Relation) -> int:
        """The first part that must be kept; those before it may be deleted."""
        frontier = self._book.frontier(relation.name)
        if relation.length is None or frontier.next is None or relation.retain == RETAIN_ALL:
            return 0
        others = [one for one in self._catalog.dependents(relation.name) if one.parts is None]
        if relation.parts is None:
            others = [one for one in others if one.program and relation.name in one.program.stored_reads]
        elif relation.helper is None and relation.retain is None:
            return 0
        if others:
            return 0
        limit = self.closed(relation)
        if isinstance(relation.retain, int):
            length = relation.length * SECOND
            newest = frontier.next * length if relation.parts is not None else frontier.watermark or 0
            limit = min(limit, (newest - relation.retain) // length)
        readers = [one for one in self._catalog if one.parts is not None]
        return max(0, min([limit, *(self.needed(one, relation.name) for one in readers)]))

    def needed(self, view: Relation, relation: str) -> int:
        """The oldest part of a relation that a view may read again; the first that is to come, if it reads none."""
        program, first = view.parts, self._book.frontier(view.name).first
        assert program is not None
        if relation != view.name and relation not in program.inputs:
            return self._present(relation)
        if relation in program.initialize.whole | program.update.whole or first is None or view.suspended:
            return 0
        begin = self.closed(view)
        needed = [self._present(relation)]
        for one in program.update.references:
            if one.relation == relation:
                least = one.first.least_from(max(begin, first + 1))
                needed.append(0 if least is None else least)
        if begin <= first:
            needed += [one.first.at(first) for one in program.initialize.references if one.relation == relation]
        return min(needed)

    def _present(self, relation: str) -> int:
        return self._book.frontier(relation).next or 0

    def _closed_of_stream(self, stream: Relation) -> int:
        watermark, takes = self._book.frontier(stream.name).watermark, takes_rows_for(stream)
        if watermark is None or takes is None or stream.length is None:
            return 0
        return max(0, (watermark - takes) // (stream.length * SECOND))

    def _closed_of_view(self, view: Relation) -> int:
        frontier = self._book.frontier(view.name)
        if frontier.first is None or frontier.next is None or frontier.oldest is None or view.suspended:
            return 0  # what is suspended has perhaps not seen changes that came meanwhile
        assert view.parts is not None
        return self._first_open(view.parts, frontier.first, frontier.oldest, frontier.next)

    def _first_open(self, program: PartProgram, first: int, oldest: int, following: int) -> int:
        """The first part of a view that is not built, or that reads something that can still change.

        Later parts that read this one can change, too, but they are later.
        """
        found = following
        for query, begin, end in (
            (program.initialize, oldest, min(first + 1, following)),
            (program.update, max(oldest, first + 1), following),
        ):
            for one in query.references:
                if one.relation != program.view:
                    source = self._catalog.find(one.relation)
                    assert source is not None
                    reached = one.last.first_to_reach(self.closed(source), begin, end)
                    found = min(found, reached) if reached < end else found
        return found
