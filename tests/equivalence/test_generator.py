"""The generator itself: deterministic, readable, replayable, and covering what it claims to."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from headwater import types as t

from .bags import Bags, Refused, repaired
from .case import Case, Operation, Relation, View, parse_script
from .check import nearly
from .generate import expected_types, generate, make_case
from .grammar import CONSTRUCTS
from .subject import Headwater
from .test_equivalence import chosen_seeds
from .values import NAN, canonical_row

MANY = range(400)


def test_a_seed_always_gives_the_same_case() -> None:
    """Also in another process, where sets of strings come in another order."""
    program = "import sys; from tests.equivalence.generate import make_case; sys.stdout.write(str(make_case(7)))"
    here = Path(__file__).resolve().parents[2]
    paths = [str(here), *sys.path]
    for hash_seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(paths), "PYTHONIOENCODING": "utf-8"}
        told = subprocess.run(
            [sys.executable, "-c", program],
            cwd=here,
            env=environment,
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        assert told.stdout == str(make_case(7))


def test_every_script_reads_back_as_its_case() -> None:
    for seed in MANY:
        case = make_case(seed)
        assert parse_script(str(case)) == case


def test_every_construct_occurs() -> None:
    left = set(CONSTRUCTS)
    for seed in range(3000):
        left -= generate(seed)[1].keys()
        if not left:
            break
    assert not left


def test_most_views_can_be_asked_of_duckdb_too() -> None:
    views = [view for seed in MANY for view in make_case(seed).views]
    assert sum(view.duckdb for view in views) > 0.4 * len(views)


def test_a_script_reads_as_sql_and_rows() -> None:
    columns = (t.Field("a", t.INT), t.Field("d", t.Decimal(5, 2)), t.Field("x", t.DOUBLE))
    case = Case(
        3,
        (Relation("t0", "TABLE", columns),),
        (View("v0", "SELECT a FROM t0", "recompute"), View("v1", "SELECT * FROM v0", created=1, duckdb=False)),
        (
            (Operation("insert", "t0", ((1, Decimal("1.50"), NAN), (None, None, 0.25))),),
            (Operation("update", "t0", assign=(("a", 2),), where=(("d", None),)),),
            (),
        ),
    )
    assert str(case) == (
        "# seed 3\n"
        "CREATE TABLE t0 (a INT, d DECIMAL(5,2), x DOUBLE);\n"
        "CREATE VIEW v0 STRATEGY 'recompute' AS SELECT a FROM t0;\n"
        "epoch  # 1\n"
        "  insert t0\n"
        '    [1, "1.50", "NaN"]\n'
        "    [null, null, 0.25]\n"
        "CREATE VIEW v1 AS SELECT * FROM v0;  # not on duckdb\n"
        "epoch  # 2\n"
        '  update t0 {"set": {"a": 2}, "where": {"d": null}}\n'
        "epoch  # 3\n"
    )
    assert parse_script(str(case)) == case
    assert case.epochs[1][0].sql(case.relations[0]) == "UPDATE t0 SET a = 2 WHERE d IS NULL"


def test_bags_know_copies_and_keys() -> None:
    bag = Relation("t0", "TABLE", (t.Field("a", t.INT),))
    keyed = Relation("t1", "TABLE", (t.Field("k", t.INT, False), t.Field("a", t.INT)), key=("k",))
    bags = Bags({"t0": bag, "t1": keyed})
    assert bags.apply((Operation("insert", "t0", ((1,), (1,))),)) == {"t0": Counter({(1,): 2})}
    assert bags.apply((Operation("delete", "t0", ((1,),)),)) == {"t0": Counter({(1,): -1})}
    with pytest.raises(Refused):
        bags.apply((Operation("delete", "t0", ((1,), (1,))),))
    bags.apply((Operation("upsert", "t1", ((1, 10), (2, 20))),))
    assert bags.apply((Operation("upsert", "t1", ((1, 11),)),)) == {"t1": Counter({(1, 11): 1, (1, 10): -1})}
    with pytest.raises(Refused):
        bags.apply((Operation("insert", "t1", ((2, 0),)),))


def test_repair_removes_only_what_the_state_refuses() -> None:
    relation = Relation("t0", "TABLE", (t.Field("a", t.INT),))
    epochs = (
        (Operation("insert", "t0", ((1,),)),),
        (Operation("delete", "t0", ((1,), (1,), (2,))), Operation("delete", "t0", ((3,),))),
    )
    case = repaired(Case(0, (relation,), (), epochs))
    assert case.epochs == (epochs[0], (Operation("delete", "t0", ((1,),)),))


def test_nearly_forgives_rounding_and_nothing_else() -> None:
    assert not nearly(Counter([(0.1 + 0.2, "a")]), Counter([(0.3, "a")]))
    assert not nearly(Counter([canonical_row((float("nan"),))]), Counter([canonical_row((float("nan"),))]))
    assert nearly(Counter([(0.30001, "a")]), Counter([(0.3, "a")]))
    assert nearly(Counter([(0.3, "a")]), Counter([(0.3, "b")]))
    assert nearly(Counter([(0.3,), (0.3,)]), Counter([(0.3,)]))
    assert nearly(Counter([(1,)]), Counter([(2,)]))


def test_seeds_are_numbers_and_ranges() -> None:
    assert chosen_seeds("17") == [17]
    assert chosen_seeds("3,8-10") == [3, 8, 9, 10]


def test_headwater_derives_the_types_that_the_generator_expects() -> None:
    """Two reckonings of Spark's rules, made apart."""
    for seed in range(60):
        case, expected = make_case(seed), expected_types(seed)
        subject = Headwater()
        for relation in case.relations:
            subject.define(relation)
        for view in case.views:
            subject.create_view(view)
            derived = tuple(field.type for field in subject.algebra(view.name).schema)
            assert derived == expected[view.name], f"seed {seed}, {view.sql}"
        subject.close()
