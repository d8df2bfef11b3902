"""A log in parts, each predicted from the others: how wrong predictions are where the system has not been."""

import numpy as np

from hipmdp.from_logs.evaluation.estimate import LoggedEpisodes

ACTIONS_APART = 2.0
"""How far two actions are apart beside two states, in spreads of the states."""
LEAST_PARTS = 5
"""Episodes are cut into pieces where there are fewer."""


def parts_of(episodes: LoggedEpisodes) -> np.ndarray:
    """The part of every logged step."""
    number, time = np.nonzero(episodes.valid)
    pieces = -(-LEAST_PARTS // len(episodes.valid))
    lengths = np.maximum(episodes.lengths[number], 1)
    return np.asarray(number * pieces + time * pieces // lengths)


def spread_out(count: int, most: int) -> np.ndarray:
    """Numbers of all rows, or of `most` evenly spread ones."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)


def likeness(points: np.ndarray) -> np.ndarray:
    """exp(−½ |x − x'|²) of every pair."""
    squares = np.sum(points**2, axis=1)
    return np.exp(-0.5 * np.maximum(squares[:, None] - 2 * points @ points.T + squares[None], 0))


def left_out(covariance: np.ndarray, values: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(errors, variances) of a Gaussian process in each part, given the others; columns of `values` are apart.

    With K over all rows, the values y of a part B, given the others, have the mean y_B − e_B with
    e_B = [K⁻¹]_BB⁻¹ [K⁻¹ y]_B, and the covariance [K⁻¹]_BB⁻¹.
    """
    inverse = np.linalg.inv(covariance)
    weights = inverse @ values
    errors, variances = np.zeros(values.shape), np.ones(len(values))
    for p in np.unique(part):
        rows = np.flatnonzero(part == p)
        own = np.linalg.inv(inverse[np.ix_(rows, rows)])
        errors[rows], variances[rows] = own @ weights[rows], np.diag(own)
    return errors, variances
