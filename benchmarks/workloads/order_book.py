"""A made-up order book: limit orders come and are cancelled.

The mid price is a random walk. An order lies away from it by a distance with a heavy tail, as most orders are near the
best price and some far off. Volumes are lots of 100, with a heavy tail too. Most orders are cancelled after a few
hundred events; one in eight stays long, and these make up the book. Prices and volumes are DECIMAL, as money is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.changes import Changes, Plan, Round, fitting

EVENTS = 1_000_000
BROKERS = 10
MID = 20_000.0
LOT = 100
#: How long an order stays, in events: the mean of those that are soon cancelled, and the share of the others.
SHORT_LIFE = 400
LONG_SHARE = 0.125
#: Distances from the mid price, in ticks: Pareto's scale and exponent.
DISTANCE, DISTANCE_TAIL = 40, 1.2
VOLUME_TAIL = 1.3
TABLES = ("Bids", "Asks")
MONEY = {"volume": pa.decimal128(6, 0), "price": pa.decimal128(8, 2)}
SCHEMA = "\n".join(
    f"CREATE TABLE {name} (t DOUBLE NOT NULL, id BIGINT NOT NULL, broker_id INT NOT NULL, "
    "volume DECIMAL(6,0) NOT NULL, price DECIMAL(8,2) NOT NULL);"
    for name in TABLES
)


class Book:
    """Orders and the events that they are: each comes once, and goes once if it goes before the end."""

    def __init__(self, resting: int, events: int = EVENTS, seed: int = 1) -> None:
        """Make up a book.

        Args:
            resting: about how many orders lie in each of the two books, once it has filled.
            events: how many there are, of both kinds.
            seed: the same seed makes the same book.
        """
        rng = np.random.default_rng(seed)
        orders = events
        came = np.arange(orders) * 2.0  # in the long run every second event is a cancellation
        long_life = max(4.0 * resting - (1 - LONG_SHARE) * SHORT_LIFE, SHORT_LIFE) / LONG_SHARE
        mean = np.where(rng.random(orders) < LONG_SHARE, long_life, SHORT_LIFE)
        went = came + 1 + rng.exponential(1.0, orders) * mean
        order = np.argsort(np.concatenate([came, went]), kind="stable")[:events]
        self._which = order % orders
        self._goes = order >= orders
        self._rows = _orders(rng, orders, np.arange(orders, dtype=np.float64))
        self._is_bid = rng.random(orders) < 0.5
        self.events = events

    def rounds(self, plans: list[Plan]) -> tuple[Changes, list[Round]]:
        """The book as all but the last events leave it, and epochs of these."""
        plans = fitting(plans, self.events // 2)
        position = self.events - sum(plan.total for plan in plans)
        load = self._load(position)
        rounds: list[Round] = []
        for plan in plans:
            epochs = []
            for _ in range(plan.warm_up + plan.measured):
                epochs.append(self._between(position, position + plan.changes))
                position += plan.changes
            rounds.append(Round(plan.changes, plan.warm_up, epochs))
        return load, rounds

    def _load(self, position: int) -> Changes:
        which, goes = self._which[:position], self._goes[:position]
        return Changes(self._by_side(np.setdiff1d(which[~goes], which[goes])))

    def _between(self, start: int, end: int) -> Changes:
        which, goes = self._which[start:end], self._goes[start:end]
        return Changes(self._by_side(which[~goes]), self._by_side(which[goes]))

    def _by_side(self, which: np.ndarray) -> dict[str, pa.Table]:
        sides = {"Bids": which[self._is_bid[which]], "Asks": which[~self._is_bid[which]]}
        return {name: self._side(name, rows) for name, rows in sides.items() if len(rows)}

    def _side(self, name: str, which: np.ndarray) -> pa.Table:
        made = {column: values[which] for column, values in self._rows.items()}
        away = made.pop("away") * (-1 if name == "Bids" else 1)
        price = np.maximum(1.0, made.pop("mid") + away)
        money = {"volume": made.pop("volume"), "price": price}
        return pa.table(made | {name: pa.array(values).cast(MONEY[name]) for name, values in money.items()})


def _orders(rng: np.random.Generator, orders: int, times: np.ndarray) -> dict[str, np.ndarray]:
    steps = rng.choice(np.array([-1.0, 0.0, 1.0]), orders, p=[0.2, 0.6, 0.2])
    lots = np.minimum(100, np.ceil(rng.pareto(VOLUME_TAIL, orders) + 0.001))
    return {
        "t": times,
        "id": np.arange(1, orders + 1),
        "broker_id": rng.integers(0, BROKERS, orders).astype(np.int32),
        "volume": lots * LOT,
        "mid": MID + np.cumsum(steps),
        "away": np.minimum(MID, np.ceil((rng.pareto(DISTANCE_TAIL, orders)) * DISTANCE + 0.5)),
    }
