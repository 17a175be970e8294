"""Epochs: the changes a case makes to its relations, each allowed by the state it meets."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater import types as t

from .bags import DELETING, Bag, Bags, Refused
from .case import Epoch, Operation, Relation, Row
from .grammar import Maker, construct
from .values import NAN, draw

#: Rows in one relation; a case is about collisions, not volume. Streams only grow and need more room for ten epochs.
MOST_ROWS = {"TABLE": 12, "STREAM": 24}


@dataclass
class Changes:
    """Base relations as the epochs so far have left them, and rows that once were there."""

    maker: Maker
    bags: Bags
    gone: dict[str, list[Row]] = field(default_factory=dict)

    def row(self, relation: Relation) -> Row:
        """A fresh row; NULL in every column that may hold it, now and then."""
        rng = self.maker.rng
        return tuple(
            draw(rng, column.type, 0.2 if column.nullable else 0.0, relation.rare) for column in relation.columns
        )

    def rows(self, relation: Relation, most: int) -> list[Row]:
        """Some fresh rows, whose keys are new if the relation has a key."""
        room = self.room(relation)
        wanted = min(room, self.maker.rng.randint(1, most if room > 6 else 2))
        made: list[Row] = []
        if relation.is_keyed_stream:
            return [self.arriving(relation, self.row(relation)) for _ in range(wanted)]
        taken = {relation.key_of(row) for row in self.bags.contents[relation.name]}
        for _ in range(wanted):
            row = self.row(relation)
            if relation.key:
                if (key := relation.key_of(row)) in taken:
                    continue
                taken.add(key)
            made.append(row)
        return made

    def arriving(self, relation: Relation, row: Row) -> Row:
        """A row as it arrives: with a code, if the relation has codes; one that deletes needs little else."""
        if not relation.codes:
            return row
        rng = self.maker.rng
        code = rng.choice(["c", "u", "r", "insert", "update_postimage", "d", "d", "delete", "update_preimage"])
        if code in DELETING and rng.random() < 0.5:
            needed = {*relation.key, relation.sequence}
            held = zip(relation.columns, row, strict=True)
            row = tuple(value if c.name in needed or not c.nullable else None for c, value in held)
        return (*row, code)

    def room(self, relation: Relation) -> int:
        return MOST_ROWS[relation.kind] - self.bags.contents[relation.name].total()

    def held(self, relation: Relation) -> list[Row]:
        """Rows that are there, one entry for each copy, in an order that depends on nothing but the case."""
        return list(self.bags.contents[relation.name].elements())

    def note_gone(self, name: str, before: Bag) -> None:
        self.gone.setdefault(name, []).extend((before - self.bags.contents[name]).elements())


def _only_grows(relation: Relation) -> bool:
    return relation.kind == "STREAM" and not relation.key


def _is_bag(relation: Relation) -> bool:
    return relation.kind == "TABLE" and not relation.key


def _sample(changes: Changes, rows: list[Row], most: int) -> tuple[Row, ...]:
    rng = changes.maker.rng
    return tuple(rng.sample(rows, min(len(rows), rng.randint(1, most))))


# Operations of the row API


@construct("operation", "insert", 10)
def insert(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    rows = changes.rows(relation, 5)
    return Operation("insert", relation.name, tuple(rows)) if rows else None


@construct("operation", "insert copies", 2.5)
def insert_copies(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    held = changes.held(relation)
    if relation.key or not held or changes.room(relation) < 2:
        return None
    return Operation("insert", relation.name, (m.rng.choice(held),) * m.rng.choice([1, 2]))


@construct("operation", "refill", 3)
def refill(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    gone = changes.gone.get(relation.name, [])
    held = changes.held(relation)
    if not gone or changes.room(relation) < 3:
        return None
    if not relation.key:
        return Operation("insert", relation.name, _sample(changes, gone, 3))
    if relation.is_keyed_stream:  # with an old sequence, if it has one
        return Operation(
            "insert", relation.name, tuple(changes.arriving(relation, r) for r in _sample(changes, gone, 3))
        )
    taken = {relation.key_of(row) for row in held}
    fresh = {relation.key_of(row): row for row in gone if relation.key_of(row) not in taken}
    return Operation("insert", relation.name, tuple(fresh.values())) if fresh else None


@construct("operation", "delete", 6)
def delete(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    held = changes.held(relation)
    if _only_grows(relation) or not relation.keeps_all or not held:
        return None
    return Operation("delete", relation.name, _sample(changes, held, 3))


@construct("operation", "delete one of two copies", 3)
def delete_one_copy(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    twice = [row for row, n in changes.bags.contents[relation.name].items() if n > 1]
    if not _is_bag(relation) or not twice:
        return None
    return Operation("delete", relation.name, (m.rng.choice(twice),))


@construct("operation", "delete a group", 3)
def delete_group(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    held = changes.held(relation)
    if _only_grows(relation) or not relation.keeps_all or not held:
        return None
    at = m.rng.randrange(len(relation.columns))
    value = m.rng.choice(held)[at]
    return Operation("delete", relation.name, tuple(row for row in held if row[at] is value or row[at] == value))


@construct("operation", "delete all", 0.8)
def delete_all(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    held = changes.held(relation)
    if _only_grows(relation) or not relation.keeps_all or not held:
        return None
    return Operation("delete", relation.name, tuple(held))


@construct("operation", "upsert", 5)
def upsert(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    if not relation.key:
        return None
    if relation.is_keyed_stream:
        rows = changes.rows(relation, 4)
        return Operation("upsert", relation.name, tuple(rows)) if rows else None
    made = {relation.key_of(row): row for row in (changes.row(relation) for _ in range(m.rng.randint(1, 4)))}
    held = changes.held(relation)
    if held and m.chance(0.3):
        m.note("upsert of an unchanged row")
        row = m.rng.choice(held)
        made[relation.key_of(row)] = row
    return Operation("upsert", relation.name, tuple(made.values()))


@construct("operation", "delete by key", 3)
def delete_keys(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    held = changes.held(relation)
    if relation.is_keyed_stream:  # keys that are not there are ignored
        held = [*held, changes.row(relation)]
    if not relation.key or not held:
        return None
    return Operation("delete_keys", relation.name, tuple(relation.key_of(row) for row in _sample(changes, held, 2)))


@construct("operation", "empty batch", 0.8)
def empty_batch(m: Maker, changes: Changes, relation: Relation) -> Operation:
    return Operation("insert", relation.name)


# Statements, an epoch each


@construct("statement", "SQL insert", 2)
def sql_insert(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    if any(map(t.is_nested, relation.types)):  # there is no literal for them
        return None
    rows = changes.rows(relation, 3)
    return Operation("insert_values", relation.name, tuple(rows)) if rows else None


def _condition(m: Maker, changes: Changes, relation: Relation) -> tuple[tuple[str, object], ...] | None:
    """Column and value of a row that is there; nested columns and NaN are left to the row API."""
    held = changes.held(relation)
    if not held:
        return None
    row = m.rng.choice(held)
    usable = [(n, v) for n, v in zip(relation.names, row, strict=True) if not isinstance(v, tuple) and v is not NAN]
    return (m.rng.choice(usable),) if usable else None


@construct("statement", "SQL delete", 2)
def sql_delete(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    if _only_grows(relation):
        return None
    where = _condition(m, changes, relation)
    return Operation("delete_where", relation.name, where=where) if where else None


@construct("statement", "SQL delete of everything", 0.3)
def sql_delete_all(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    return None if _only_grows(relation) else Operation("delete_where", relation.name)


@construct("statement", "SQL update", 5)
def sql_update(m: Maker, changes: Changes, relation: Relation) -> Operation | None:
    free = [c for c in relation.columns if c.name not in relation.key and not t.is_nested(c.type)]
    if _only_grows(relation) or not relation.keeps_all or not free:
        return None
    where = () if m.chance(0.1) else _condition(m, changes, relation)
    if where is None:
        return None
    column = m.rng.choice(free)
    value = draw(m.rng, column.type, 0.2 if column.nullable else 0.0)
    return Operation("update", relation.name, assign=((column.name, value),), where=where)


# Epochs


@construct("epoch", "epoch of row operations", 10)
def row_epoch(m: Maker, changes: Changes) -> Epoch | None:
    operations: list[Operation] = []
    for _ in range(m.rng.choice([1, 1, 2, 2, 3, 4])):
        relation = m.rng.choice(list(m.bases.values()))
        operations.append(_carried_out(changes, m.make("operation", changes, relation)))
    return tuple(operations)


@construct("epoch", "epoch that replaces rows", 2)
def replacing_epoch(m: Maker, changes: Changes) -> Epoch | None:
    bags = [relation for relation in m.bases.values() if _is_bag(relation) and changes.held(relation)]
    if not bags:
        return None
    relation = m.rng.choice(bags)
    old = _sample(changes, changes.held(relation), 2)
    at = m.rng.randrange(len(relation.columns))
    column = relation.columns[at]
    new = tuple(
        (*row[:at], draw(m.rng, column.type, 0.2 if column.nullable else 0.0, relation.rare), *row[at + 1 :])
        for row in old
    )
    parts = [Operation("delete", relation.name, old), Operation("insert", relation.name, new)]
    return tuple(_carried_out(changes, part) for part in parts)


@construct("epoch", "epoch that cancels itself", 0.7)
def cancelling_epoch(m: Maker, changes: Changes) -> Epoch | None:
    bags = [relation for relation in m.bases.values() if _is_bag(relation)]
    if not bags:
        return None
    relation = m.rng.choice(bags)
    row = changes.row(relation)
    parts = [Operation("insert", relation.name, (row,)), Operation("delete", relation.name, (row,))]
    return tuple(_carried_out(changes, part) for part in parts)


@construct("epoch", "epoch of one statement", 4)
def statement_epoch(m: Maker, changes: Changes) -> Epoch | None:
    relation = m.rng.choice(list(m.bases.values()))
    try:
        return (_carried_out(changes, m.make("statement", changes, relation)),)
    except LookupError:
        return None


@construct("epoch", "epoch without operations", 0.4)
def idle_epoch(m: Maker, changes: Changes) -> Epoch | None:
    return ()


def _carried_out(changes: Changes, operation: Operation) -> Operation:
    before = changes.bags.contents[operation.relation].copy()
    try:
        changes.bags.carry_out(operation)
    except Refused as error:
        raise AssertionError(f"the generator made an operation its own state refuses: {operation}") from error
    changes.note_gone(operation.relation, before)
    return operation
