"""`Estimate`, and a log as episodes: what all estimators share."""

from typing import NamedTuple

import numpy as np

from hipmdp.data.transitions import Transitions

LEVEL = 0.9
"""Of all intervals."""


class Estimate(NamedTuple):
    """A value with its central 90 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_finite(self) -> bool:
        """Whether there is one."""
        return bool(np.isfinite([self.value, self.low, self.high]).all())


NO_ESTIMATE = Estimate(float("nan"), float("nan"), float("nan"))


def estimate_of(draws: np.ndarray) -> Estimate:
    """Mean and quantiles of draws of a value."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    return Estimate(float(np.mean(draws)), float(low), float(high))


class LoggedEpisodes(NamedTuple):
    """The episodes of one system, each a row, filled up to the longest one."""

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

    def returns(self, discount: float) -> np.ndarray:
        """[episode]: Σ γ^t r_t."""
        return self.reward @ discount ** np.arange(self.reward.shape[1], dtype=np.float64)

    def select(self, episodes: np.ndarray) -> "LoggedEpisodes":
        """Some of the episodes."""
        return LoggedEpisodes(*(column[episodes] for column in self))


def logged_episodes(log: Transitions) -> LoggedEpisodes:
    """The episodes of a log of one system, in order."""
    order = np.lexsort((log.time, log.episode))
    numbers, lengths = np.unique(log.episode[order], return_counts=True)
    shape = (len(numbers), int(lengths.max()))
    valid = np.arange(shape[1]) < lengths[:, None]

    def filled(column: np.ndarray) -> np.ndarray:
        values = np.zeros((*shape, *column.shape[1:]), column.dtype)
        values[valid] = column[order]
        return values

    terminated = filled(log.terminated.astype(bool))
    complete = terminated.any(axis=1) | (lengths >= log.specification.horizon)
    return LoggedEpisodes(
        state=filled(log.state),
        next_state=filled(log.next_state),
        action=filled(log.action),
        reward=filled(log.reward.astype(np.float64)),
        terminated=terminated,
        valid=valid,
        complete=complete,
    )
