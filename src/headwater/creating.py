"""Statements that make, change and drop relations, and what EXPLAIN says of a view that would be made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.algebra.keys import row_key
from headwater.borrowing import release
from headwater.engine import definitions
from headwater.errors import HeadwaterError, NotSupported, UserError
from headwater.plan.compile import compile_view
from headwater.plan.program import Program
from headwater.planning import replanned, surroundings
from headwater.planning_groups import grouping, loosen, move
from headwater.planning_reads import AUTO, ON_QUERY, plan_view, replan_timed
from headwater.results import Result, count_of
from headwater.serve.query import count_rows
from headwater.sql import statements as s
from headwater.sql.names import fold
from headwater.sql.place import Place
from headwater.store.catalog import CLOCK_STREAM, Kind, Relation, clock_stream, on_stream
from headwater.store.policies import Policy, When, is_reserved
from headwater.store.streams import stream_of, tagged_of

if TYPE_CHECKING:
    from headwater.database import Database

#: How long a STREAMED view keeps its changes if it does not say so: a day, in microseconds.
STREAMED_CHANGES = 86_400_000_000


def new_name(db: Database, name: s.Name, if_not_exists: bool) -> bool:
    """Whether to go on creating: False when it exists and that is fine."""
    if set(name.text) & set("#$@"):
        raise UserError(
            "HW108",
            f"the name {name.text!r} contains #, $ or @, which are reserved",
            span=name.span,
            hint="choose another",
        )
    if is_reserved(fold(name.text)):
        raise UserError(
            "HW108",
            f"{name.text!r} is how Headwater names a refresh policy",
            span=name.span,
            hint="choose another name",
        )
    found = db.engine.catalog.find(name.text)
    if found is None and fold(name.text) == fold(CLOCK_STREAM):
        hint = "choose another name; a view can read it: SELECT TimePoint FROM clockStr"
        raise UserError("HW108", f"{CLOCK_STREAM} is the stream of the clock's seconds", span=name.span, hint=hint)
    if found is None:
        return True
    if if_not_exists:
        return False
    raise UserError(
        "HW103",
        f"there is a {found.kind.value} named {found.name} already",
        span=name.span,
        hint="choose another name, drop it first, or use IF NOT EXISTS",
    )


def create_base(db: Database, statement: s.CreateTable | s.CreateStream | s.CreateTagged) -> Result:
    kind = Kind.TABLE if isinstance(statement, s.CreateTable) else Kind.STREAM
    word = f"CREATE {kind.value.upper()}"
    with db.engine.lock:
        if not new_name(db, statement.name, statement.if_not_exists):
            return Result(word, f"{statement.name.text} exists already")
        relation = _base_of(db, statement)
        definitions.create_base(db.engine, relation)
    return Result(word, f"created {kind.value} {relation.name}")


def _base_of(db: Database, statement: s.CreateTable | s.CreateStream | s.CreateTagged) -> Relation:
    """The relation that a statement makes."""
    epoch = db.engine.epoch
    match statement:
        case s.CreateStream():
            return stream_of(statement, epoch)
        case s.CreateTagged():
            return tagged_of(statement, db.engine.catalog, epoch)
    return Relation(
        statement.name.text,
        Kind.TABLE,
        statement.columns,
        key=statement.primary_key,
        static=statement.static,
        changes=kept_changes(statement.options),
        begins=epoch,
        sql=statement.text,
        created=epoch,
    )


def kept_changes(options: tuple[s.Option, ...]) -> int | str | None:
    """How long a view's changes are kept: what RETAIN CHANGES says, a day for a STREAMED view, else not at all."""
    given = {option.name: option for option in options}
    retain = given.get("RETAIN CHANGES")
    if retain is None:
        return STREAMED_CHANGES if "STREAMED" in given else None
    if "COMPLETE" in given:
        raise UserError(
            "HW150",
            "a COMPLETE view keeps no changes",
            span=retain.span,
            hint="leave out RETAIN CHANGES, or make it a STREAMED view",
        )
    assert isinstance(retain.value, int | str)
    return retain.value


def view_options(options: tuple[s.Option, ...]) -> tuple[str | None, bool]:
    """Strategy and STRICT of a view's options."""
    strategy: str | None = None
    strict = False
    for option in options:
        if option.name == "STRATEGY":
            strategy = str(option.value)
        elif option.name == "STRICT":
            strict = True
    if strict and strategy == "recompute":
        raise UserError(
            "HW110",
            "STRICT refuses the strategy 'recompute'",
            span=next(option.span for option in options if option.name == "STRICT"),
            hint="leave out STRICT, or choose another strategy",
        )
    return strategy, strict


def _refuse_part_options(statement: s.CreateView) -> None:
    """Refuse what only a view has that is made of parts."""
    for option in statement.options:
        if option.name in ("RETAIN", "ROLL UP"):
            raise NotSupported(
                "HW264",
                f"a view without parts takes no {option.name}: it holds what its query says",
                span=option.span,
                source=statement.source,
                hint="RETAIN CHANGES keeps its changes; a condition on the clock lets rows go",
            )


