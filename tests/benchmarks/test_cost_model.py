"""The cost model finds the terms that figures were made of, and no negative ones."""

from __future__ import annotations

import itertools

import pytest
from benchmarks.cost_model import TERMS, Model, Point, errors, fit, project
from benchmarks.tasks import cases, variants

from benchmarks import tasks

TRUE = {part: {name: 3.0 + i for i, name in enumerate(terms)} for part, terms in TERMS.items()}


def points() -> list[Point]:
    out = []
    for changes, partitions, state, sent in itertools.product((1e3, 1e4), (1, 2, 4), (10, 200), (1, 7)):
        bare = Point("q", 1.0, changes, partitions, 2, state, sent, {})
        out.append(Point("q", 1.0, changes, partitions, 2, state, sent, Model("q", TRUE).expected(bare)))
    return out


def test_terms_are_found_again() -> None:
    model = fit("q", points())
    for part, terms in TRUE.items():
        assert model.coefficients[part] == pytest.approx(terms)
    assert {row["off"] for row in errors(model, points())} <= {"+0%", "-0%"}


def test_no_term_is_negative() -> None:
    falling = [Point("q", 1, 1000 * i, 1, 2, 1, 1, dict.fromkeys(TERMS, 100.0 - i)) for i in range(1, 9)]
    model = fit("q", falling)
    assert all(value >= 0 for terms in model.coefficients.values() for value in terms.values())


def test_bounds_meet_on_one_node_and_part_on_many() -> None:
    one, many = project(Model("q", TRUE), points()[0], (1, 10), grows=True)
    assert one["at least s"] == one["at most s"]
    assert float(str(many["at least s"])) < float(str(many["at most s"]))


def test_twenty_views_differ() -> None:
    assert len(set(variants(20).values())) == 20
    assert [len(case.views) for case in cases(tasks.Options())] == [1, 1, 20]
