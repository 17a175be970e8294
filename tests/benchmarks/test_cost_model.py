"""The cost model finds the terms that figures were made of, and no negative ones."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from benchmarks.cost_model import TERMS, Model, Point, errors, fit, project
from benchmarks.disk import processor_seconds_by_kind
from benchmarks.tasks import cases, variants

from benchmarks import tasks

TRUE = {part: {name: 3.0 + i for i, name in enumerate(terms)} for part, terms in TERMS.items()}


def points() -> list[Point]:
    out = []
    sizes = itertools.product((1e3, 1e4), ((1, 1), (2, 2), (1, 4), (2, 4)), (10, 200), (1, 7))
    for changes, (executors, partitions), state, sent in sizes:
        bare = Point("q", 1.0, changes, executors, partitions, 2, state, sent, {})
        out.append(replace(bare, took_ms=Model("q", TRUE).expected(bare)))
    return out


def test_terms_are_found_again() -> None:
    model = fit("q", points())
    for part, terms in TRUE.items():
        assert model.coefficients[part] == pytest.approx(terms)
    assert {row["off"] for row in errors(model, points())} <= {"+0%", "-0%"}


def test_no_term_is_negative() -> None:
    falling = [Point("q", 1, 1000 * i, 1, 1, 2, 1, 1, dict.fromkeys(TERMS, 100.0 - i)) for i in range(1, 9)]
    model = fit("q", falling)
    assert all(value >= 0 for terms in model.coefficients.values() for value in terms.values())


def test_nodes_share_what_they_do_side_by_side() -> None:
    """One partition a node: what executors and workers do is each node's own share; home has all of it to do."""
    one, many = project(Model("q", TRUE), points()[0], (1, 10), grows=True)
    assert one["executors s, each"] == many["executors s, each"]
    assert one["task s"] == many["task s"]
    assert float(str(many["home s"])) > float(str(one["home s"]))


def test_the_clock_of_one_node_is_all_parts_in_turn() -> None:
    alone = Point("q", 1.0, 1e4, 1, 1, 2, 10, 1, dict.fromkeys(TERMS, 5.0))
    assert alone.by_the_clock(alone.took_ms) == 25.0
    assert replace(alone, partitions=4).by_the_clock(alone.took_ms) == 40.0  # tasks wait for each other
    assert replace(alone, executors=5, partitions=5).by_the_clock(alone.took_ms) == 17.0


def test_processors_are_told_apart_by_process() -> None:
    before = processor_seconds_by_kind()
    while processor_seconds_by_kind()["home"] < before["home"] + 0.05:
        sum(range(10_000))
    after = processor_seconds_by_kind()
    assert after["home"] > before["home"]
    assert after["executors"] == before["executors"]


def test_twenty_views_differ() -> None:
    assert len(set(variants(20).values())) == 20
    assert [len(case.views) for case in cases(tasks.Options())] == [1, 1, 20]
