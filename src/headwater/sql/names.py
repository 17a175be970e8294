"""Identifiers: compared without case, as in Spark."""

from __future__ import annotations


def fold(name: str) -> str:
    """The form under which a name is looked up."""
    return name.lower()
