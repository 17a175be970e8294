"""EXPLAIN of a view whose program runs in tasks: stages, rooms, how relations are spread, and what goes where."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from headwater.plan.dag import bytes_text


@dataclass(frozen=True)
class Exchange:
    """A change on its way to a room.

    Attributes:
        relation: whose.
        what: `change`, or `pending`: what has come to a map from statements in other rooms, and is yet to be settled.
        source: the stage that it comes from; 0 is the process that owns the warehouse.
        target: the stage that it goes to.
        room: the room there.
        spread: by what its rows find their partition.
        rows: how many are expected in an epoch that changes all inputs; None if nothing is known.
        bytes: what they take.
    """

    relation: str
    what: str
    source: int
    target: int
    room: int
    spread: str
    rows: float | None
    bytes: int | None

    def __str__(self) -> str:
        place = "home" if not self.source else f"stage {self.source}"
        sign = "Δ" if self.what == "change" else "Σ"
        size = f", {bytes_text(self.bytes)} an epoch" if self.bytes is not None else ""
        return f"{place} -> stage {self.target}, room {self.room}: {sign}{self.relation} {self.spread}{size}"


@dataclass(frozen=True)
class RoomNote:
    """A room, as far as it concerns a view.

    Attributes:
        stage: counted from 1, through all jobs of an epoch.
        room: its number there.
        stores: what lies there of relations, and how it is spread.
        settles: maps whose change is made there.
        follows: what statements there follow from: for each map, changes of which relations.
        others: views that it works for as well.
        points: synchronised relations that are settled there, and when they follow.
        builds: views of parts whose parts are built there, and how they are spread.
    """

    stage: int
    room: int
    stores: tuple[tuple[str, str], ...]
    settles: tuple[tuple[str, str], ...]
    follows: tuple[tuple[str, tuple[str, ...]], ...]
    others: tuple[str, ...] = ()
    points: tuple[tuple[str, str], ...] = ()
    builds: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class AtHome:
    """A relation that stays in the process that owns the warehouse, and why."""

    relation: str
    why: str


@dataclass(frozen=True)
class TaskNotes:
    """How a view's program is spread over tasks.

    Attributes:
        partitions: how many tasks a stage has.
        jobs: the stages of each job of an epoch.
        rooms: where something is done for the view.
        exchanges: what is sent there.
        home: what is not.
    """

    partitions: int
    jobs: tuple[tuple[int, ...], ...]
    rooms: tuple[RoomNote, ...]
    exchanges: tuple[Exchange, ...]
    home: tuple[AtHome, ...]

    def to_dict(self) -> dict[str, object]:
        return {
            "partitions": self.partitions,
            "jobs": [list(one) for one in self.jobs],
            "rooms": [
                {
                    "stage": one.stage,
                    "room": one.room,
                    "stores": [{"relation": name, "spread": spread} for name, spread in one.stores],
                    "settles": [{"map": name, "spread": spread} for name, spread in one.settles],
                    "builds": [{"view": name, "spread": spread} for name, spread in one.builds],
                    "statements": [{"map": name, "on": list(on)} for name, on in one.follows],
                    "other_views": list(one.others),
                    "synchronised": [{"relation": name, "policy": when} for name, when in one.points],
                }
                for one in self.rooms
            ],
            "exchanges": [asdict(one) for one in self.exchanges],
            "home": [asdict(one) for one in self.home],
        }

    def lines(self) -> list[str]:
        """The same for people."""
        if not self.rooms:
            return ["in tasks: nothing", *self._home_lines()]
        jobs = "one job" if len(self.jobs) == 1 else f"{len(self.jobs)} jobs"
        stages = sum(map(len, self.jobs))
        parts = "1 partition" if self.partitions == 1 else f"{self.partitions} partitions"
        lines = [f"in tasks: {parts}, {jobs} an epoch with {stages} {'stage' if stages == 1 else 'stages'}"]
        lines += self._home_lines()
        for one in self.rooms:
            also = f" (also for {', '.join(one.others)})" if one.others else ""
            lines.append(f"  stage {one.stage}, room {one.room}{also}")
            lines += [f"    holds {name} {spread}" for name, spread in one.stores]
            lines += [f"    on change of {', '.join(on)}: adds to {name}" for name, on in one.follows]
            lines += [f"    lets {name} follow {when}" for name, when in one.points]
            lines += [f"    settles {name} {spread}" for name, spread in one.settles]
            lines += [f"    builds parts of {name} {spread}" for name, spread in one.builds]
        lines += [f"  {one}" for one in self.exchanges]
        return lines

    def _home_lines(self) -> list[str]:
        return [f"  at home: {one.relation}, {one.why}" for one in self.home]
