"""Hand-written maintenance programs, one a query."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from benchmarks.hard_coded.q01 import Q01
from benchmarks.hard_coded.q03 import Q03
from benchmarks.hard_coded.q18 import Q18
from benchmarks.hard_coded.vwap import Vwap
from benchmarks.systems import (
    CHOSEN,
    DUCKDB,
    HARD_CODED,
    STRATEGIES,
    DuckRecompute,
    HardCoded,
    Headwater,
    Query,
    System,
)

PROGRAMS: dict[str, type[HardCoded]] = {"q01": Q01, "q03": Q03, "q18": Q18, "vwap": Vwap}


def makers(query: Query, folder: Path, systems: tuple[str, ...]) -> dict[str, Callable[[], System]]:
    """How to make each system for a query; DuckDB, which says what is right, is always among them."""
    out: dict[str, Callable[[], System]] = {DUCKDB: functools.partial(DuckRecompute, query)}
    for name in systems:
        if name in (*STRATEGIES, CHOSEN):
            out[name] = functools.partial(Headwater, folder, query, name)
        elif name == HARD_CODED and query.name in PROGRAMS:
            out[name] = functools.partial(PROGRAMS[query.name], folder)
    return out
