"""Cutting a view into blocks: the printed blocks, and the same rows on random bags."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable

import pytest

from headwater.algebra.during import at
from headwater.algebra.evaluate import Bag
from headwater.algebra.evaluate import evaluate as evaluate_at_once
from headwater.algebra.nodes import Join, Node, Present, Scan
from headwater.algebra.read import read_node
from headwater.algebra.scalars import TRUE
from headwater.plan.blocks import cut, fuse_present
from headwater.plan.program import Map
from tests.algebra.random_trees import SCHEMAS, Bags, Schemas, random_bag, random_tree, reader
from tests.fixtures.pairs import Pair, check_pair, pairs

CASES = pairs("blocks")
CUTS = [pair for pair in CASES if pair.path.stem == "cut"]
FUSIONS = [pair for pair in CASES if pair.path.stem == "fuse_present"]


#: By which half of the moments that the random trees have are over.
MOMENT = dt.datetime(2000, 1, 1)


def evaluate(node: Node, contents: Callable[[Scan], Bag]) -> Bag:
    return evaluate_at_once(at(node, MOMENT), contents)


def maps_text(maps: tuple[Map, ...]) -> str:
    return "\n\n".join(
        f"{one.name}{f' after {one.coming.relation}' if one.coming else ''} :=\n{one.definition}" for one in maps
    )


def random_bags(seed: int, schemas: Schemas = SCHEMAS) -> dict[str, Bag]:
    rng = random.Random(seed)
    return {name: random_bag(rng, fields) for name, fields in schemas.items()}


def last_map(maps: tuple[Map, ...], bags: Bags) -> Bag:
    """The contents of the view, each map computed from those before it."""
    known = dict(bags)
    for one in maps:
        known[one.name] = evaluate(one.definition, reader(known))
    return known[maps[-1].name]


@pytest.mark.parametrize("pair", CUTS, ids=lambda pair: pair.id)
def test_cut(pair: Pair, update: bool) -> None:
    check_pair(pair, maps_text(cut("v", pair.tree)), update)


@pytest.mark.parametrize("pair", FUSIONS, ids=lambda pair: pair.id)
def test_fuse_present(pair: Pair, update: bool) -> None:
    check_pair(pair, str(fuse_present(pair.tree)), update)


@pytest.mark.parametrize("pair", CASES, ids=lambda pair: pair.id)
def test_blocks_mean_the_same_as_the_view(pair: Pair) -> None:
    for seed in range(6):
        bags = random_bags(seed, pair.schemas)
        expected = evaluate(pair.tree, reader(bags))
        assert evaluate(fuse_present(pair.tree), reader(bags)) == expected
        assert last_map(cut("v", pair.tree), bags) == expected


def below_present(node: Node) -> list[Node]:
    inner = node.input if isinstance(node, Present) else node
    return list(inner.walk())


@pytest.mark.parametrize("seed", range(40))
def test_random_views(seed: int) -> None:
    tree = random_tree(seed, depth=6, schemas={name: SCHEMAS[name] for name in ("r", "s")})
    maps = cut("v", tree)
    assert maps[-1].name == "v"
    for one in maps:
        assert not any(isinstance(node, Present) for node in below_present(one.definition))
    bags = random_bags(seed)
    assert last_map(maps, bags) == evaluate(tree, reader(bags))


def test_scans_of_blocks_do_not_clash_with_a_users_alias() -> None:
    groups = read_node("present[k := g](sum[g := q.a; ](r as q))", SCHEMAS)
    root = cut("v", Join(groups, Scan("r", "b1", SCHEMAS["r"]), TRUE))[-1].definition
    aliases = [node.alias for node in root.walk() if isinstance(node, Scan)]
    assert len(set(aliases)) == len(aliases)
