"""Numbers that can be checked by hand, and what intervals must do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipmdp.study.statistics import estimate, interquartile_mean, mean, paired_difference, probability_of_improvement


def test_the_middle_half_of_eight():
    assert interquartile_mean(np.asarray([[100, 1, 2, 3], [4, 5, -100, 6]])) == (2 + 3 + 4 + 5) / 4


def test_fewer_than_four_are_all_middle():
    assert interquartile_mean(np.asarray([[1.0, 2.0, 6.0]])) == 3


def test_improvement_counts_pairs_on_the_same_instance():
    first = np.asarray([[3.0, 0.0], [1.0, 0.0]])
    second = np.asarray([[2.0, 1.0], [2.0, 0.0]])
    # Instance 0: 3 beats both, 1 beats none: 1/2. Instance 1: 0 loses to 1 and ties with 0: 1/4.
    assert probability_of_improvement(first, second) == pytest.approx((0.5 + 0.25) / 2)


def test_seeds_are_drawn_within_instances():
    # Two instances that are worlds apart, but on which all seeds agree: nothing is uncertain.
    table = np.asarray([[0.0, 1000.0]] * 3)
    found = estimate(mean, table)
    assert (found.value, found.low, found.high) == (500, 500, 500)


def test_a_seed_that_is_good_everywhere_makes_the_careful_interval_wider():
    # Two seeds, one good and one bad in all of eight instances: drawn within instances they average out.
    table = np.asarray([[0.0] * 8, [1.0] * 8])
    within, whole = estimate(mean, table), estimate(mean, table, whole_seeds=True)
    assert (whole.low, whole.high) == (0, 1)
    assert 0.1 < within.low < within.high < 0.9


def test_one_seed_has_no_interval():
    found = estimate(mean, np.asarray([[1.0, 2.0]]))
    assert np.isnan(found.low)
    assert str(found) == "1.500"


def test_a_pair_that_always_differs_by_one_is_certain():
    first = np.random.default_rng(0).normal(size=(5, 4))
    found = paired_difference(first + 1, first)
    assert found.low == pytest.approx(1)
    assert found.high == pytest.approx(1)


def test_the_interval_of_a_mean_is_that_of_theory():
    table = np.random.default_rng(1).normal(size=(200, 1))
    found = estimate(mean, table, repeats=4000)
    half = 1.96 * table.std() / np.sqrt(200)
    assert found.high - found.value == pytest.approx(half, rel=0.1)
    assert found.value - found.low == pytest.approx(half, rel=0.1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(-10, 10), min_size=3, max_size=3), min_size=1, max_size=6))
def test_intervals_hold_what_a_table_allows(rows):
    table = np.asarray(rows)
    for statistic in (mean, interquartile_mean):
        found = estimate(statistic, table, repeats=50)
        slack = 1e-9
        if len(table) == 1:
            assert np.isnan(found.low)
            continue
        assert table.min() - slack <= found.low <= found.high <= table.max() + slack
