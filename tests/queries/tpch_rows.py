"""Made-up rows of TPC-H whose values are those that the 22 queries look for, so that their answers are not empty."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from .harness import Row, Suite

FOLDER = Path(__file__).parent / "tpch"
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = ("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA", "INDIA", "KENYA")
REGION_OF = {"FRANCE": 4, "GERMANY": 4, "BRAZIL": 2, "CANADA": 2, "SAUDI ARABIA": 5, "CHINA": 3, "INDIA": 3, "KENYA": 1}
TYPES = ("ECONOMY ANODIZED STEEL", "SMALL PLATED BRASS", "PROMO BURNISHED BRASS", "MEDIUM POLISHED TIN")
BRANDS = ("Brand#12", "Brand#23", "Brand#34", "Brand#45")
CONTAINERS = ("SM CASE", "MED BOX", "MED BAG", "LG PKG")
WORDS = ("quick", "special", "packages", "requests", "Customer", "Complaints", "deposits")
#: The months that queries ask for.
MONTHS = ((1993, 8), (1993, 11), (1994, 3), (1994, 10), (1995, 2), (1995, 3), (1995, 9), (1996, 2), (1998, 11))


def _money(rng: random.Random, low: float, high: float) -> Decimal:
    return Decimal(rng.randint(int(low * 100), int(high * 100))).scaleb(-2)


def _comment(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=4))


def _date(rng: random.Random) -> dt.date:
    return dt.date(*rng.choice(MONTHS), rng.randint(1, 28))


def suite(scale: int = 1) -> Suite:
    """The 22 queries, over tables of some multiple of about 250 rows."""
    suppliers, parts, customers, orders = 8 * scale, 16 * scale, 20 * scale, 50 * scale

    def region(rng: random.Random, number: int) -> Row:
        return {"r_regionkey": number, "r_name": REGIONS[(number or rng.randint(1, 5)) % 5 - 1], "r_comment": None}

    def nation(rng: random.Random, number: int) -> Row:
        name = NATIONS[(number or rng.randint(1, 8)) % 8 - 1]
        return {"n_nationkey": number, "n_name": name, "n_regionkey": REGION_OF[name], "n_comment": _comment(rng)}

    def part(rng: random.Random, number: int) -> Row:
        return {
            "p_partkey": number,
            "p_name": f"{rng.choice(('forest', 'green', 'misty'))} {rng.choice(('green', 'red'))}",
            "p_mfgr": f"Manufacturer#{rng.randint(1, 3)}",
            "p_brand": rng.choice(BRANDS),
            "p_type": rng.choice(TYPES),
            "p_size": rng.choice((3, 5, 9, 14, 15, 15)),
            "p_container": rng.choice(CONTAINERS),
            "p_retailprice": _money(rng, 900, 2000),
            "p_comment": _comment(rng),
        }

    def supplier(rng: random.Random, number: int) -> Row:
        return {
            "s_suppkey": number,
            "s_name": f"Supplier#{number}",
            "s_address": _comment(rng),
            "s_nationkey": rng.randint(1, 8),
            "s_phone": _phone(rng),
            "s_acctbal": _money(rng, -999, 9999),
            "s_comment": _comment(rng),
        }

    def partsupp(rng: random.Random, number: int) -> Row:
        return {
            "ps_partkey": rng.randint(1, parts),
            "ps_suppkey": rng.randint(1, suppliers),
            "ps_availqty": rng.randint(1, 300),
            "ps_supplycost": _money(rng, 1, 1000),
            "ps_comment": _comment(rng),
        }

    def customer(rng: random.Random, number: int) -> Row:
        return {
            "c_custkey": number,
            "c_name": f"Customer#{number}",
            "c_address": _comment(rng),
            "c_nationkey": rng.randint(1, 8),
            "c_phone": _phone(rng),
            "c_acctbal": _money(rng, -999, 9999),
            "c_mktsegment": rng.choice(("BUILDING", "BUILDING", "MACHINERY")),
            "c_comment": _comment(rng),
        }

    def order(rng: random.Random, number: int) -> Row:
        return {
            "o_orderkey": number,
            "o_custkey": rng.randint(1, customers * 3 // 2),
            "o_orderstatus": rng.choice("FFO"),
            "o_totalprice": _money(rng, 900, 5000),
            "o_orderdate": _date(rng),
            "o_orderpriority": rng.choice(("1-URGENT", "2-HIGH", "3-MEDIUM")),
            "o_clerk": f"Clerk#{rng.randint(1, 9)}",
            "o_shippriority": 0,
            "o_comment": _comment(rng),
        }

    def lineitem(rng: random.Random, number: int) -> Row:
        ship = _date(rng)
        return {
            "l_orderkey": rng.randint(1, orders),
            "l_partkey": rng.randint(1, parts),
            "l_suppkey": rng.randint(1, suppliers),
            "l_linenumber": number,
            "l_quantity": Decimal(rng.choice((1, 2, 5, 12, 15, 23, 25, 49, 160))),
            "l_extendedprice": _money(rng, 900, 90000),
            "l_discount": Decimal(rng.randint(0, 10)).scaleb(-2),
            "l_tax": Decimal(rng.randint(0, 8)).scaleb(-2),
            "l_returnflag": rng.choice("RAN"),
            "l_linestatus": rng.choice("OF"),
            "l_shipdate": ship,
            "l_commitdate": ship + dt.timedelta(rng.randint(-20, 30)),
            "l_receiptdate": ship + dt.timedelta(rng.randint(1, 30)),
            "l_shipinstruct": rng.choice(("DELIVER IN PERSON", "DELIVER IN PERSON", "NONE")),
            "l_shipmode": rng.choice(("AIR", "AIR REG", "MAIL", "SHIP")),
            "l_comment": _comment(rng),
        }

    makers: dict[str, Callable[[random.Random, int], Row]] = {
        "region": region,
        "nation": nation,
        "part": part,
        "supplier": supplier,
        "partsupp": partsupp,
        "customer": customer,
        "orders": order,
        "lineitem": lineitem,
    }
    sizes = {"region": 5, "nation": 8, "part": parts, "supplier": suppliers, "partsupp": parts * 3}
    sizes |= {"customer": customers, "orders": orders, "lineitem": orders * 4}
    return Suite(FOLDER, makers, sizes)


def _phone(rng: random.Random) -> str:
    return f"{rng.choice((13, 31, 23, 29, 11))}-{rng.randint(100, 999)}"