def create_view(db: Database, statement: s.CreateView) -> Result:
    _refuse_part_options(statement)
    _, strict = view_options(statement.options)
    changes = kept_changes(statement.options)
    _refuse_own_parts(statement)
    with db.engine.lock:
        if not new_name(db, statement.name, statement.if_not_exists):
            return Result("CREATE VIEW", f"{statement.name.text} exists already")
        policy = refresh_policy(db, statement.name, statement.options)
        relations = db.relations_for_views(policy)
        name, query = statement.name, statement.query
        planned = plan_view(db, name, query, statement.columns, statement.options, statement.source, relations)
        program = planned.program
        _check_slide(statement, program, policy)
        relation = Relation(
            statement.name.text,
            Kind.VIEW,
            program.written.schema,
            identity=row_key(program.written, relations.keys),
            changes=changes,
            begins=db.engine.epoch - 1,
            sql=statement.text,
            created=db.engine.epoch,
            program=program,
            strict=strict,
            refresh=policy,
            timing=timing_of(statement.options),
        )
        db.engine.seen.forget(relation.name)
        definitions.create_view(db.engine, relation, list(relations.made.values()))
        move(db, planned.others)
    notices = unordered(statement.query)
    if relation.lazy:
        return Result("CREATE VIEW", f"created view {relation.name} (evaluated when it is read)", notices=notices)
    count = count_rows(db.warehouse, relation, db.engine.catalog.grouped)
    return Result("CREATE VIEW", f"created view {relation.name} ({count_of(count)})", notices=notices)


def unordered(query: exp.Expr) -> tuple[str, ...]:
    """What is to be said of a view's query that is ordered for nothing."""
    last = [one for one in query.find_all(exp.Query) if one.args.get("order")]
    if not any(one.args.get("limit") is None and one.args.get("offset") is None for one in last):
        return ()
    return ("ORDER BY without LIMIT is left out: the rows of a view have no order; order them when you read it",)


def _refuse_own_parts(statement: s.CreateView) -> None:
    """A view that follows from earlier parts of itself says what the first one holds."""
    for table in statement.query.find_all(exp.Table):
        if table.args.get("part") and fold(table.name) == fold(statement.name.text):
            raise UserError(
                "HW188",
                f"{statement.name.text} reads parts of itself, and has no INITIALIZE",
                span=Place(statement.source).span(table),
                source=statement.source,
                hint=f"INITIALIZE {statement.name.text}[i] AS query says what the first part holds",
            )


def _check_slide(statement: s.CreateView, program: Program, policy: Policy | None) -> None:
    """A window that slides by a policy takes two views: one that follows the clock, and one that follows it late."""
    if policy is not None and program.follows_clock:
        span = next(option.span for option in statement.options if option.name == "REFRESH")
        raise NotSupported(
            "HW218",
            "a view that follows the clock moves with it, so it cannot have a refresh policy",
            span=span,
            hint="leave out REFRESH, and read the view from another one that has it: that one slides",
        )


def refresh_policy(db: Database, view: s.Name | None, options: tuple[s.Option, ...]) -> Policy | None:
    """The refresh policy of a view's options; None for one that is fresh after every epoch."""
    option = next((one for one in options if one.name == "REFRESH"), None)
    match option.value if option is not None else None:
        case int() as period:
            return Policy(When.EVERY, period=period)
        case "MANUAL":
            return Policy(When.MANUAL, name=view.text if view is not None else "query")
        case s.Name() as name:
            return _on(db, view, name)
    return None


def timing_of(options: tuple[s.Option, ...]) -> str | None:
    """`ON QUERY` or `AUTO`, if that is what REFRESH says."""
    found = next((one.value for one in options if one.name == "REFRESH"), None)
    return found if isinstance(found, str) and found in (ON_QUERY, AUTO) else None


def _on(db: Database, view: s.Name | None, name: s.Name) -> Policy:
    """The policy of REFRESH ON a synchronisation stream."""
    if view is not None and fold(name.text) == fold(view.text):
        raise UserError(
            "HW181",
            f"view {view.text} cannot be its own synchronisation stream",
            span=name.span,
            hint="name a relation that does not follow from the view: the clock, a stream, or a view over them",
        )
    stream = db.engine.catalog.find(name.text)
    if stream is None and fold(name.text) == fold(CLOCK_STREAM):
        stream = clock_stream(db.engine.epoch, db.engine.present())
    if stream is None:
        raise unknown(name)
    try:
        return on_stream(stream)
    except HeadwaterError as error:
        raise error.at(name.span) from None


