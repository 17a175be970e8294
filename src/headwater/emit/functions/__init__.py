"""How DuckDB computes each function of `headwater.algebra.functions`, with Spark's answer and exactly its type."""

from __future__ import annotations

from headwater.emit.functions.build import EMITTERS

# Importing a family registers its emitters.
from headwater.emit.functions import (  # isort: skip
    aggregates as aggregates,
    arithmetic as arithmetic,
    arrays as arrays,
    attempts as attempts,
    clock as clock,
    codes as codes,
    dates as dates,
    lambdas as lambdas,
    logic as logic,
    maps as maps,
    mathematics as mathematics,
    moments as moments,
    parts as parts,
    patterns as patterns,
    strings as strings,
    time_windows as time_windows,
)

__all__ = ["EMITTERS"]
