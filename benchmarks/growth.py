"""How an epoch's time grows with the data: the queries of the suite `tpch` at several scales, epochs of one size.

After Ahmad et al., "DBToaster", section 6, figure 11. The orders stay at 30,000 at any scale; everything else grows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks import tpch
from benchmarks.contest import Row
from benchmarks.options import option
from benchmarks.systems import CHOSEN, DUCKDB


@dataclass(frozen=True)
class Options(tpch.Options):
    """What can be chosen: as for `tpch`, with other things to begin with."""

    scale: tuple[float, ...] = option((0.1, 0.5, 1.0), "scale factors")
    changes: tuple[int, ...] = option((1_000,), "changes in an epoch")
    systems: tuple[str, ...] = option((CHOSEN, DUCKDB), "systems")


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures per query, scale, size and system, scales beside each other."""
    rows = list(tpch.run(report, options))
    places = {name: number for number, name in enumerate(options.queries)}
    yield from sorted(rows, key=lambda row: (places[str(row["query"])], row["changes"], row["system"]))
