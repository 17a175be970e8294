"""What must be there: streams by part, and views unfolded part by part over all rows seen so far.

Nothing is maintained but what has arrived. After every step all parts of all views are evaluated from the first one on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..bags import Bag, added
from ..check import nearly
from . import machine
from .case import Case, Change, Relation, Row, View
from .judges import ByPart, Judge, Question, Shape
from .subscripts import Reference, references, spelt_out

_EPOCH = datetime(1970, 1, 1)
#: Parts on either side of a reference that a judge is shown as well, and must not read.
_MARGIN = 2


class Disagreement(Exception):
    """Two judges differ."""

    def __init__(self, view: str, detail: str) -> None:
        super().__init__(detail)
        self.view = view


@dataclass
class Stream:
    """A stream so far.

    Attributes:
        rows: by part, of all that counts.
        late: rows that came too late.
        watermark: the latest time told.
        first: its oldest part.
        kept: whether its rows are stored.
    """

    relation: Relation
    rows: dict[int | None, Bag] = field(default_factory=dict)
    late: Bag = field(default_factory=Counter)
    watermark: datetime | None = None
    first: int | None = None
    kept: bool = True

    @property
    def length(self) -> int:
        assert self.relation.length is not None
        return self.relation.length

    def part_of(self, moment: datetime) -> int:
        return (moment - _EPOCH) // timedelta(seconds=self.length)

    @property
    def next(self) -> int | None:
        """The first part that is not complete."""
        return None if self.watermark is None else self.part_of(self.watermark)

    def is_too_late(self, row: Row, watermark: datetime | None) -> bool:
        moment, lateness = row[0], self.relation.lateness
        assert isinstance(moment, datetime)
        if watermark is None or lateness is None:
            return False
        end = _EPOCH + timedelta(seconds=(self.part_of(moment) + 1) * self.length)
        return end <= watermark - timedelta(seconds=lateness)

    def tell(self, moment: datetime) -> None:
        self.watermark = moment if self.watermark is None else max(moment, self.watermark)


@dataclass
class Unfolded:
    """A view so far; an ordinary one has all rows under None."""

    view: View
    queries: tuple[str, str]
    length: int
    backfill: bool = False
    first: int | None = None
    next: int | None = None
    rows: dict[int | None, Bag] = field(default_factory=dict)

    @property
    def bag(self) -> Bag:
        """All rows; those of parts with their part."""
        out: Bag = Counter()
        for part, bag in self.rows.items():
            for row, n in bag.items():
                out[row if part is None else (*row, part)] += n
        return out


class World:
    """All relations."""

    def __init__(self, case: Case, judges: Sequence[Judge], shape: Callable[[str], Shape]) -> None:
        """Begin.

        Args:
            case: whose relations there are.
            judges: are asked what queries hold; the first that knows is believed, and the others must agree.
            shape: the columns of relations.
        """
        self._judges = judges
        self._shape = shape
        self.streams = {one.name: Stream(one, kept=one.retain) for one in case.relations if one.length is not None}
        self.tables: dict[str, Bag] = {one.name: Counter() for one in case.relations if one.length is None}
        self.views: dict[str, Unfolded] = {}
        self.asked: Counter[str] = Counter()

    # -- what happens ------------------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[Change]) -> None:
        """An epoch: rows are judged by the watermarks before it."""
        before = {name: stream.watermark for name, stream in self.streams.items()}
        for change in changes:
            if change.relation in self.tables:
                signs = Counter({row: n if change.kind == "insert" else -n for row, n in Counter(change.rows).items()})
                self.tables[change.relation] = added(self.tables[change.relation], signs)
                continue
            for row in change.rows:
                self._arrive(self.streams[change.relation], row, before[change.relation])

    def _arrive(self, stream: Stream, row: Row, watermark: datetime | None) -> None:
        if stream.is_too_late(row, watermark):
            stream.late[row] += 1
            return
        moment = row[0]
        assert isinstance(moment, datetime)
        stream.tell(moment)
        part = stream.part_of(moment)
        stream.first = part if stream.first is None else min(part, stream.first)
        if stream.kept:
            stream.rows.setdefault(part, Counter())[row] += 1

    def advance(self, stream: str, moment: datetime) -> None:
        self.streams[stream].tell(moment)

    def create(self, view: View) -> None:
        """A view is made, and begins where the rules say."""
        lengths = {name: stream.length for name, stream in self.streams.items()}
        lengths |= {name: one.length for name, one in self.views.items()}
        spelt = spelt_out(view, lengths) if view.kind == "window" else view
        if view.kind == "pattern":
            read = machine.relation_of(view.query)
            spelt = View(view.name, "", f"{read}[j]", f"{read}[j]", lengths[read], backfill=True)
        for stream in self.streams.values():
            if view.has_parts and not stream.kept and view.reads(stream.relation.name):
                stream.kept, stream.first = True, None
                stream.rows.clear()
        made = Unfolded(view, (spelt.initialize, spelt.update), spelt.length, spelt.backfill)
        if view.has_parts:
            first = self._oldest(made) if spelt.backfill else self._newest(made)
            if first is not None and self._is_ready(made, spelt.initialize, first):
                made.first = first
        self.views[view.name] = made
        self._unfold(made)

    def drop(self, view: str) -> None:
        del self.views[view]
        for name, stream in self.streams.items():
            read = any(one.view.has_parts and one.view.reads(name) for one in self.views.values())
            stream.kept = stream.relation.retain or read

    def settle(self) -> None:
        """Evaluate everything anew."""
        for one in self.views.values():
            if one.view.has_parts and one.first is None:
                first = self._oldest(one)
                if first is not None and self._is_ready(one, one.queries[0], first):
                    one.first = first
            elif one.backfill and one.first is not None:  # a row for an older part may have come
                oldest = self._oldest(one)
                one.first = one.first if oldest is None else min(one.first, oldest)
            self._unfold(one)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _sources(self, one: Unfolded) -> list[Reference]:
        found = references(one.queries[0]) + references(one.queries[1])
        return [each for each in found if each.relation != one.view.name]

    def _oldest(self, one: Unfolded) -> int | None:
        """The part that contains the beginning of the oldest part of a source."""
        firsts = []
        for each in self._sources(one):
            source = self.streams.get(each.relation) or self.views[each.relation]
            if source.first is not None:
                firsts.append(source.first * source.length // one.length)
        return min(firsts, default=None)

    def _newest(self, one: Unfolded) -> int | None:
        """The newest part for which all that INITIALIZE reads is complete.

        It begins no later than the first part that is not complete of anything that INITIALIZE reads.
        """
        oldest, limits = self._oldest(one), []
        for each in references(one.queries[0]):
            source = self.streams.get(each.relation) or self.views[each.relation]
            if source.next is None:
                return None
            limits.append(source.next * source.length // one.length)
        if oldest is None:
            return None
        ready = (part for part in range(min(limits), oldest, -1) if self._is_ready(one, one.queries[0], part))
        return next(ready, oldest)

    def _streams_beneath(self, one: Unfolded, query: str | None = None) -> set[str]:
        """The streams of which a view, or a query of it, reads parts, itself or through other views."""
        found: set[str] = set()
        read = [each for each in references(query) if each.relation != one.view.name] if query is not None else []
        for each in read or self._sources(one):
            below = self.views.get(each.relation)
            found |= {each.relation} if below is None else self._streams_beneath(below)
        return found

    def _over(self, one: Unfolded, query: str) -> int:
        """The first part that is not over by the watermark of every stream beneath what a query of a view reads."""
        times = [self.streams[name].watermark for name in self._streams_beneath(one, query)]
        return min(0 if time is None else (time - _EPOCH) // timedelta(seconds=one.length) for time in times)

    def _is_ready(self, one: Unfolded, query: str, part: int) -> bool:
        return part < self._over(one, query) and self._is_complete(one, query, part)

    def _is_complete(self, one: Unfolded, query: str, part: int) -> bool:
        """Whether all parts of other relations up to the last one that a part names are complete."""
        for each in references(query):
            if each.relation == one.view.name:
                continue
            following = (self.streams.get(each.relation) or self.views[each.relation]).next
            if following is None or each.parts(part).stop > following:
                return False
        return True

    def _unfold(self, one: Unfolded) -> None:
        one.rows = {}
        if not one.view.has_parts:
            one.rows[None] = self._ask(one, one.view.query, None)
            return
        if one.first is None:
            return
        part, query = one.first, one.queries[0]
        over = {text: self._over(one, text) for text in one.queries}
        while part < over[query] and self._is_complete(one, query, part):
            if one.view.kind != "pattern":
                one.rows[part] = self._ask(one, query, part)
            part, query = part + 1, one.queries[1]
        one.next = part
        if one.view.kind == "pattern":
            source = self.rows(references(query)[0].relation)
            columns = [name for name, _ in self._shape(references(query)[0].relation).columns]
            one.rows |= machine.run(one.view.query, columns, source, range(one.first, part))

    def rows(self, relation: str) -> ByPart:
        if relation in self.tables:
            return {None: self.tables[relation]}
        return (self.streams.get(relation) or self.views[relation]).rows

    def _ask(self, one: Unfolded, query: str, part: int | None) -> Bag:
        parts: list[tuple[str, ByPart]] = []
        near: dict[str, dict[int | None, Bag]] = {}
        for each in references(query) if part is not None else []:
            named = each.parts(part) if part is not None else range(0)
            held = self.rows(each.relation)
            parts.append((each.relation, {n: held[n] for n in named if n in held}))
            about = range(named.start - _MARGIN, named.stop + _MARGIN)
            near.setdefault(each.relation, {}).update({n: held[n] for n in about if n in held})
        ordered = tuple((name, {n: held[n] for n in sorted(held, key=str)}) for name, held in near.items())
        names = [*self.tables, *self.streams, *self.views]
        others = [name for name in names if name not in near and one.view.name != name]
        whole = tuple((name, self.rows(name)) for name in others if View("", query).reads(name))
        question = Question(one.view, query, part, tuple(parts), whole, ordered)
        answers = [(judge.name, found) for judge in self._judges if (found := judge.answer(question)) is not None]
        self.asked.update(name for name, _ in answers)
        for name, answer in answers[1:]:
            if wrong := nearly(answer, answers[0][1]):
                rows = "\n".join(f"  {n:+d} {row!r}" for row, n in list(wrong.items())[:12])
                raise Disagreement(one.view.name, f"part {part}: {name} against {answers[0][0]}\n{rows}")
        return answers[0][1]
