"""Views of parts in a room: each partition builds its share of every part, by the statements that are run at home.

What is known of parts at home (`headwater.engine.part_book`) is known here of the rows of the partition: how many each
part has, and whether they are stored once each. So which parts are empty, which are as the one before, and where a wave
of late rows ends is decided in each partition for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import duckdb

from headwater.algebra.parts import PART
from headwater.emit.layout import MULTIPLICITY, Grouped, sql, store_table
from headwater.engine.dating import Coming
from headwater.engine.failures import ViewFailed, is_value_error, translate
from headwater.engine.part_book import Book, Change
from headwater.engine.part_orders import PartOrder, PartStep
from headwater.engine.parts import PartRound
from headwater.engine.segment_files import above
from headwater.engine.workers import Cached
from headwater.store.catalog import Relation


@dataclass(frozen=True)
class _Rows:
    """How many rows the temporary tables of a room have."""

    of: Callable[[str], int]

    def rows(self, table: str) -> int:
        return self.of(table)


@dataclass(frozen=True)
class _Known:
    """What the steps of a room know of relations."""

    relations: Mapping[str, Relation]
    grouped: Mapping[str, Grouped]

    def find(self, name: str) -> Relation | None:
        return self.relations.get(name)


class RoomParts:
    """The parts of a room in an epoch."""

    def __init__(
        self,
        cached: Cached,
        steps: Iterable[PartStep],
        order: PartOrder,
        epoch: int,
        rows: Callable[[str], int],
    ) -> None:
        """Look at what is committed of them.

        Args:
            cached: the room, with the stores as they were before the epoch.
            steps: what builds parts here.
            order: of the epoch.
            epoch: its number.
            rows: how many rows a temporary table of the room has.
        """
        steps = [one for one in steps if one.view.name in order.views]
        self._cached, self._connection, self._order = cached, cached.connection, order
        self._built = {one.view.name for one in steps}
        self._parted = {name for one in steps for name in one.parted}
        known = _Known(
            {name: each for one in steps for name, each in one.relations.items()},
            {name: each for one in steps for name, each in one.grouped.items()},
        )
        book = Book(dict(order.frontiers))
        for name in self._parted:
            found = cached.parts.pop(name, None)
            if found is not None and found[0] == cached.stores[name].version:
                _, book.rows[name], book.multiple[name] = found
            else:
                book.apply(self._changes(name, sql(store_table(name)), above(order.floor(name))))
        means = self._connection, known, _Rows(rows), book, epoch, self._append, Coming(lenient=order.lenient)
        self._round = PartRound(*means)

    def _changes(self, relation: str, table: str, where: str = "") -> list[Change]:
        """What a table has of each part."""
        query = (
            f'SELECT "{PART}", sum("{MULTIPLICITY}")::BIGINT, bool_and("{MULTIPLICITY}" = 1) FROM {table}{where} '
            f'GROUP BY "{PART}" ORDER BY "{PART}"'
        )
        return [Change(relation, *found) for found in self._connection.execute(query).fetchall()]

    def came(self, relation: str, table: str) -> None:
        """Take note of a change that has come to the room."""
        if relation in self._parted - self._built:
            self._round.came(self._changes(relation, table))

    def build(self, step: PartStep) -> None:
        """Build what is due of a view, into its store."""
        found = self._order.views.get(step.view.name)
        if found is not None:
            before, after = found
            self._round.book.frontiers[step.view.name] = before
            self._round.carry_out(step.view, step.statements, before, after)

    def built(self) -> list[Change]:
        """What has happened to the parts of views that are built here."""
        return [one for one in self._round.changes if one.relation in self._built]

    def remember(self) -> None:
        """Let the next epoch know what it finds, as long as nobody changes the tables."""
        book = self._round.book
        for name in self._parted:
            found = book.rows.get(name, {}), book.multiple.get(name, set())
            self._cached.parts[name] = self._cached.stores[name].version, *found

    def _append(self, store: str, statement: str, values: Mapping[str, object], view: str) -> int:
        try:
            found = self._connection.execute(statement, dict(values)).fetchone()
        except duckdb.Error as error:
            if not is_value_error(error):
                raise
            told = translate(error)
            raise ViewFailed(view, told.code, told.message) from error
        return int(found[0]) if found else 0
