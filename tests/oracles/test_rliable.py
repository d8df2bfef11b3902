"""Our statistics against rliable's."""

import numpy as np
import pytest

from hipmdp.study.statistics import estimate, interquartile_mean, mean, probability_of_improvement

pytest.importorskip("rliable")


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    return rng.normal(0.6, 0.3, size=(7, 9)), rng.normal(0.5, 0.3, size=(7, 9)).round(1)


def test_values_are_equal(tables):
    from rliable import metrics

    first, second = tables
    assert interquartile_mean(first) == pytest.approx(metrics.aggregate_iqm(first))
    assert mean(first) == pytest.approx(metrics.aggregate_mean(first))
    assert probability_of_improvement(first, second) == pytest.approx(metrics.probability_of_improvement(first, second))


def test_ties_are_half(tables):
    from rliable import metrics

    first, second = tables[1], np.roll(tables[1], 1, axis=0)
    assert probability_of_improvement(first, second) == pytest.approx(metrics.probability_of_improvement(first, second))


@pytest.mark.filterwarnings("ignore")
def test_intervals_are_close(tables):
    from rliable import library, metrics

    first, second = tables
    _, theirs = library.get_interval_estimates(
        {"first": first}, lambda x: np.asarray([metrics.aggregate_iqm(x), metrics.aggregate_mean(x)]), reps=4000
    )
    for column, statistic in enumerate((interquartile_mean, mean)):
        told = estimate(statistic, first, repeats=4000)
        assert [told.low, told.high] == pytest.approx(list(theirs["first"][:, column]), abs=0.01)
    _, pairs = library.get_interval_estimates(
        {"pair": (first, second)}, lambda x, y: np.asarray([metrics.probability_of_improvement(x, y)]), reps=2000
    )
    told = estimate(probability_of_improvement, first, second, repeats=2000)
    assert [told.low, told.high] == pytest.approx(list(pairs["pair"][:, 0]), abs=0.02)
