"""What operations do to base relations, said plainly over bags of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from .case import ARRIVING, Case, Epoch, Operation, Relation, Row

Bag = Counter[Row]


class Refused(Exception):
    """An operation that the relation's state does not allow: a row deleted that is not there, a key inserted twice."""


@dataclass
class Bags:
    """The contents of all base relations, epoch after epoch.

    `gone` has, of the keys of a keyed stream that are not there, the sequence of the row that took them away.
    """

    relations: dict[str, Relation]
    contents: dict[str, Bag] = field(init=False)
    gone: dict[str, dict[Row, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.contents = {name: Counter() for name in self.relations}
        self.gone = {name: {} for name in self.relations}

    @classmethod
    def of(cls, case: Case) -> Bags:
        return cls({relation.name: relation for relation in case.relations})

    def apply(self, epoch: Epoch) -> dict[str, Bag]:
        """Carry out an epoch; the net change of every relation it touches."""
        changing = [operation for operation in epoch if operation.kind != "refresh"]
        before = {operation.relation: self.contents[operation.relation].copy() for operation in changing}
        for operation in changing:
            self.carry_out(operation)
        return {name: difference(self.contents[name], old) for name, old in before.items()}

    def carry_out(self, operation: Operation) -> None:
        relation = self.relations[operation.relation]
        bag = self.contents[operation.relation]
        if relation.is_keyed_stream and operation.kind in ARRIVING:
            self._arrive(operation.rows, relation)
            return
        removed, added = effect(operation, relation, bag)
        if relation.sequence and operation.kind != "update":
            at = relation.index(relation.sequence)
            self.gone[relation.name] |= {relation.key_of(row): row[at] for row in removed}  # type: ignore[misc]
        for row in removed:
            if bag[row] < 1:
                raise Refused(f"{row} is not in {relation.name}")
            bag[row] -= 1
            if not bag[row]:
                del bag[row]
        keys = {relation.key_of(row) for row in bag} if relation.key else set()
        for row in added:
            if relation.key:
                if (key := relation.key_of(row)) in keys:
                    raise Refused(f"{key} is already in {relation.name}")
                keys.add(key)
            bag[row] += 1

    def _arrive(self, rows: tuple[Row, ...], relation: Relation) -> None:
        """One row after the other, older versions first: each replaces the last of its key, unless that is newer."""
        bag, gone = self.contents[relation.name], self.gone[relation.name]
        at = relation.index(relation.sequence) if relation.sequence else None
        if at is not None:
            rows = tuple(sorted(rows, key=lambda row: row[at]))  # type: ignore[arg-type,return-value]
        for arriving in rows:
            code = arriving[-1] if relation.codes else "c"
            row = arriving[: len(relation.columns)]
            key = relation.key_of(row)
            if code in IGNORED:
                continue
            there = next((one for one in bag if relation.key_of(one) == key), None)
            if at is not None:
                newest = there[at] if there is not None else gone.get(key)
                if newest is not None and row[at] < newest:  # type: ignore[operator]
                    continue
                gone.pop(key, None)
            if there is not None:
                del bag[there]
            if code not in DELETING:
                bag[row] += 1
            elif at is not None:
                gone[key] = row[at]  # type: ignore[assignment]


#: Codes of rows that change nothing, and of those that take their key away; by other rows it comes.
IGNORED, DELETING = ("update_preimage",), ("d", "delete")


def effect(operation: Operation, relation: Relation, bag: Bag) -> tuple[list[Row], list[Row]]:
    """Rows an operation takes out, and rows it puts in."""
    match operation.kind:
        case "insert" | "insert_values":
            return [], list(operation.rows)
        case "delete":
            return list(operation.rows), []
        case "upsert":
            keys = {relation.key_of(row) for row in operation.rows}
            return [row for row in bag if relation.key_of(row) in keys], list(operation.rows)
        case "delete_keys":
            return [row for row in bag if relation.key_of(row) in operation.rows], []
        case "delete_where":
            return [row for row in bag.elements() if _matches(row, operation, relation)], []
        case "update":
            old = [row for row in bag.elements() if _matches(row, operation, relation)]
            assigned = dict(operation.assign)
            return old, [
                tuple(assigned.get(name, value) for name, value in zip(relation.names, row, strict=True)) for row in old
            ]
    raise ValueError(f"no operation {operation.kind!r}")


def _matches(row: Row, operation: Operation, relation: Relation) -> bool:
    # By identity first: NaN equals NaN in SQL.
    return all((held := row[relation.index(name)]) is value or held == value for name, value in operation.where)


def difference(new: Bag, old: Bag) -> Bag:
    """Signed multiplicities that lead from old to new, zeros left out."""
    out: Bag = Counter()
    for row in new.keys() | old.keys():
        if change := new[row] - old[row]:
            out[row] = change
    return out


def added(bag: Bag, change: Bag) -> Bag:
    """The bag after a change, zeros left out."""
    out = bag.copy()
    for row, n in change.items():
        out[row] += n
        if not out[row]:
            del out[row]
    return out


def repaired(case: Case) -> Case:
    """The case without the rows its own state refuses, as they arise when a shrinker removes others."""
    bags = Bags.of(case)
    epochs: list[Epoch] = []
    for epoch in case.epochs:
        kept: list[Operation] = []
        for operation in epoch:
            fitting = _fitting(operation, bags)
            bags.carry_out(fitting)
            if fitting.rows or not operation.rows:
                kept.append(fitting)
        epochs.append(tuple(kept))
    return replace(case, epochs=tuple(epochs))


def _fitting(operation: Operation, bags: Bags) -> Operation:
    relation, bag = bags.relations[operation.relation], bags.contents[operation.relation].copy()
    rows: list[Row] = []
    if relation.is_keyed_stream and operation.kind != "delete":
        return operation
    match operation.kind:
        case "delete":
            for row in operation.rows:
                if bag[row] > 0:
                    bag[row] -= 1
                    rows.append(row)
        case "insert" | "insert_values" | "upsert" if relation.key:
            taken = set() if operation.kind == "upsert" else {relation.key_of(row) for row in bag}
            for row in operation.rows:
                if (key := relation.key_of(row)) not in taken:
                    taken.add(key)
                    rows.append(row)
        case "delete_keys":
            there = {relation.key_of(row) for row in bag}
            rows = [key for key in operation.rows if key in there]
        case _:
            return operation
    return replace(operation, rows=tuple(rows))
