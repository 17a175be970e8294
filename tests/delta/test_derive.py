"""Delta rules: the printed terms of each case, and old + delta = new on random bags."""

from __future__ import annotations

import random

import pytest

from headwater.algebra.nodes import IllFormed, Scan, Version
from headwater.algebra.read import read_node
from headwater.delta.derive import derive
from tests.algebra.random_trees import SCHEMAS, TreeMaker, random_tree
from tests.delta.bags import States, added, measure, random_states, schemas_of
from tests.fixtures.pairs import Pair, check_pair, pairs, trees_text

CASES = pairs("delta")


@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.id)
def test_terms(pair: Pair, update: bool) -> None:
    check_pair(pair, trees_text(derive(pair.tree, pair.words["change"])), update)


@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.id)
def test_the_terms_lead_from_old_to_new(pair: Pair) -> None:
    terms = derive(pair.tree, pair.words["change"])
    for seed in range(8):
        states = random_states(random.Random(seed), pair.schemas, [pair.words["change"]])
        old, new = measure(pair.tree, states.read), measure(pair.tree, states.read_new)
        assert added([old, *(measure(term, states.read) for term in terms)]) == added([new])


@pytest.mark.parametrize("seed", range(60))
def test_random_linear_trees(seed: int) -> None:
    rng = random.Random(seed)
    schemas = {name: SCHEMAS[name] for name in ("r", "s")}
    maker = TreeMaker(rng, schemas, linear=True)
    tree = maker.map(4) if seed % 3 == 0 else maker.rows(4)
    for relation in schemas:
        states = random_states(rng, schemas, [relation])
        terms = derive(tree, relation)
        parts = [measure(tree, states.read), *(measure(term, states.read) for term in terms)]
        assert added(parts) == added([measure(tree, states.read_new)]), f"{relation} changes in\n{tree}"


@pytest.mark.parametrize("seed", range(30))
def test_an_epoch_is_one_step_per_relation(seed: int) -> None:
    """Relations whose step came before are read new, later ones still old; the steps add up to the whole change."""
    rng = random.Random(seed)
    tree = random_tree(seed, depth=5, linear=True, schemas={name: SCHEMAS[name] for name in ("r", "s")})
    schemas = schemas_of(tree)
    whole = random_states(rng, schemas, schemas)
    parts = [measure(tree, whole.read)]
    now = dict(whole.old)
    for relation in rng.sample(sorted(schemas), len(schemas)):
        step = States(now, {relation: whole.change[relation]})
        parts += [measure(term, step.read) for term in derive(tree, relation)]
        now = step.new
    assert added(parts) == added([measure(tree, whole.read_new)])


def test_each_term_starts_from_one_change() -> None:
    for seed in range(60):
        tree = random_tree(seed, linear=True)
        for relation in tree.relations:
            for term in derive(tree, relation):
                versions = [node.version for node in term.walk() if isinstance(node, Scan)]
                assert versions.count(Version.DELTA) == 1


def test_no_term_when_the_relation_is_not_read() -> None:
    assert derive(random_tree(3, linear=True), "somebody else") == ()


def test_present_is_not_linear() -> None:
    tree = read_node("present[n := #count](sum[; ](r as q))", SCHEMAS)
    with pytest.raises(IllFormed, match="Present is not linear"):
        derive(tree, "r")


@pytest.mark.parametrize("version", ["delta", "new"])
def test_a_delta_has_no_delta(version: str) -> None:
    with pytest.raises(IllFormed, match="the delta of a delta"):
        derive(read_node(f"{version} r as q", SCHEMAS), "r")
