"""Made-up rows for the queries of Ahmad et al., "DBToaster", appendix A."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

from .harness import Row, Suite

FOLDER = Path(__file__).parent / "dbtoaster"
BROKERS = 4


def _key(rng: random.Random, most: int) -> int | None:
    return rng.randint(1, most) if rng.random() < 0.97 else None


def _money(rng: random.Random, low: int, high: int) -> Decimal:
    return Decimal(rng.randint(low * 100, high * 100)).scaleb(-2)


def _book(rng: random.Random, number: int) -> Row:
    """An order; volumes and prices are quarters, whose sums and products are exact as DOUBLE."""
    return {
        "t": float(number or rng.randint(1, 200)),
        "id": number,
        "broker_id": _key(rng, BROKERS),
        "volume": rng.randint(1, 400) / 4,
        "price": rng.choice((1, 1, 1, 6)) * rng.randint(400, 2000) / 4 if rng.random() < 0.97 else None,
    }


def suite(scale: int = 1, book: int = 40) -> Suite:
    """The queries of the appendix, over some multiple of about 250 rows, and as many orders in each book as told."""
    customers, orders, parts, suppliers = 15 * scale, 40 * scale, 8 * scale, 6 * scale

    def customer(rng: random.Random, number: int) -> Row:
        key, segment = number or _key(rng, customers), rng.choice(("BUILDING", "MACHINERY"))
        return {"custkey": key, "nationkey": _key(rng, 5), "acctbal": _money(rng, -99, 999), "mktsegment": segment}

    def order(rng: random.Random, number: int) -> Row:
        when = dt.date(rng.choice((1995, 1997)), rng.randint(1, 4), rng.randint(1, 28))
        key = number or _key(rng, orders)
        return {"orderkey": key, "custkey": _key(rng, customers * 3 // 2), "orderdate": when, "shippriority": 0}

    def lineitem(rng: random.Random, number: int) -> Row:
        return {
            "orderkey": _key(rng, orders),
            "partkey": _key(rng, parts),
            "suppkey": _key(rng, suppliers),
            "quantity": Decimal(rng.choice((1, 2, 10, 40, 70, 150))).scaleb(0),
            "extendedprice": _money(rng, 9, 900),
            "discount": Decimal(rng.randint(0, 10)).scaleb(-2),
            "shipdate": dt.date(1995, rng.randint(2, 5), rng.randint(1, 28)),
        }

    def part(rng: random.Random, number: int) -> Row:
        return {"partkey": number or _key(rng, parts), "type": rng.choice(("TIN", "BRASS", "STEEL"))}

    def partsupp(rng: random.Random, number: int) -> Row:
        cost, available = _money(rng, 1, 100), rng.randint(1, 99)
        return {"partkey": _key(rng, parts), "suppkey": _key(rng, suppliers), "supplycost": cost, "availqty": available}

    def supplier(rng: random.Random, number: int) -> Row:
        return {"suppkey": number or _key(rng, suppliers), "nationkey": _key(rng, 5)}

    def nation(rng: random.Random, number: int) -> Row:
        return {"nationkey": number or _key(rng, 5), "regionkey": _key(rng, 3)}

    makers = {"Bids": _book, "Asks": _book, "Customer": customer, "Orders": order, "Lineitem": lineitem}
    makers |= {"Part": part, "Partsupp": partsupp, "Supplier": supplier, "Nation": nation}
    sizes = {"Bids": book, "Asks": book, "Customer": customers, "Orders": orders, "Lineitem": orders * 4}
    sizes |= {"Part": parts, "Partsupp": parts * 2, "Supplier": suppliers, "Nation": 5}
    return Suite(FOLDER, makers, sizes)
