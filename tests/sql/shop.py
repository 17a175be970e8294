"""A small catalogue for the tests of binding and lowering, and short ways to bind against it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

import pytest
from sqlglot import exp

from headwater import types as t
from headwater.algebra.evaluate import Bag, evaluate
from headwater.algebra.nodes import Node, Scan
from headwater.algebra.read import read_node
from headwater.algebra.scalars import Scalar
from headwater.errors import HeadwaterError, Source
from headwater.sql.bind import bind_row_scalar
from headwater.sql.dialect import new_parser
from headwater.sql.lower import Answer, lower_answer, lower_rows, lower_view
from headwater.sql.reading import split_statements
from headwater.sql.scope import RelationInfo

ORDERS = RelationInfo(
    "orders",
    (
        t.Field("id", t.INT, False),
        t.Field("cust", t.INT),
        t.Field("price", t.Decimal(10, 2)),
        t.Field("qty", t.BIGINT),
        t.Field("note", t.STRING),
        t.Field("day", t.DATE),
        t.Field("weight", t.DOUBLE),
        t.Field("tags", t.Map(t.STRING, t.INT)),
    ),
)
CUSTOMERS = RelationInfo(
    "Customers", (t.Field("id", t.INT, False), t.Field("name", t.STRING), t.Field("nation", t.STRING)), since=3
)


class Shop:
    """Two relations."""

    def find(self, name: str) -> RelationInfo | None:
        return {"orders": ORDERS, "customers": CUSTOMERS}.get(name)

    def synchronised(self, name: str, policy: str) -> RelationInfo | None:
        return None

    def names(self) -> Iterable[str]:
        return ["orders", "Customers"]


SHOP = Shop()
CONTENTS: dict[str, Bag] = {
    "orders": Counter(
        [
            (1, 1, Decimal("1.50"), 5, "a", dt.date(2020, 1, 1), 1.5, None),
            (2, 1, Decimal("2.25"), None, "b", None, float("nan"), None),
            (3, 2, None, 7, None, None, float("inf"), None),
            (4, None, Decimal("9.99"), -3, "a", None, None, None),
            (4, None, Decimal("9.99"), -3, "a", None, None, None),
        ]
    ),
    "Customers": Counter([(1, "ann", "x"), (2, "bob", None), (9, "zed", "y")]),
}


def parse(text: str) -> exp.Expr:
    source = Source(text)
    parser = new_parser()
    parser.begin(source, split_statements(source)[0])
    tree = parser.query()
    parser.end()
    return tree


def view(text: str) -> Node:
    return lower_view(parse(text), SHOP, Source(text))


def answer(text: str) -> Answer:
    return lower_answer(parse(text), SHOP, Source(text))


def inserted(text: str, *target: t.Field) -> Node:
    return lower_rows(parse(text), target, SHOP, Source(text))


def scalar(text: str) -> Scalar:
    """An expression over the rows of orders."""
    source = Source(text)
    parser = new_parser()
    parser.begin(source, split_statements(source)[0])
    tree = parser.scalar("an expression")
    parser.end()
    return bind_row_scalar(tree, "o", ORDERS, source)


def rows(node: Node) -> Bag:
    def contents(scan: Scan) -> Bag:
        return CONTENTS[scan.relation]

    return evaluate(node, contents)


def tree(text: str) -> str:
    """The lowered view as text, to compare with `lines`."""
    return str(view(text))


def lines(text: str) -> str:
    """An expected tree, written in a test with whatever breaks and blanks read best, as it prints."""
    return str(read_node(text, {info.name: info.fields for info in (ORDERS, CUSTOMERS)}))


def refused(text: str, how: object = view) -> tuple[str, str, str]:
    """The code, the underlined text and the message of the error a query gives."""
    with pytest.raises(HeadwaterError) as caught:
        how(text)  # type: ignore[operator]
    error = caught.value
    assert error.span is not None, error
    assert error.source is not None, error
    return error.code, text[error.span.start : error.span.end], error.message
