"""Random views against Spark SQL itself: the same text over the same rows must give the same rows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.equivalence.bags import Bags
from tests.equivalence.case import Case
from tests.equivalence.check import nearly
from tests.equivalence.generate import make_case
from tests.equivalence.subject import Headwater
from tests.spark.references import ask, make_table

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.xdist_group("queries on spark")]

#: Spark takes a second for a case, so only the last epoch is compared, and few cases.
SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_gives_the_same_rows(spark: Any, seed: int) -> None:
    case = make_case(seed)
    subject = Headwater()
    try:
        compare(spark, case, subject)
    finally:
        subject.close()


def compare(spark: Any, case: Case, subject: Headwater) -> None:
    for relation in case.relations:
        subject.define(relation)
    views = [view for view in case.views if view.created == 0]
    for view in views:
        subject.create_view(view)
    bags = Bags.of(case)
    for number, epoch in enumerate(case.epochs, 1):
        bags.apply(epoch)
        subject.advance(case.clock(number))
        there = {view.name for view in views} - subject.suspended
        subject.apply(tuple(one for one in epoch if one.kind != "refresh" or one.relation in there))
    for relation in case.relations:
        make_table(spark, relation, bags.contents[relation.name])
    unknown = subject.suspended
    for view in views:
        if view.name in unknown or any(name in view.query for name in unknown):
            unknown.add(view.name)
            continue
        expected = ask(spark, view, case.clock(len(case.epochs)))
        if expected is None:
            unknown.add(view.name)
            continue
        wrong = nearly(subject.contents(view.name), expected)
        assert not wrong, f"seed {case.seed}, {view.name}: {view.query}\n{dict(wrong)}"
