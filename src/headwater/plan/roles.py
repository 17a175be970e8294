"""The roles that relations play for a program, in the words of the paper on views in key-value stores.

("A view maintenance concept for key-value stores", section 3.1, has the auxiliary views.) The rules, over a `Program`:

base table, base stream, view:
    an input: the program reads it and does not keep it.
DELTA:
    the change of an input that a statement waits for. Where the input has a key, the old row is found by it when a new
    one comes; the paper keeps a view for that.
PRE-AGGREGATION:
    a map of groups of one relation: its definition is a `Present`, a `Sum` or an `Over`, and over no second relation.
REVERSE-JOIN:
    a map over several relations: its definition joins two, or unites different ones. Or a map that a join finds rows
    of by an equality, in a statement of another map.
INDEX:
    a map of one relation's rows as they are, which no join finds by an equality. What is evaluated by key finds them.
window:
    the rows of a condition on the clock (`During`) whose time it is; some leave whenever the clock advances.
rows to come:
    those whose time is still to come, beside a window.
clock:
    what windows follow besides changes.
final view:
    the view itself, whatever else it looks like.

A map has one role, or two: groups of one relation that a join finds are PRE-AGGREGATION and REVERSE-JOIN. (In the
paper, too, these two may be one view, if the key of the groups is that of the join.)
"""

from __future__ import annotations

from enum import Enum

from headwater.algebra.nodes import During, Join, Node, Over, Present, Sum, Union
from headwater.plan.program import Map, Program
from headwater.plan.reads import Read, reads_of


class Role(Enum):
    """What a relation is there for."""

    TABLE = "base table"
    STREAM = "base stream"
    SYNCHRONISED = "synchronised relation"
    VIEW = "view"
    DELTA = "DELTA"
    PRE_AGGREGATION = "PRE-AGGREGATION"
    REVERSE_JOIN = "REVERSE-JOIN"
    INDEX = "INDEX"
    WINDOW = "window"
    COMING = "rows to come"
    CLOCK = "clock"
    FINAL = "final view"


Roles = tuple[Role, ...]


def roles_text(roles: Roles) -> str:
    return " and ".join(role.value for role in roles)


def input_role(kind: str) -> Role:
    """The role of a relation outside the program, by its kind in the catalogue."""
    known = {"table": Role.TABLE, "stream": Role.STREAM, "synchronised relation": Role.SYNCHRONISED}
    return known.get(kind, Role.VIEW)


def roles_of(program: Program) -> dict[str, Roles]:
    """The roles of a program's maps."""
    reads = reads_of(program)
    return {one.name: _roles(one, program, reads) for one in program.maps}


def _roles(one: Map, program: Program, reads: tuple[Read, ...]) -> Roles:
    if one.name == program.view:
        return (Role.FINAL,)
    if isinstance(one.definition, During):
        return (Role.COMING if window_of(one, program) is not None else Role.WINDOW,)
    several = is_over_several(one.definition)
    roles: list[Role] = []
    if isinstance(one.definition, Present | Sum | Over) and not several:
        roles.append(Role.PRE_AGGREGATION)
    if several or any(read.joins and read.source == one.name for read in reads):
        roles.append(Role.REVERSE_JOIN)
    return tuple(roles) or (Role.INDEX,)


def is_over_several(definition: Node) -> bool:
    """Whether rows of relations meet in a tree: in a join of two, or in a union of different ones."""
    for node in definition.walk():
        match node:
            case Join(left=left, right=right) if left.relations and right.relations:
                return True
            case Union() if len(node.relations) > 1:
                return True
    return False


def window_of(one: Map, program: Program) -> str | None:
    """The window whose rows to come a map holds."""
    return next((each.name for each in program.maps if each.coming and each.coming.relation == one.name), None)