def drop(db: Database, statement: s.Drop) -> Result:
    with db.engine.lock:
        relation = db.engine.catalog.find(statement.name.text)
        if relation is None or relation.policy is not None:
            if statement.if_exists:
                return Result(f"DROP {statement.kind}", f"{statement.name.text} does not exist")
            raise unknown(statement.name)
        if relation.kind.value != statement.kind.lower():
            raise UserError(
                "HW104",
                f"{relation.name} is a {relation.kind.value}, not a {statement.kind.lower()}",
                span=statement.name.span,
                hint=f"DROP {relation.kind.value.upper()} {relation.name}",
            )
        try:
            release(db, relation, statement.cascade)
            gone = definitions.drop(db.engine, relation, statement.cascade)
            loosen(db)
        except HeadwaterError as error:
            raise error.at(statement.name.span) from error.__cause__
    return Result(f"DROP {statement.kind}", "dropped " + ", ".join(gone))


def refresh(db: Database, statement: s.Refresh) -> Result:
    with db.engine.lock:
        relation = find(db, statement.name)
        if relation.kind is not Kind.VIEW:
            raise UserError(
                "HW104", f"{relation.name} is a {relation.kind.value}, not a view", span=statement.name.span
            )
        if relation.lazy and not relation.suspended:
            return Result("REFRESH", f"view {relation.name} is fresh: it is evaluated when it is read")
        epoch = definitions.refresh(db.engine, relation)
    reason = epoch.suspended.get(relation.name)
    done = f"refreshed view {relation.name}" if reason is None else f"view {relation.name} is suspended: {reason}"
    return Result("REFRESH", done, epoch=epoch.number)


def advance_clock(db: Database, statement: s.AdvanceClock) -> Result:
    try:
        epoch = db.advance_clock(statement.moment)
    except HeadwaterError as error:
        raise error.at(statement.span) from None
    stands = "the clock goes again" if statement.moment is None else f"the clock stands at {epoch.clock}"
    return Result("ADVANCE CLOCK", stands, epoch=epoch.number)


def replan(db: Database, statement: s.Replan) -> Result:
    with db.engine.lock:
        relation = find(db, statement.name)
        before = relation.program
        if relation.parts is not None:
            raise UserError(
                "HW104",
                f"{relation.name} is a view of parts, which has one plan",
                span=statement.name.span,
                hint="EXPLAIN shows it; for another one, write other queries",
            )
        if before is None:
            raise UserError(
                "HW104", f"{relation.name} is a {relation.kind.value}, not a view", span=statement.name.span
            )
        if relation.suspended:
            raise UserError(
                "HW507",
                f"view {relation.name} is suspended",
                span=statement.name.span,
                hint=f"REFRESH {relation.name} first; if that cannot be, drop and create it",
            )
        if relation.strict and statement.strategy == "recompute":
            raise UserError(
                "HW110",
                f"view {relation.name} is STRICT, which refuses the strategy 'recompute'",
                span=statement.name.span,
                hint="choose another strategy",
            )
        if relation.timing is not None and statement.strategy is not None:
            raise UserError(
                "HW151",
                f"view {relation.name} is REFRESH {relation.timing}, which has no strategies",
                span=statement.name.span,
                hint=f"ALTER VIEW {relation.name} REPLAN",
            )
        others: tuple[Program, ...] = ()
        if relation.timing is not None:
            program = replan_timed(db, relation)
        else:
            program, others = _replanned(db, relation, before, statement.strategy)
        try:
            definitions.replan(db.engine, relation, program)
        except HeadwaterError as error:
            raise error.at(statement.name.span) from error.__cause__
        move(db, others)
    db.advice.pop(relation.name, None)
    if relation.timing is not None:
        how = "is evaluated when it is read" if program.lazy else "is kept after every epoch"
        notices = (program.why,) if program.why else ()
        return Result("ALTER VIEW", f"view {relation.name} {how}", notices=notices)
    if program.maps == before.maps:
        return Result("ALTER VIEW", f"view {relation.name} keeps its plan, by strategy {program.strategy}")
    new = len({one.name for one in program.maps} - {one.name for one in before.maps})
    kept = f"{len(program.maps)} {'map' if len(program.maps) == 1 else 'maps'}, {new} new"
    return Result("ALTER VIEW", f"view {relation.name} is maintained by strategy {program.strategy} ({kept})")


def _replanned(
    db: Database, relation: Relation, before: Program, strategy: str | None
) -> tuple[Program, tuple[Program, ...]]:
    """The program that a view gets now, and those that others get with it."""
    among = surroundings(db)
    together = before.shared is not None and strategy is None
    if together:
        plain = compile_view(relation.name, before.query, None, among)
    else:
        plain = replanned(relation.name, before, strategy, among)
    plain = replace(plain, borrowed=before.borrowed)
    if strategy is not None:
        return plain, ()
    found = grouping(db, plain, (), lambda one: definitions.lost_to(db.engine, relation, one) is None, together)
    return found.program, found.others


def find(db: Database, name: s.Name) -> Relation:
    relation = db.engine.catalog.find(name.text)
    if relation is None or relation.policy is not None:
        raise unknown(name)
    return relation


def unknown(name: s.Name) -> UserError:
    return UserError(
        "HW102", f"there is no relation named {name.text!r}", span=name.span, hint="SHOW RELATIONS lists what exists"
    )
