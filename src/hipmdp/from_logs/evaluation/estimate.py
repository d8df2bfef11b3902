"""`Estimate`, and a log as episodes: what all estimators share."""

from typing import NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.data.transitions import Transitions

LEVEL = 0.9
"""Of all intervals."""
DRAWS = 1000
"""Draws of the value of what was done."""


class Estimate(NamedTuple):
    """A value with its central 90 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether there is one."""
        return bool(np.isfinite([self.value, self.low, self.high]).all())

    def holds(self, value: float) -> bool:
        """Whether `value` lies in the interval."""
        return self.low <= value <= self.high


NO_ESTIMATE = Estimate(float("nan"), float("nan"), float("nan"))


def estimate_of(draws: np.ndarray, value: float | None = None) -> Estimate:
    """Quantiles of draws of a value, and their mean where the value is not known better."""
    low, high = interval_of(draws)
    return Estimate(float(np.mean(draws)) if value is None else value, low, high)


def interval_of(draws: np.ndarray) -> tuple[float, float]:
    """The central 90 % of them."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    return float(low), float(high)


class Both(NamedTuple):
    """A value with and without discounting."""

    discounted: Estimate
    undiscounted: Estimate


NOT_KNOWN = Both(NO_ESTIMATE, NO_ESTIMATE)


class LoggedEpisodes(NamedTuple):
    """The episodes of one system, each a row, filled up to the longest one; none goes on beyond the time limit."""

    state: np.ndarray
    """[episode, time, dimension], in natural units."""
    next_state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    """Zero where a row only fills up."""
    terminated: np.ndarray
    valid: np.ndarray
    """Whether there is such a step."""
    complete: np.ndarray
    """[episode]: whether it went on to its end, or to the time limit."""

    @property
    def first_states(self) -> np.ndarray:
        """[episode, dimension]."""
        return self.state[:, 0]

    @property
    def lengths(self) -> np.ndarray:
        """[episode]: steps."""
        return self.valid.sum(axis=1)

    def returns(self, discount: float) -> np.ndarray:
        """[episode]: Σ γ^t r_t."""
        return self.reward @ discount ** np.arange(self.reward.shape[1], dtype=np.float64)

    def select(self, episodes: np.ndarray) -> "LoggedEpisodes":
        """Some of the episodes."""
        return LoggedEpisodes(*(column[episodes] for column in self))

    def with_rewards(self, values: np.ndarray) -> "LoggedEpisodes":
        """With another reward of every step there is."""
        reward = np.zeros(self.valid.shape)
        reward[self.valid] = values
        return self._replace(reward=reward)


def in_order(log: Transitions) -> Transitions:
    """The steps of one system, an episode after the other; what came after the time limit is left out."""
    log = log.select(np.lexsort((log.time, log.episode)))
    begins = np.append(True, log.episode[1:] != log.episode[:-1])
    step = np.arange(len(log)) - np.maximum.accumulate(np.where(begins, np.arange(len(log)), 0))
    return log.select(step < log.specification.horizon)


def logged_episodes(log: Transitions) -> LoggedEpisodes:
    """The episodes of a log that is `in_order`."""
    numbers, lengths = np.unique(log.episode, return_counts=True)
    shape = (len(numbers), int(lengths.max()))
    valid = np.arange(shape[1]) < lengths[:, None]

    def filled(column: np.ndarray) -> np.ndarray:
        values = np.zeros((*shape, *column.shape[1:]), column.dtype)
        values[valid] = column
        return values

    terminated = filled(log.terminated.astype(bool))
    return LoggedEpisodes(
        state=filled(log.state),
        next_state=filled(log.next_state),
        action=filled(log.action),
        reward=filled(log.reward.astype(np.float64)),
        terminated=terminated,
        valid=valid,
        complete=terminated.any(axis=1) | (lengths >= log.specification.horizon),
    )


def logged_value(
    episodes: LoggedEpisodes, discount: float, spreads: tuple[float, float], *, key: PRNGKeyArray
) -> tuple[Both, np.ndarray]:
    """What was done, the mean of the complete episodes, and draws of its discounted value: a t distribution.

    A single episode has a spread of `spreads` (discounted, undiscounted).
    """
    if not episodes.complete.any():
        return NOT_KNOWN, np.full(1, np.nan)
    found, draws = [], []
    for factor, spread in zip((discount, 1.0), spreads, strict=True):
        returns, draw = episodes.returns(factor)[episodes.complete], numpy_generator(key)
        count = len(returns)
        if count == 1:
            away = spread * draw.standard_normal(DRAWS)
        else:
            away = np.std(returns, ddof=1) / np.sqrt(count) * draw.standard_t(count - 1, DRAWS)
        draws.append(np.mean(returns) + away)
        found.append(estimate_of(draws[-1], float(np.mean(returns))))
    return Both(*found), draws[0]
