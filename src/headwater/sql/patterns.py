"""A PATTERN query as two views of parts: Algorithms 2 and 3 of Yang, Golab and Ozsu, "ViewDF", section 5.1.2.

The helper view has, for each part, one row for each group that is in the middle or at the end of a match, with the
state that its machine is in and what is kept of the match. The view itself selects from it what is in the accepting
state.

Where we deviate:

* A group without a row in a part stays as it is; the paper's LEFT JOIN would lose it, and with it the match.
* A part may have several rows of a group. Then the machine runs through them in the order of time, and a match that was
  complete after one of them and is broken by a later one is a row of its own, which is not `open`: whoever looks at the
  part must see it. The next part goes on from open rows only.
* Groups with one row are the common case: for them the machine is a CASE over a join, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from headwater import types as t
from headwater.sql import part_text as text
from headwater.sql.names import fold
from headwater.sql.part_text import Lines, quoted, shown
from headwater.sql.parted import Names, Parted, column
from headwater.sql.pattern_aggregates import Kept, Row
from headwater.sql.state_machine import NEW, PREV, Edge, Machine


@dataclass(frozen=True)
class Pattern:
    """A pattern query, taken apart.

    Attributes:
        parted: the relation.
        machine: the pattern.
        groups: the columns of GROUP BY.
        kept: what is kept of a match.
        items: the select list over the helper view's columns, with the names of the columns.
        having: the condition over the same columns.
    """

    parted: Parted
    machine: Machine
    groups: tuple[t.Field, ...]
    kept: tuple[Kept, ...]
    items: tuple[tuple[str, exp.Expr], ...]
    having: exp.Expr | None


def pattern_views(pattern: Pattern, helper: str, names: Names, final: Callable[[Lines, Lines], str]) -> tuple[str, ...]:
    """The texts of the helper view and of the view itself.

    Args:
        pattern: the query.
        helper: the helper view's name.
        names: names that columns have; others are added.
        final: makes the view of its two queries.
    """
    made = _Helper(pattern, helper, names)
    length = pattern.parted.length
    return (
        text.part_view(helper, made.query("i", first=True), made.query("j", first=False), length),
        final(made.shown("i"), made.shown("j")),
    )


class _Helper:
    """Writes the queries of a helper view."""

    def __init__(self, pattern: Pattern, name: str, names: Names) -> None:
        self.pattern = pattern
        self.machine = pattern.machine
        self.name = name
        self.groups = tuple(one.name for one in pattern.groups)
        self.count = names.fresh("n")
        self.state = names.fresh("state")
        self.open = names.fresh("open")
        self.before = names.fresh("before")
        self.history = names.fresh("history")
        self.found = names.fresh("found")
        self.here = names.fresh("here")
        self.closed = names.fresh("closed")
        needed = {fold(one) for one in self.machine.read} | {
            fold(one.parts[0].name) for kept in pattern.kept for arg in kept.args for one in arg.find_all(exp.Column)
        }
        rest = [one for one in pattern.parted.fields if one.name not in self.groups]
        self.needed = tuple(one.name for one in rest if fold(one.name) in needed)
        #: What the rows of a group are ordered by: the time, then every other column, so that the order is total.
        ordered = [one.name for one in rest if t.is_orderable(one.type)]
        ordered.sort(key=lambda one: one != pattern.parted.timestamp)
        self.ordered = tuple(ordered) or self.groups[:1]
        self.remembered = tuple(one for one in pattern.parted.fields if one.name in self.machine.remembered)
        #: What a match has besides its state, with the types.
        self.values = [(one.name, one.type) for one in pattern.kept]
        self.values += [(one.name, one.type) for one in self.remembered]

    # -- the view itself -----------------------------------------------------------------------------------------------

    def shown(self, subscript: str) -> Lines:
        """The matches: Algorithm 3."""
        items = [text.named(shown(tree), name) for name, tree in self.pattern.items]
        where = [f"{quoted(self.state)} = {self.machine.accepting}"]
        if self.pattern.having is not None:
            where.append(_operand(self.pattern.having))
        return text.select(items, [text.reference(self.name, subscript)], where)

    # -- the helper view -----------------------------------------------------------------------------------------------

    def query(self, subscript: str, first: bool) -> Lines:
        """What a part of the helper view holds: Algorithm 2. In the first part nothing came before."""
        grouped = text.select(
            [
                *map(quoted, self.groups),
                f"count(*) AS {quoted(self.count)}",
                *(f"min({quoted(one)}) AS {quoted(one)}" for one in self.needed),
            ],
            [text.reference(self.pattern.parted.name, subscript)],
            group=[*map(quoted, self.groups)],
        )
        return [
            f"WITH {NEW} AS (",
            *text.indented(grouped),
            ")",
            *(self._begin() if first else self._step(subscript)),
            "UNION ALL",
            *self._run(subscript, first),
        ]

    def _begin(self) -> Lines:
        """Groups with one row in the first part."""
        row = _row({NEW: NEW})
        items = [
            *(f"{NEW}.{quoted(one)}" for one in self.groups),
            *(text.named(one.begin(row), one.name) for one in self.pattern.kept),
            *(f"{NEW}.{quoted(one.name)}" for one in self.remembered),
            f"1 AS {quoted(self.state)}",
            f"TRUE AS {quoted(self.open)}",
        ]
        return text.select(items, [NEW], [f"{NEW}.{quoted(self.count)} = 1", *_conditions(self.machine.first, row)])

    def _step(self, subscript: str) -> Lines:
        """Groups with one row, or none: the machine makes one step, or stays as it is."""
        row = _row({NEW: None})
        n, state = quoted(self.count), quoted(self.state)
        fresh = f"{state} = 1"
        looped = self.machine.variables[0].plus
        if looped:  # a row that may begin a match stays in state 1 if it is there: the two edges have one condition
            fresh += f" AND coalesce({quoted(self.before)}, 0) <> 1"
        kept = [
            text.case([(f"{n} = 0", quoted(one.name)), (fresh, one.begin(row))], one.step(row, quoted(one.name)))
            for one in self.pattern.kept
        ]
        items = [
            *map(quoted, self.groups),
            *(text.named(value, one.name) for one, value in zip(self.pattern.kept, kept, strict=True)),
            *(quoted(one.name) for one in self.remembered),
            state,
            f"TRUE AS {quoted(self.open)}",
        ]
        return text.select(items, text.derived(self._joined(subscript, looped), "Step"), [f"{n} <= 1", f"{state} <> 0"])

    def _joined(self, subscript: str, looped: bool) -> Lines:
        """The new row and the state before it, and the state after it."""
        row = _row({NEW: NEW, PREV: PREV})
        n, state = f"{NEW}.{quoted(self.count)}", f"{PREV}.{quoted(self.state)}"
        none = f"{n} IS NULL" if self.groups else f"{n} = 0"
        moves = [
            (" AND ".join([f"{state} = {edge.start}", *_conditions(edge, row)]), str(edge.end))
            for edge in self.machine.edges
            if edge.start
        ]
        begins = " AND ".join(_conditions(self.machine.first, row))
        branches, otherwise = [(none, state), *moves], "1"
        if begins:
            branches, otherwise = [*branches, (begins, "1")], "0"
        remembered = {one.name for one in self.remembered}
        items = [
            *(f"coalesce({NEW}.{quoted(one)}, {PREV}.{quoted(one)}) AS {quoted(one)}" for one in self.groups),
            f"coalesce({n}, 0) AS {quoted(self.count)}" if self.groups else n,
            *(
                f"if({none}, {PREV}.{quoted(one)}, {NEW}.{quoted(one)}) AS {quoted(one)}"
                if one in remembered
                else f"{NEW}.{quoted(one)}"
                for one in self.needed
            ),
            *(f"{PREV}.{quoted(one.name)}" for one in self.pattern.kept),
            *([f"{state} AS {quoted(self.before)}"] if looped else []),
            f"{text.case(branches, otherwise)} AS {quoted(self.state)}",
        ]
        join = "FULL OUTER JOIN" if self.groups else "LEFT JOIN"
        return text.select(items, [NEW, *self._previous(join, NEW, subscript)])

    def _previous(self, join: str, left: str, subscript: str) -> Lines:
        before = text.reference(self.name, subscript, 1)
        return [
            f"{join} (SELECT * FROM {before} WHERE {quoted(self.open)}) AS {PREV}",
            f"  ON {self._same(left, PREV)}",
        ]

    def _same(self, left: str, right: str) -> str:
        """The condition that two relations have the same group."""
        pairs = [
            f"{left}.{quoted(one.name)} {'<=>' if one.nullable else '='} {right}.{quoted(one.name)}"
            for one in self.pattern.groups
        ]
        return " AND ".join(pairs) or "TRUE"

    # -- groups with several rows --------------------------------------------------------------------------------------

    def _run(self, subscript: str, first: bool) -> Lines:
        """Groups with several rows: the machine runs through them."""
        several = "Several"
        found = quoted(self.found)
        names = [*(one for one, _ in self.values), self.state, self.open]
        source = text.derived(self._histories(subscript), several)
        if not first:
            source += self._previous("LEFT JOIN", several, subscript)
        groups = [f"{several}.{quoted(one)}" for one in self.groups]
        run = "\n".join(
            [
                "explode(aggregate(",
                *text.indented(
                    [
                        f"{quoted(self.history)},",
                        f"{self._start(first)},",
                        *_attached("(m, r) -> ", self._merge(several), ","),
                        f"m -> concat(m.{quoted(self.closed)}, array({self._record('TRUE')}))",
                    ]
                ),
                f")) AS {found}",
            ]
        )
        runs = text.select([*groups, run], source)
        items = [*map(quoted, self.groups), *(f"{found}.{quoted(one)}" for one in names)]
        return text.select(items, text.derived(runs, "Run"), [f"{found}.{quoted(self.state)} <> 0"])

    def _histories(self, subscript: str) -> Lines:
        """The rows of each group that has several, in order."""
        each = "Each"
        fields = ", ".join(f"{text.text(one)}, {each}.{quoted(one)}" for one in self.ordered)
        history = f"array_sort(collect_list(named_struct({fields}))) AS {quoted(self.history)}"
        rows = f"{text.reference(self.pattern.parted.name, subscript)} AS {each}"
        if not self.groups:
            return text.select([history], [rows], having=["count(*) > 1"])
        groups = [f"{each}.{quoted(one)}" for one in self.groups]
        join = f"JOIN {NEW} ON {self._same(each, NEW)}"
        return text.select([*groups, history], [rows, join], [f"{NEW}.{quoted(self.count)} > 1"], groups)

    def _start(self, first: bool) -> str:
        """What a run begins with: the match of the part before."""
        old = [(one, f"CAST(NULL AS {kind})" if first else f"{PREV}.{quoted(one)}") for one, kind in self.values]
        state = "0" if first else f"coalesce({PREV}.{quoted(self.state)}, 0)"
        fields = [*self.values, (self.state, t.INT), (self.open, t.BOOLEAN)]
        none = f"slice(array(CAST(NULL AS {t.Struct(tuple(fields))})), 1, 0)"
        return _struct([*old, (self.state, state), (self.here, "FALSE"), (self.closed, none)])

    def _merge(self, several: str) -> str:
        """One row: the next state, what is kept of the match, and the matches that were complete and are broken.

        `here` says that a row of this part is in the match: one that ended with the part before was shown there.
        """
        row = _row({NEW: "r", PREV: "m"}, dict.fromkeys(self.groups, several))
        latest = [(one.name, f"r.{quoted(one.name)}") for one in self.remembered]

        def match(values: list[tuple[str, str]], state: str, closed: str) -> str:
            here = "FALSE" if state == "0" else "TRUE"
            return _struct([*values, (self.state, state), (self.here, here), (self.closed, closed)])

        branches = []
        done = f"m.{quoted(self.closed)}"
        longer = [(one.name, one.step(row, f"m.{quoted(one.name)}")) for one in self.pattern.kept] + latest
        for states, stays, conditions in self._moves(row):
            state = f"m.{quoted(self.state)}"
            among = f"{state} = {states[0]}" if len(states) == 1 else f"{state} IN ({', '.join(map(str, states))})"
            after = state if stays else f"{state} + 1"
            branches.append((" AND ".join([among, *conditions]), match(longer, after, done)))
        complete = f"m.{quoted(self.here)} AND m.{quoted(self.state)} = {self.machine.accepting}"
        broken = f"if({complete}, concat({done}, array({self._record('FALSE')})), {done})"
        begun = match([(one.name, one.begin(row)) for one in self.pattern.kept] + latest, "1", broken)
        begins = " AND ".join(_conditions(self.machine.first, row))
        if not begins:
            return text.case(branches, begun) if branches else begun
        nothing = [(one, f"CAST(NULL AS {kind})") for one, kind in self.values]
        return text.case([*branches, (begins, begun)], match(nothing, "0", broken))

    def _moves(self, row: Row) -> list[tuple[list[int], bool, list[str]]]:
        """The edges of a match that goes on: from which states, whether they stay there, and on which conditions.

        Edges of different states that have the same conditions are one. Those that stay come first, as they do in each
        state.
        """
        found: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
        for edge in sorted(self.machine.edges, key=lambda one: one.end != one.start):
            if edge.start:
                found.setdefault((edge.end == edge.start, tuple(_conditions(edge, row))), []).append(edge.start)
        return [(states, stays, list(conditions)) for (stays, conditions), states in found.items()]

    def _record(self, is_open: str) -> str:
        """The match of a run as a row of the helper view."""
        names = [*(one for one, _ in self.values), self.state]
        return _struct([*((one, f"m.{quoted(one)}") for one in names), (self.open, is_open)])


def _struct(fields: list[tuple[str, str]]) -> str:
    return f"named_struct({', '.join(f'{text.text(name)}, {value}' for name, value in fields)})"


def _attached(before: str, value: str, after: str) -> Lines:
    return f"{before}{value}{after}".split("\n")


def _conditions(edge: Edge, row: Row) -> list[str]:
    return [row(exp.Paren(this=one) if isinstance(one, exp.Or) else one) for one in edge.predicates]


def _operand(condition: exp.Expr) -> str:
    return shown(exp.Paren(this=condition.copy()) if isinstance(condition, exp.Or) else condition)


def _row(rows: dict[str, str | None], captured: dict[str, str] | None = None) -> Row:
    """How expressions over a row are written.

    Args:
        rows: what the row at hand and the one before it go by; None for columns without a qualifier. Columns that have
            no qualifier are of the row at hand.
        captured: columns that are the same in all rows, and the relation that has them.
    """

    def one(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        names = part.parts
        of = NEW
        if len(names) > 1:
            of, names = names[0].name, names[1:]
        qualifier = (captured or {}).get(names[0].name, rows[of])
        return column([exp.to_identifier(qualifier), *names] if qualifier else names)

    return lambda tree: shown(tree.copy().transform(one, copy=False))
