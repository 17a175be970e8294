"""Expressions over one relation: what they become, and what is wrong with them."""

from __future__ import annotations

import pytest

from headwater import types as t
from headwater.algebra.functions import REGISTRY
from headwater.algebra.scalars import Cast, Literal
from headwater.errors import NotSupported, UserError
from tests.sql.shop import refused, scalar


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("id + 1", "o.id + 1"),
        ("ID + `qty`", "cast(o.id as BIGINT) + o.qty"),
        ("o.id", "o.id"),
        ("qty > 5", "o.qty > 5L"),
        ("price > 5", "o.price > {DECIMAL(10,2) '5.00'}"),
        ("id = 1 AND cust = 2 OR NOT qty < 3", "o.id = 1 and o.cust = 2 or not o.qty < 3L"),
        ("id == 1", "o.id = 1"),
        ("id != 1", "o.id <> 1"),
        ("id BETWEEN 1 AND 3", "o.id >= 1 and o.id <= 3"),
        ("id NOT BETWEEN 1 AND 3", "not (o.id >= 1 and o.id <= 3)"),
        ("cust IN (1, NULL)", "in(o.cust, 1, {INT null})"),
        ("cust NOT IN (1)", "not in(o.cust, 1)"),
        ("cust IS NULL", "o.cust is null"),
        ("cust IS NOT NULL", "o.cust is not null"),
        ("(id = 1) IS TRUE", "`is true`(o.id = 1)"),
        ("(id = 1) IS NOT FALSE", "`is not false`(o.id = 1)"),
        ("cust IS DISTINCT FROM 1", "not o.cust <=> 1"),
        ("cust IS NOT DISTINCT FROM 1", "o.cust <=> 1"),
        ("CASE WHEN id > 1 THEN 1 END", "case(o.id > 1, 1, {INT null})"),
        ("CASE id WHEN 1 THEN 'a' ELSE 'b' END", "case(o.id = 1, 'a', 'b')"),
        ("IF(id > 1, qty, 0)", "if(o.id > 1, o.qty, 0L)"),
        ("coalesce(qty, id)", "coalesce(o.qty, cast(o.id as BIGINT))"),
        ("-id", "negate(o.id)"),
        ("+id", "positive(o.id)"),
        ("id DIV 2", "div(cast(o.id as BIGINT), 2L)"),
        ("mod(id, 2)", "o.id % 2"),
        ("isnull(id)", "o.id is null"),
        ("id << 2", "shiftleft(o.id, 2)"),
        ("id & 1 | 2", "`|`(`&`(o.id, 1), 2)"),
        ("CAST(id AS BIGINT)", "cast(o.id as BIGINT)"),
        ("id::double", "cast(o.id as DOUBLE)"),
        ("bigint(id)", "cast(o.id as BIGINT)"),
        ("TRY_CAST(qty AS INT)", "try_cast(o.qty as INT)"),
        ("TRIM(BOTH 'x' FROM note)", "trim('x', o.note)"),
        ("TRIM(LEADING FROM note)", "ltrim(o.note)"),
        ("trim('x', note)", "trim('x', o.note)"),
        ("SUBSTRING(note FROM 2 FOR 3)", "substring(o.note, 2, 3)"),
        ("POSITION('a' IN note)", "position('a', o.note)"),
        ("OVERLAY(note PLACING 'x' FROM 2)", "overlay(o.note, 'x', 2)"),
        ("note || 'x'", "concat(o.note, 'x')"),
        ("tags['a']", "element(o.tags, 'a')"),
        ("array(id, 2)[0]", "element(array(o.id, 2), 0L)"),
        ("split(note, ',')[0]", "element(split(o.note, ','), 0L)"),
        ("struct(id, note AS n).n", "field(named_struct('id', o.id, 'n', o.note), 'n')"),
        ("note LIKE ANY ('a', 'b')", "like(o.note, 'a') or like(o.note, 'b')"),
        ("note NOT LIKE ALL ('a', 'b')", "not like(o.note, 'a') and not like(o.note, 'b')"),
        ("decode(id, 1, 'a', 'b')", "case(o.id <=> 1, 'a', 'b')"),
        ("equal_null(id, 1)", "o.id <=> 1"),
        ("try_to_date(note)", "try_cast(o.note as DATE)"),
        ("1 + 1", "2"),
        ("CAST(NULL AS INT)", "{INT null}"),
        ("transform(array(id), x -> x + qty)", "transform(array(o.id), lambda[$1 INT](cast($1 as BIGINT) + o.qty))"),
        ("transform(array(id), ID -> Id + o.id)", "transform(array(o.id), lambda[$1 INT]($1 + o.id))"),
        ("transform(array(note), (x, i) -> i)", "transform(array(o.note), lambda[$1 STRING, $2 INT]($2))"),
        (
            "aggregate(array(struct(id)), 0L, (s, `a b`) -> s + `a b`.id)",
            "aggregate(array(named_struct('id', o.id)), 0L,"
            " lambda[$1 BIGINT, $2 STRUCT<id: INT>]($1 + cast(field($2, 'id') as BIGINT)))",
        ),
        (
            "exists(array(id), x -> forall(array(cust), y -> x > y))",
            "exists(array(o.id), lambda[$1 INT](forall(array(o.cust), lambda[$2 INT]($1 > $2))))",
        ),
        (
            "exists(array(id), o -> forall(array(cust), o -> o > 1))",
            "exists(array(o.id), lambda[$1 INT](forall(array(o.cust), lambda[$2 INT]($2 > 1))))",
        ),
        ("filter(array(id), x -> NULL)", "filter(array(o.id), lambda[$1 INT]({BOOLEAN null}))"),
    ],
)
def test_an_expression_becomes_a_typed_scalar(text: str, bound: str) -> None:
    assert str(scalar(text)) == bound


