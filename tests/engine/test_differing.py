"""Whether numbers are all different, beside a set that says so."""

from __future__ import annotations

import numpy as np
import pytest

from headwater.engine import differing
from headwater.engine.differing import all_differ, are_pieces_of


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 10, 1000, 70_000])
def test_numbers_that_all_differ(rows: int) -> None:
    hashes = np.random.default_rng(rows).permutation(np.arange(rows, dtype=np.uint64) * np.uint64(2**40 + 1))
    assert all_differ(hashes)


@pytest.mark.parametrize("bits", [1, 24])
def test_one_number_that_is_there_again(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """With two buckets nearly all numbers are among those that are not the last of their bucket."""
    monkeypatch.setattr(differing, "MOST_BITS", bits)
    random = np.random.default_rng(1)
    for rows in (2, 3, 50, 500):
        for _ in range(50):
            hashes = random.integers(0, 2**64, rows, dtype=np.uint64)
            assert all_differ(hashes) == (len(set(hashes.tolist())) == rows)
            one, other = random.choice(rows, 2, replace=False)
            hashes[one] = hashes[other]
            assert not all_differ(hashes)


def test_small_numbers_are_in_one_bucket() -> None:
    assert all_differ(np.arange(1000, dtype=np.uint64))
    assert not all_differ(np.zeros(2, dtype=np.uint64))


def test_pieces_in_another_order() -> None:
    known = np.random.default_rng(2).permutation(np.arange(300_000, dtype=np.uint64))
    moved = np.concatenate([known[200_000:], known[:70_000], known[70_000:200_000]])
    assert are_pieces_of(known, known) and are_pieces_of(moved, known)
    assert are_pieces_of(known[1000:], known)  # some are missing
    assert are_pieces_of(known[:0], known)


def test_what_is_there_twice_is_no_piece() -> None:
    known = np.random.default_rng(2).permutation(np.arange(300_000, dtype=np.uint64))
    twice = known.copy()
    twice[200_000:] = known[:100_000]
    assert not are_pieces_of(twice, known)
    for at in (0, 1, 150_000, 299_999):
        one = known.copy()
        one[at] = one[7]
        assert not are_pieces_of(one, known)


def test_what_is_not_known_is_no_piece() -> None:
    known = np.arange(1000, dtype=np.uint64)
    assert not are_pieces_of(np.arange(1001, dtype=np.uint64), known)
    assert not are_pieces_of(known[::-1].copy(), known)
    assert not are_pieces_of(known, known[:0])


def test_random_pieces_against_a_set() -> None:
    """Whatever is taken for pieces differs; few numbers, so that many are there twice."""
    random, found = np.random.default_rng(5), 0
    for _ in range(2000):
        known = random.permutation(np.arange(12, dtype=np.uint64))
        cuts = [known[a : a + n] for a, n in random.integers(0, 12, (3, 2))]
        hashes = np.concatenate(cuts)
        if are_pieces_of(hashes, known):
            found += 1
            assert len(set(hashes.tolist())) == len(hashes)
    assert found > 100
