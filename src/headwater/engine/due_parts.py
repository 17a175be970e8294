"""When a part of a view is due, and with which part a view begins.

A part is due when all that it reads is complete, and when it is over itself: when no stream beneath what it reads has a
watermark before its end. The second matters for what reads far back only, `m[j - 525600]`: what it reads is complete a
year before there is anything to say of the part. (Yang, Golab and Ozsu, "ViewDF: Declarative Incremental View
Maintenance for Streaming Data", section 4.1, has the first.)
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.algebra.parts import PartQuery
from headwater.engine.part_book import Book
from headwater.engine.part_runs import Neighbours
from headwater.engine.ticks import SECOND
from headwater.plan.parts import PartProgram


@dataclass(frozen=True)
class Due:
    """What is due by the catalogue and the book of parts, as they are when it is asked."""

    catalog: Neighbours
    book: Book

    def ready_until(self, program: PartProgram, query: PartQuery, parts: range) -> int:
        """The first of some parts that is not due by its query."""
        until = min(parts.stop, max(parts.start, self.over(program, query)))
        # What stands, as `m[j % 7]` does, may never be reached: it comes last.
        for one in sorted(query.references, key=lambda one: -one.last.slope):
            if one.relation != program.view:
                following = self.book.frontier(one.relation).next
                until = parts.start if following is None else one.last.first_to_reach(following, parts.start, until)
        return until

    def is_ready(self, program: PartProgram, query: PartQuery, part: int) -> bool:
        """Whether a part is due by its query."""
        return self.ready_until(program, query, range(part, part + 1)) > part

    def over(self, program: PartProgram, query: PartQuery) -> int:
        """The first part that is not over by the watermarks of all streams beneath what a query of a view reads."""
        reached = [one for _, one in self.watermarks(program, query)]
        return min((0 if one is None else one // (program.length * SECOND) for one in reached), default=0)

    def watermarks(self, program: PartProgram, query: PartQuery | None = None) -> list[tuple[str, int | None]]:
        """The streams of which a view, or a query of it, reads parts, itself or through others, with their watermarks.

        A query that reads parts of the view alone waits for those that the other one waits for.
        """
        found: dict[str, int | None] = {}
        read = {one.relation for one in query.references} - {program.view} if query is not None else set()
        for name in read or program.sources:
            source = self.catalog.find(name)
            if source is not None and source.parts is not None:
                found |= dict(self.watermarks(source.parts))
            else:
                found[name] = self.book.frontier(name).watermark
        return sorted(found.items())

    def has_lost(self, query: PartQuery, part: int) -> bool:
        """Whether a part reads parts that were deleted."""
        return any(self.book.frontier(name).has_lost(parts) for name, parts in query.read_by(part))

    def where_all_is_there(self, program: PartProgram, part: int | None) -> int | None:
        """The first part from one on with which a view can begin: what it and the next one read is not deleted.

        None if what it reads is not complete yet.
        """
        while part is not None and self.is_ready(program, program.initialize, part):
            if not self.has_lost(program.initialize, part) and not self.has_lost(program.update, part + 1):
                return part
            part = part + 1 if part <= self._last(program) else None
        return None

    def _last(self, program: PartProgram) -> int:
        """The part in which the last complete part of a source ends."""
        lasts = [0]
        for name in program.sources:
            following, source = self.book.frontier(name).next, self.catalog.find(name)
            if following is not None and source is not None and source.length is not None:
                lasts.append(following * source.length // program.length)
        return max(lasts)

    def oldest(self, program: PartProgram) -> int | None:
        """The part in which the oldest part of a source begins."""
        firsts = []
        for name in program.sources:
            first, source = self.book.frontier(name).oldest, self.catalog.find(name)
            if first is not None and source is not None and source.length is not None:
                firsts.append(first * source.length // program.length)
        return min(firsts, default=None)

    def newest(self, program: PartProgram) -> int | None:
        """The newest part for which all that INITIALIZE reads is complete; the oldest, if there is none yet."""
        oldest, part = self.oldest(program), None
        read = {one.relation for one in program.initialize.references} or program.sources
        for name in read:
            following, source = self.book.frontier(name).next, self.catalog.find(name)
            if following is None or source is None or source.length is None:
                return None
            last = following * source.length // program.length
            part = last if part is None else min(part, last)
        if oldest is None or part is None:
            return None
        while part > oldest and not self.is_ready(program, program.initialize, part):
            part -= 1
        return part