def test_a_constant_that_fails_is_left_to_fail_when_a_row_asks_for_it() -> None:
    bound = scalar("CASE WHEN id > 0 THEN CAST(300 AS TINYINT) END")
    assert Cast(Literal(300, t.INT), t.TINYINT) in list(bound.walk())


@pytest.mark.parametrize(
    ("text", "code", "underlined", "message"),
    [
        ("id + idd", "HW101", "idd", "there is no column idd"),
        ("p.id = 1", "HW102", "p", "no relation in this FROM clause is called p"),
        ("a.b.c = 1", "HW101", "a.b.c", "a.b.c has too many parts"),
        ("id = 1 AND frobnicate(id)", "HW121", "frobnicate(id)", "there is no function FROBNICATE"),
        ("coalesce()", "HW122", "coalesce()", "COALESCE: takes at least 1 argument"),
        ("tags = tags", "HW122", "tags = tags", "=: values of type MAP<STRING, INT> cannot be compared"),
        ("NOT id", "HW122", "id", "NOT: takes (BOOLEAN), not (INT)"),
        ("CASE WHEN id THEN 1 END", "HW112", "id", "WHEN needs a condition, and this is INT"),
        ("sum(id) > 3", "HW123", "sum(id)", "SUM cannot stand in a row's expression"),
        ("CAST(tags AS INT)", "HW130", "CAST(tags AS INT)", "MAP<STRING, INT> cannot be converted to INT"),
        ("count(*)", "HW123", "count(*)", "COUNT cannot stand in a row's expression"),
        ("nvl(*, 1)", "HW122", "*", "* stands for columns only in a select list and in COUNT(*)"),
        ("transform(array(id), 5)", "HW122", "5", "TRANSFORM: takes a lambda here"),
        ("aggregate(array(id), 0, x -> x)", "HW122", "x -> x", "AGGREGATE: takes a lambda of 2 parameters, not 1"),
        ("transform(array(id), (x, X) -> 1)", "HW122", "X", "two parameters of a lambda are called X"),
        ("transform(array(id), x -> y + x)", "HW101", "y", "there is no column y"),
        ("transform(array(id), x -> x.a)", "HW122", "x.a", "x.a: only a STRUCT has fields, not INT"),
        ("transform(id, x -> x)", "HW122", "transform(id, x -> x)", "TRANSFORM: takes an ARRAY, not INT"),
        ("transform(array(id), x -> x) = x", "HW101", "x", "there is no column x"),
    ],
)
def test_a_mistake_is_named_and_underlined(text: str, code: str, underlined: str, message: str) -> None:
    found_code, place, found = refused(text, scalar)
    assert (found_code, place) == (code, underlined)
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("text", "code", "underlined"),
    [
        ("id IN (SELECT 1)", "HW204", "id IN (SELECT 1)"),
        ("EXISTS (SELECT 1)", "HW204", "EXISTS (SELECT 1)"),
        ("id = (SELECT 1)", "HW204", "(SELECT 1)"),
        ("sum(id) OVER (ORDER BY id) > 1", "HW137", "sum(id) OVER (ORDER BY id)"),
        ("row_number() > 1", "HW138", "row_number()"),
        ("rand() > 0.5", "HW206", "rand()"),
        ("uuid()", "HW206", "uuid()"),
        ("uuid() = note", "HW206", "uuid()"),
        ("explode(tags)", "HW207", "explode(tags)"),
        ("upper(x -> x)", "HW209", "x -> x"),
        ("array_sort(array(id), (x, y) -> x - y)", "HW209", "(x, y) -> x - y"),
        ("id -> id", "HW209", "id -> id"),
        ("zip_with(array(id), array(id), (x, y) -> x)", "HW211", "zip_with(array(id), array(id), (x, y) -> x)"),
        ("transform(array(id), x -> sum(x))", "HW123", "sum(x)"),
        ("transform(array(id), x -> sum(id) OVER (ORDER BY id))", "HW137", "sum(id) OVER (ORDER BY id)"),
        ("transform(array(id), x -> (SELECT 1))", "HW204", "(SELECT 1)"),
        ("transform(array(id), x -> x IN (SELECT 1))", "HW204", "x IN (SELECT 1)"),
        ("note COLLATE UTF8_LCASE = 'a'", "HW209", "note"),
        ("xpath(note, 'a')", "HW211", "xpath(note, 'a')"),
        ("get_json_object(note, 'a')", "HW211", "get_json_object(note, 'a')"),
        ("max(id) > 1", "HW123", "max(id)"),
        ("sum(DISTINCT id)", "HW123", "sum(DISTINCT id)"),
        ("CAST(note AS TIMESTAMP_NTZ)", "HW263", "TIMESTAMP_NTZ"),
        ("CAST(weight AS STRING)", "HW214", "CAST(weight AS STRING)"),
    ],
)
def test_what_is_not_supported_says_so_where_it_stands(text: str, code: str, underlined: str) -> None:
    assert refused(text, scalar)[:2] == (code, underlined)


