"""All maps of a warehouse, with what each is there for and who uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headwater.plan.dag import Size, Sizes, kept_how, keys_of
from headwater.plan.program import Program
from headwater.plan.reads import reads_of
from headwater.plan.roles import Role, Roles, roles_of

Users = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class MapFacts:
    """What SHOW MAPS says of a map."""

    name: str
    roles: Roles
    views: tuple[str, ...]
    keys: tuple[str, ...]
    kept: str
    size: Size | None


def users_of(programs: Iterable[Program]) -> dict[str, tuple[str, ...]]:
    """The views whose programs have a map, by the map's name."""
    users: dict[str, tuple[str, ...]] = {}
    for program in programs:
        for one in program.maps:
            users[one.name] = (*users.get(one.name, ()), program.view)
    return users


def maps_of(programs: Sequence[Program], users: Users, sizes: Sizes) -> list[MapFacts]:
    """The maps of programs, each once, with all roles that it has in any of them.

    Args:
        programs: in the order of the catalogue.
        users: the views that use a map, by the map's name; one that is shared has several.
        sizes: what is known of them.
    """
    found: dict[str, MapFacts] = {}
    for program in programs:
        roles, reads = roles_of(program), reads_of(program)
        for one in program.maps:
            before = found.get(one.name)
            all_roles = {*roles[one.name], *(before.roles if before else ())}
            keys = (*(before.keys if before else ()), *keys_of(one, program, reads))
            found[one.name] = MapFacts(
                one.name,
                tuple(role for role in Role if role in all_roles),
                tuple(users.get(one.name, (program.view,))),
                tuple(dict.fromkeys(keys)),
                kept_how(one, program),
                sizes.get(one.name),
            )
    return list(found.values())
