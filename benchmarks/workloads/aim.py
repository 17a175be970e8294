"""The AIM telecommunication workload: calls of customers, and six views for those who make them offers.

The views are those of Winter, Schmidt, Neumann and Kemper, "Meet Me Halfway: Split Maintenance of Continuous Views",
table 2, with the parameters of its evaluation. Two places are not in print and are filled in: the first line of Q1
(the average of what the inner query adds up) and the end of Q7 (the customer's value type, and the week).
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

#: The clock of all runs stands here, and this is its week: weeks are counted from the Monday 1970-01-05.
NOW = dt.datetime(2024, 1, 3, 12)
WEEK = (NOW.date() - dt.date(1970, 1, 5)).days // 7
#: How views ask for the week of the clock.
THIS_WEEK = "current_week()"

#: What customers differ in: so many of each, counted from 0.
ZIPS, REGIONS, TYPES, CATEGORIES, VALUE_TYPES = 1_000, 25, 4, 3, 4
#: A tenth of the customers makes half of the calls; one call in fifty is of last week, and comes late.
BUSY, BUSY_CALLS, LATE = 0.1, 0.5, 0.02
LONG_DISTANCE = 0.3
#: So many batches are different; then they come again.
DIFFERENT = 64

EVENTS = """entity_id BIGINT NOT NULL, week INT NOT NULL, duration INT NOT NULL, cost INT NOT NULL, local_calls INT,
    long_distance BOOLEAN NOT NULL, long_distance_cost INT NOT NULL, local_cost INT NOT NULL"""
CUSTOMERS = """id BIGINT NOT NULL, city_zip INT NOT NULL, region_id INT NOT NULL, type INT NOT NULL,
    category INT NOT NULL, cell_value_type INT NOT NULL"""

_VIEWS = {
    "q1": """
        SELECT avg(t_duration) FROM (
            SELECT sum(duration) AS t_duration FROM events
            WHERE week = {week} GROUP BY entity_id
            HAVING count(local_calls) > 2)""",
    "q2": """
        SELECT max(max_cost) FROM (
            SELECT max(cost) AS max_cost FROM events
            WHERE week = {week} GROUP BY entity_id
            HAVING count(*) > 2)""",
    "q3": """
        SELECT sum(t_cost) / sum(t_duration) AS cost_ratio
        FROM (
            SELECT sum(cost) AS t_cost, sum(duration) AS t_duration,
                count(*) AS num_calls FROM events
            WHERE week = {week} GROUP BY entity_id
        ) GROUP BY num_calls {limit}""",
    "q4": """
        SELECT city_zip, avg(num_calls), sum(duration_calls)
        FROM (
            SELECT entity_id, count(*) AS num_calls,
                sum(duration) AS duration_calls FROM events
            WHERE NOT long_distance AND week = {week}
            GROUP BY entity_id
            HAVING count(*) > 4 AND sum(duration) > 25
        ) e, customers c WHERE e.entity_id = c.id GROUP BY city_zip""",
    "q5": """
        SELECT c.region_id, sum(long_distance_cost)
            AS cost_long, sum(local_cost) AS cost_local
        FROM events e, customers c
        WHERE e.entity_id = c.id AND week = {week} AND
            c.type = 2 AND c.category = 1 GROUP BY c.region_id""",
    "q7": """
        SELECT sum(cost) / sum(duration)
        FROM events e, customers c WHERE e.entity_id = c.id AND
            c.cell_value_type = 2 AND week = {week}""",
}
NAMES = tuple(_VIEWS)


def views(week: str = THIS_WEEK) -> Mapping[str, str]:
    """The views as printed."""
    return {name: text.format(week=week, limit="LIMIT 100") for name, text in _VIEWS.items()}


def queries(events: str = "events") -> Mapping[str, str]:
    """The same for DuckDB, over any events; which hundred rows LIMIT takes is said there, as Headwater decides it."""
    filled = {name: text.format(week=WEEK, limit="ORDER BY ALL LIMIT 100") for name, text in _VIEWS.items()}
    return {name: text.replace("FROM events", f"FROM {events}") for name, text in filled.items()}


@dataclass(frozen=True)
class Calls:
    """Customers, and batches of their calls; everything follows from the seed."""

    entities: int
    rows: int
    seed: int = 1

    def customers(self) -> pa.Table:
        rng = np.random.default_rng([self.seed, 0])
        columns = {"id": np.arange(self.entities, dtype=np.int64)}
        kinds = {"city_zip": ZIPS, "region_id": REGIONS, "type": TYPES}
        for name, number in (kinds | {"category": CATEGORIES, "cell_value_type": VALUE_TYPES}).items():
            columns[name] = rng.integers(0, number, self.entities, dtype=np.int32)
        return pa.table(columns)

    def batch(self, number: int) -> pa.Table:
        """A batch of calls."""
        return _batch(self, number % DIFFERENT)


@functools.lru_cache(maxsize=DIFFERENT)
def _batch(calls: Calls, number: int) -> pa.Table:
    rng = np.random.default_rng([calls.seed, 1 + number])
    rows = calls.rows
    busy = max(1, round(calls.entities * BUSY))
    entity = np.where(rng.random(rows) < BUSY_CALLS, rng.integers(0, busy, rows), rng.integers(0, calls.entities, rows))
    duration = rng.integers(1, 600, rows, dtype=np.int32)
    cost = rng.integers(1, 500, rows, dtype=np.int32)
    far = rng.random(rows) < LONG_DISTANCE
    return pa.table(
        {
            "entity_id": entity.astype(np.int64),
            "week": (WEEK - (rng.random(rows) < LATE)).astype(np.int32),
            "duration": duration,
            "cost": cost,
            "local_calls": pa.array(np.ones(rows, np.int32), mask=far),
            "long_distance": far,
            "long_distance_cost": np.where(far, cost, np.int32(0)),
            "local_cost": np.where(far, np.int32(0), cost),
        }
    )
