"""What scores of many runs say: the interquartile mean, and 95 % intervals by a bootstrap that is stratified.

A table of scores is (seeds, instances), as in Agarwal et al. (2021): seeds are drawn again within every instance, as an
instance is not a sample of anything but itself. All intervals are of percentiles.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

REPEATS = 2000


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def interquartile_mean(scores: np.ndarray) -> float:
    """IQM: the mean of the middle half of all numbers."""
    flat = np.sort(np.asarray(scores, np.float64), axis=None)
    cut = len(flat) // 4
    return float(flat[cut : len(flat) - cut].mean())


def mean(scores: np.ndarray) -> float:
    """The mean of all numbers."""
    return float(np.mean(scores, dtype=np.float64))


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> float:
    """P(X > Y) for a run X of the first and Y of the second on the same instance, ties half; mean over instances."""
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    more = first[:, None, :] > second[None, :, :]
    same = first[:, None, :] == second[None, :, :]
    return float((more + 0.5 * same).mean())


def estimate(statistic: Callable[..., float], *tables: np.ndarray, repeats: int = REPEATS, seed: int = 0) -> Estimate:
    """A statistic of one or several tables. The seeds of each table are drawn on their own."""
    arrays = [np.asarray(table, np.float64) for table in tables]
    rng = np.random.default_rng(seed)
    values = [statistic(*(_resampled(array, rng) for array in arrays)) for _ in range(repeats)]
    return _estimate(statistic(*arrays), values)


def paired_difference(first: np.ndarray, second: np.ndarray, repeats: int = REPEATS, seed: int = 0) -> Estimate:
    """Mean of first − second, run by run: a seed shares its batch and its instance with its partner."""
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return estimate(mean, difference, repeats=repeats, seed=seed)


def _resampled(table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rows = rng.integers(0, len(table), table.shape)
    return np.take_along_axis(table, rows, axis=0)


def _estimate(value: float, values: list[float]) -> Estimate:
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(float(value), float(low), float(high))
