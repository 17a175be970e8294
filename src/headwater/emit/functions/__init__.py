"""How DuckDB computes each function of `headwater.algebra.functions`, with Spark's answer and exactly its type."""

from __future__ import annotations

from headwater.emit.functions.build import EMITTERS

# Importing a family registers its emitters.
from headwater.emit.functions import (  # isort: skip
    aggregates as aggregates,
    arithmetic as arithmetic,
    logic as logic,
    mathematics as mathematics,
    strings as strings,
)

__all__ = ["EMITTERS"]
