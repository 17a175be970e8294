"""Rewrites as files of before/after pairs: the printed result, and the same rows on random bags."""

from __future__ import annotations

import datetime as dt
import importlib
import random
from collections.abc import Callable

import pytest

from headwater.algebra import simplify as package
from headwater.algebra.during import at
from headwater.algebra.evaluate import Bag, evaluate
from headwater.algebra.functions.errors import EvaluationError
from headwater.algebra.nodes import Node
from headwater.algebra.simplify import REWRITES, simplify
from tests.algebra.random_trees import SCHEMAS, Bags, random_bag, random_tree, reader
from tests.fixtures.pairs import Pair, check_pair, pairs

CASES = pairs("simplify")
#: What the clock reads.
MOMENT = dt.datetime(2000, 1, 1)


def rule_of(pair: Pair) -> Callable[[Node], Node]:
    """The rewrite that a file is named after."""
    module = importlib.import_module(f"{package.__name__}.{pair.path.stem}")
    rule: Callable[[Node], Node] = getattr(module, pair.path.stem)
    return rule


def rows(node: Node, bags: Bags) -> Bag | None:
    """The rows of a tree; None where it fails."""
    try:
        return evaluate(at(node, MOMENT), reader(bags))
    except EvaluationError:
        return None


def random_bags(seed: int, pair: Pair) -> Bags:
    return {name: random_bag(random.Random(seed), fields) for name, fields in pair.schemas.items()}


@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.id)
def test_rewrite(pair: Pair, update: bool) -> None:
    check_pair(pair, str(rule_of(pair)(pair.tree)), update)


@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.id)
def test_a_rewrite_means_the_same(pair: Pair) -> None:
    after = rule_of(pair)(pair.tree)
    assert [(f.name, f.type) for f in after.schema] == [(f.name, f.type) for f in pair.tree.schema]
    compared = 0
    for seed in range(8):
        bags = random_bags(seed, pair)
        expected = rows(pair.tree, bags)
        if expected is not None:  # what failed before may fail or not; what worked must work
            assert rows(after, bags) == expected
            compared += 1
    assert compared or pair.words.get("always") == "fails", "this case fails on all bags and so shows nothing"


@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.id)
def test_a_second_time_changes_nothing(pair: Pair) -> None:
    once = rule_of(pair)(pair.tree)
    assert rule_of(pair)(once) == once


def test_every_rewrite_has_a_file() -> None:
    assert {rule.__name__ for rule in REWRITES} == {pair.path.stem for pair in CASES}


@pytest.mark.parametrize("seed", range(40))
def test_random_trees_mean_the_same_after_all_rewrites(seed: int) -> None:
    tree = random_tree(seed, depth=5, schemas={name: SCHEMAS[name] for name in ("r", "s")})
    after = simplify(tree)
    for one in range(3):
        rng = random.Random(seed * 10 + one)
        bags = {name: random_bag(rng, fields) for name, fields in SCHEMAS.items()}
        assert rows(after, bags) == rows(tree, bags), f"{tree}\nbecame\n{after}"
