"""Arithmetic on subscripts, against trying one subscript after the other."""

from __future__ import annotations

import ast

import pytest

from headwater.algebra.subscripts import VARIABLE, Subscript, from_json, holders, number
from headwater.sql.part_references import latest

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}


def subscript(text: str) -> Subscript:
    """An expression from its text."""

    def read(node: ast.expr) -> Subscript:
        match node:
            case ast.Name():
                return VARIABLE
            case ast.Constant(value=int(value)):
                return number(value)
            case ast.UnaryOp(operand=operand):
                return Subscript("-", (number(0), read(operand)))
            case ast.BinOp(left=left, op=op, right=right):
                return Subscript(_SIGNS[type(op)], (read(left), read(right)))
        raise AssertionError(ast.dump(node))

    return read(ast.parse(text.replace("/", "//"), mode="eval").body)


TEXTS = [
    "j", "j - 1", "j - 7", "3 * j", "3 * j + 2", "3 * (j - 1)", "j / 4", "j / 4 - 1", "(j + 1) / 4 - 1", "j - j % 3",
    "j - j % 3 - 1", "j % 5", "2 * (j / 2) - j % 2", "(2 * j - 2) / 2", "12", "-1 * j", "j + j % 4 - 3", "j * 2 / 3",
    "0 - j / 3",
]  # fmt: skip


@pytest.mark.parametrize("first", TEXTS)
def test_holders_are_those_that_are_found_one_by_one(first: str) -> None:
    a = subscript(first)
    for b in map(subscript, TEXTS):
        for begin, end in ((0, 40), (7, 8), (13, 31), (9, 9)):
            for part in range(-3, 70, 3):
                expected = [j for j in range(begin, end) if a.at(j) <= part <= b.at(j)]
                assert list(holders(a, b, part, begin, end)) == expected, (str(b), part, begin, end)


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_known_of_an_expression_holds(text: str) -> None:
    one = subscript(text)
    values = [one.at(j) for j in range(400)]
    assert from_json(one.to_json()) == one
    assert not one.rises or values == sorted(values)
    for j in range(60):
        assert values[j + one.period] - values[j] == one.slope * one.period
    for begin in (0, 5, 17):
        least = one.least_from(begin)
        assert least == min(values[begin:]) if one.slope >= 0 else least is None
        for value in range(-3, 50, 4):
            expected = next((j for j in range(begin, 60) if values[j] >= value), 60)
            assert one.first_to_reach(value, begin, 60) == expected


@pytest.mark.parametrize("first", TEXTS)
def test_distances_are_kept_where_that_is_said(first: str) -> None:
    a = subscript(first)
    for b in map(subscript, TEXTS):
        distances = {b.at(j) - a.at(j) for j in range(200)}
        assert a.keeps_distance(b) == (len(distances) == 1 and a.rises and b.rises), str(b)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("length", "own"), [(60, 60), (60, 180), (60, 240), (180, 60), (240, 60), (30, 60)])
def test_how_late_what_is_named_ends(text: str, length: int, own: int) -> None:
    one = subscript(text)
    found = latest(one, length, own)
    ends = [(one.at(j) + 1) * length - j * own for j in range(10**6, 10**6 + 3000)]
    if ends[-1] > ends[0] + 3000:  # it runs ahead
        assert found is None
    elif ends[-1] < ends[0] - 3000:  # it falls behind
        assert found == 0
    else:
        assert found == max(ends)
