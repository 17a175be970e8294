"""What a change meets of a store: the rows that several statements need of it, looked for once.

When a relation changes, each view over it has a statement that joins the change with what is stored, and many of them
join it with the same store, by the same columns. All that these need of the store is the rows that meet the change: its
semi-join with the change. A `Meeting` says by which columns, and how a temporary table is filled with these rows; it
then stands for the store in the statements.

Rows lie in that table as they lie in the store, with multiplicity and epoch, so that whatever else a statement asks of
them is asked as before. A row that is left out equals no row of the change in columns that the statement's inner join
equates: it would have met nothing. The stores do not change while statements follow from one relation's change, so the
table holds for all of them, and for none after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.algebra.joins import equates, flatten
from headwater.algebra.nodes import Node, Scan, Sum, Version
from headwater.algebra.scalars import Call, Column, Scalar
from headwater.emit.duckdb import Emitter
from headwater.emit.layout import column, delta_table, fill, found_table, name, sql, store_table
from headwater.emit.probes import hashed

#: Scalars of a join that is looked at.
_LARGEST = 2_000
#: Fewer statements would only look for the same rows twice.
FEWEST_READERS = 2


@dataclass(frozen=True, order=True)
class Equal:
    """A stored column that equals one of the change; with `nulls`, NULL equals NULL."""

    stored: str
    changed: str
    nulls: bool = False

    def __str__(self) -> str:
        return f"{self.stored} {'<=>' if self.nulls else '='} {self.changed}"


@dataclass(frozen=True)
class Meeting:
    """The rows of a store that meet a change.

    Attributes:
        store: the relation whose store it is.
        change: the relation that changes.
        by: what is equal in rows that meet, in order.
    """

    store: str
    change: str
    by: tuple[Equal, ...]

    @property
    def view(self) -> str:
        """The name of the temporary table."""
        return f"met {self.store}: {self.change}, {', '.join(map(str, self.by))}"

    @property
    def table(self) -> str:
        return sql(found_table(self.view))

    @property
    def fill(self) -> str:
        """Makes the table."""
        stored, change = store_table(self.store), delta_table(self.change)
        stored.set("alias", exp.TableAlias(this=name(_STORED)))
        change.set("alias", exp.TableAlias(this=name(_CHANGE)))
        on = [
            (exp.NullSafeEQ if one.nulls else exp.EQ)(
                this=column(one.stored, _STORED), expression=column(one.changed, _CHANGE)
            )
            for one in self.by
        ]
        rows = exp.Select(expressions=[exp.Star()]).from_(stored, copy=False)
        return fill(found_table(self.view), rows.join(change, on=exp.and_(*on), join_type="SEMI", copy=False)).first


_STORED, _CHANGE = "stored", "change"


def meetings_of(term: Node, emitter: Emitter) -> Mapping[str, Meeting]:
    """The scans of a statement, by their aliases, that need no more than what the change meets of their stores."""
    flat = flatten(term.input if isinstance(term, Sum) else term)
    scans = [one for one in flat.leaves if isinstance(one, Scan)]
    changes = [one for one in scans if one.version is Version.DELTA]
    if len(changes) != 1 or flat.size > _LARGEST:
        return {}
    [change] = changes
    aliases = Counter(one.alias for one in term.walk() if isinstance(one, Scan))
    found: dict[str, Meeting] = {}
    for scan in scans:
        if scan is change or aliases[scan.alias] > 1:
            continue
        by = {one for condition in flat.conditions for one in _equal(condition, scan, change, emitter)}
        if by:
            found[scan.alias] = Meeting(scan.relation, change.relation, tuple(sorted(by)))
    return found


def shared_meetings(found: Sequence[Mapping[str, Meeting]]) -> list[Mapping[str, Meeting]]:
    """Of the meetings of some statements those that enough of them have."""
    readers = Counter(one for each in found for one in set(each.values()))
    return [{alias: one for alias, one in each.items() if readers[one] >= FEWEST_READERS} for each in found]


def _equal(condition: Scalar, scan: Scan, change: Scan, emitter: Emitter) -> list[Equal]:
    """What a condition equates of a scan with the change."""
    sides = equates(condition)
    if sides is None or not isinstance(condition, Call):
        return []
    mine, theirs = _names(scan, emitter), _names(change, emitter)
    return [
        Equal(mine[a.name], theirs[b.name], condition.function == "<=>")
        for a, b in (sides, sides[::-1])
        if isinstance(a, Column) and isinstance(b, Column) and a.name in mine and b.name in theirs
        if a.type == b.type and hashed(a.type)
    ]


def _names(scan: Scan, emitter: Emitter) -> dict[str, str]:
    """The columns of a scan, and under which names they are stored."""
    return {f"{scan.alias}.{f.name}": emitter.stored_name(scan.relation, f.name) for f in scan.fields}
