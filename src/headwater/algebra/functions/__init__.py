"""The scalar functions Headwater knows, each with Spark's answer in ANSI mode.

A function says three things: which arguments it takes and what it returns (`resolve`), what it computes (`evaluate`,
the definition the tests hold every engine to), and whether NULL in means NULL out (`strict`). Modules beside this one
register functions by family; `headwater.emit.functions` says how DuckDB computes each of them.
"""

from __future__ import annotations

from headwater.algebra.functions.registry import (
    REGISTRY,
    Function,
    Signature,
    evaluate,
    may_raise,
    register,
    resolve,
)

# Importing a family registers its functions.
from headwater.algebra.functions import (  # isort: skip
    aggregates as aggregates,
    arithmetic as arithmetic,
    arrays as arrays,
    attempts as attempts,
    bits as bits,
    clock as clock,
    codes as codes,
    comparison as comparison,
    conditional as conditional,
    dates as dates,
    formats as formats,
    lambdas as lambdas,
    logic as logic,
    maps as maps,
    mathematics as mathematics,
    moments as moments,
    readings as readings,
    rounding as rounding,
    parts as parts,
    patterns as patterns,
    strings as strings,
    time_windows as time_windows,
)

__all__ = ["REGISTRY", "Function", "Signature", "evaluate", "may_raise", "register", "resolve"]
