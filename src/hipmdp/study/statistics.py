"""What scores of many runs say: the interquartile mean, and 95 % intervals by a bootstrap that is stratified.

A table of scores is (seeds, instances), as in Agarwal et al. (2021): seeds are drawn again within every instance, as an
instance is not a sample of anything but itself. Statistics take (…, seeds, instances). Intervals are of percentiles.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

REPEATS = 2000


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f}" + ("" if np.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")


def interquartile_mean(scores: np.ndarray) -> Any:
    """IQM: the mean of the middle half of all numbers."""
    flat = np.sort(np.reshape(scores, (*np.shape(scores)[:-2], -1)), axis=-1)
    cut = flat.shape[-1] // 4
    return flat[..., cut : flat.shape[-1] - cut].mean(axis=-1)


def mean(scores: np.ndarray) -> Any:
    """The mean of all numbers."""
    return np.mean(scores, axis=(-2, -1))


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> Any:
    """P(X > Y) for a run X of the first and Y of the second on the same instance, ties half; mean over instances."""
    first, second = np.asarray(first)[..., :, None, :], np.asarray(second)[..., None, :, :]
    return ((first > second) + 0.5 * (first == second)).mean(axis=(-3, -2, -1))


def estimate(
    statistic: Callable[..., Any],
    *tables: np.ndarray,
    repeats: int = REPEATS,
    seed: int = 0,
    whole_seeds: bool = False,
) -> Estimate:
    """A statistic of one or several tables. The seeds of each table are drawn on their own.

    With `whole_seeds` a seed is drawn with all its instances: they share a batch and a model, so this is the more
    careful interval. Of a single seed there is none (NaN).
    """
    arrays = [np.asarray(table, np.float64) for table in tables]
    value = float(statistic(*arrays))
    if all(len(array) < 2 for array in arrays):
        return Estimate(value, float("nan"), float("nan"))
    rng = np.random.default_rng(seed)
    drawn = []
    for array in arrays:
        rows = rng.integers(0, len(array), (repeats, len(array), 1 if whole_seeds else array.shape[1]))
        drawn.append(np.take_along_axis(array[None], np.broadcast_to(rows, (repeats, *array.shape)), axis=1))
    low, high = np.quantile(statistic(*drawn), [0.025, 0.975])
    return Estimate(value, float(low), float(high))


def paired_difference(first: np.ndarray, second: np.ndarray, whole_seeds: bool = False) -> Estimate:
    """Mean of first − second, run by run: a seed shares its batch and its instance with its partner."""
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return estimate(mean, difference, whole_seeds=whole_seeds)