@pytest.mark.parametrize(
    "text",
    [
        "1 | 2 & 4",  # Spark: 1 | (2 & 4); sqlglot: (1 | 2) & 4
        "'a' || 1 + 2",  # Spark: ('a' || 1) + 2
        "true = 1 < 2",  # Spark: (true = 1) < 2
        "true = cust IN (1)",  # Spark: (true = cust) IN (1)
        "1 ^ 2 & 3",
    ],
)
def test_operators_that_sqlglot_groups_otherwise_want_parentheses(text: str) -> None:
    assert refused(text, scalar)[:2] == ("HW210", text)


@pytest.mark.parametrize("text", ["true = (1 < 2)", "true = (cust IN (1))", "1 < 2 = true", "cust IN (1) = true"])
def test_operators_with_parentheses_are_fine(text: str) -> None:
    assert scalar(text).type == t.BOOLEAN


def test_an_error_suggests_the_name_that_was_meant() -> None:
    with pytest.raises(UserError) as caught:
        scalar("pric > 1")
    assert caught.value.hint == "did you mean price?"
    with pytest.raises(UserError) as caught:
        scalar("coalesc(id, 1)")
    assert caught.value.hint == "did you mean coalesce?"


def test_functions_the_compiler_makes_for_itself_cannot_be_called() -> None:
    internal = [name for name, function in REGISTRY.items() if function.internal and name != "now"]
    assert internal
    for name in internal:
        assert refused(f"{name}(1)", scalar)[0] in ("HW121", "HW211")


def test_not_supported_and_mistakes_are_told_apart() -> None:
    with pytest.raises(NotSupported):
        scalar("rand()")
    with pytest.raises(UserError):
        scalar("no_such_thing(1)")
