"""Refresh policies: when a synchronised relation takes what has changed in the relation it stands for.

A policy ticks in some epochs. Which ones follows from the epoch itself: its clock, what came to the synchronisation
stream, or what a person asked for. So a run that is repeated ticks in the same epochs again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class When(Enum):
    """What makes a policy tick."""

    EVERY = "every"
    ON = "on"
    MANUAL = "manual"


#: Lengths of time by the letter that stands for them, longest first.
_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1))


@dataclass(frozen=True)
class Policy:
    """A refresh policy.

    Attributes:
        when: its kind.
        period: of EVERY, in microseconds.
        name: of ON, the synchronisation stream; of MANUAL, the view that REFRESH names.
    """

    when: When
    period: int = 0
    name: str = ""

    def __str__(self) -> str:
        """What stands behind the @ in the name of a synchronised relation."""
        match self.when:
            case When.EVERY:
                unit, size = next((unit, size) for unit, size in _UNITS if self.period % size == 0)
                return f"{self.period // size}{unit}"
            case When.ON:
                return self.name
        return f"manual {self.name}"

    @property
    def clause(self) -> str:
        """As it is written behind REFRESH."""
        match self.when:
            case When.EVERY:
                return f"EVERY {self}"
            case When.ON:
                return f"ON {self.name}"
        return "MANUAL"

    def within(self, other: Policy) -> bool:
        """Whether the other policy ticks whenever this one does, as far as the two tell by themselves.

        Multiples of four seconds are multiples of two (Ghanem et al., "Supporting Views in Data Stream Management
        Systems", proposition 1).
        """
        if self.when is When.EVERY and other.when is When.EVERY:
            return self.period % other.period == 0
        return self == other

    def to_dict(self) -> dict[str, object]:
        return {"when": self.when.value, "period": self.period, "name": self.name}


def is_reserved(name: str) -> bool:
    """Whether a relation of this name, in small letters, could be taken for a policy of another kind."""
    return re.fullmatch(r"\d+(d|h|min|s|ms|us)|manual .*", name, re.DOTALL) is not None


def policy_from_dict(data: dict[str, object]) -> Policy:
    """A policy from its catalogue form."""
    return Policy(When(data["when"]), int(str(data["period"])), str(data["name"]))


def synchronised(relation: str, policy: Policy) -> str:
    """The name of a relation as it is synchronised by a policy; nobody else can choose such a name."""
    return f"{relation}@{policy}"
