"""The strategies on an order book: the paper's financial queries while orders come and are cancelled.

The systems are those of the suite `tpch`; the hard-coded program is for VWAP. MST, PSP and AXF pair bids with asks, and
BSP and BSV bids with bids, so that what a strategy does with pairs decides: the time limit is for these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.queries import dbtoaster_rows

from benchmarks.changes import Plan
from benchmarks.contest import Row, contest
from benchmarks.disk import scratch
from benchmarks.hard_coded import makers
from benchmarks.options import option
from benchmarks.systems import CHOSEN, DUCKDB, HARD_CODED, STRATEGIES, Query
from benchmarks.workloads.order_book import EVENTS, SCHEMA, TABLES, Book

#: Epochs by their size: how many warm up, how many are measured.
EPOCHS = {10: (8, 20), 100: (4, 20), 1_000: (4, 10), 10_000: (2, 4)}
QUERIES = ("axf", "bsp", "bsv", "mst", "psp", "vwap")


@dataclass(frozen=True)
class Options:
    """What can be chosen."""

    queries: tuple[str, ...] = option(QUERIES, "queries")
    changes: tuple[int, ...] = option(tuple(EPOCHS), "events in an epoch")
    systems: tuple[str, ...] = option((*STRATEGIES, CHOSEN, HARD_CODED, DUCKDB), "systems")
    limit: float = option(60.0, "seconds that a system may take for the epochs of one size")
    book: int = option(5_000, "orders that rest in each of the two books, about")
    events: int = option(EVENTS, "orders that come and go in all; all but the last are loaded as what they leave")


def run(report: Callable[[str], None], options: Options) -> Iterator[Row]:
    """Measure; yields one row of figures per query, size and system."""
    texts = dbtoaster_rows.suite().queries
    book = Book(options.book, options.events)
    plans = [Plan(size, *EPOCHS.get(size, (1, 5))) for size in sorted(options.changes)]
    load, rounds = book.rounds(plans)
    for name in options.queries:
        with scratch() as folder:
            report(name)
            query = Query(name, texts[name], SCHEMA, dict.fromkeys(TABLES, "id"))
            entrants = makers(query, folder, options.systems)
            for row in contest(entrants, load, rounds, options.limit, report):
                yield {"query": name, "resting": load.size, **row}
