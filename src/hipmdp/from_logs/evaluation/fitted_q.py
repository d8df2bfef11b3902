"""Fitted Q evaluation: Q of a policy from the logged transitions alone, without a model.

With k steps to go, from k = 1 to the time limit, over the logged steps n in which a was chosen in states like s:

    Q_k(s, a) ← Σ_n κ_n(s) (r_n + γ Q_{k−1}(s'_n, π(s'_n))), and r_n alone where the episode ended

κ are weights of the nearest such steps: an average cannot leave what was seen, where regressions that extrapolate from
a few episodes do. For an interval it is done again and again with pieces of the log weighed at random.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.control.policy import Policy
from hipmdp.from_logs.evaluation.basis import Places
from hipmdp.from_logs.evaluation.estimate import Both, LoggedEpisodes, estimate_of

FITS = 50
NEIGHBOURS = 10
"""Steps that are averaged over."""
PIECE = 20
"""Steps of a log that are weighed together."""
MOST_ROWS = 3000
"""Transitions that are used at most."""
LEAST_GAP = 1e-6
"""Least distance at which a step has no weight any more, in spreads of the log."""


class FittedQ(NamedTuple):
    """What it says."""

    value: Both
    """Of the policy from the logged first states."""
    at_policy: np.ndarray
    """[episode, time]: V̂ of the logged states, discounted; the mean over the fits."""
    at_logged: np.ndarray
    """[episode, time]: Q̂ of the logged states and actions, likewise."""


class _Steps(NamedTuple):
    """Logged steps; `piece` numbers those that are weighed together."""

    place: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    goes_on: np.ndarray
    piece: np.ndarray


class _Near(NamedTuple):
    """For each of some states and actions: the nearest logged steps, and their weights."""

    row: np.ndarray
    """[asked, neighbour]."""
    weight: np.ndarray

    def mean(self, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """κ-weighted mean of what the steps are worth, the steps themselves weighed too."""
        share = self.weight * weights[self.row]
        return np.asarray(np.sum(share * values[self.row], axis=1) / np.sum(share, axis=1))


def fitted_q(episodes: LoggedEpisodes, policy: Policy, discount: float, *, key: PRNGKeyArray) -> FittedQ:
    """Go through the steps to go, and ask at the logged states."""
    generator, horizon = numpy_generator(key), policy.specification.horizon
    states, firsts = episodes.state[episodes.valid], episodes.first_states
    places = Places.of(states, policy.specification)
    steps, used = _steps(episodes, places)
    after = episodes.next_state[episodes.valid][used]
    behind = _nearest(steps, places(after), policy(after))
    asked = _nearest(steps, places(states), policy(states))
    taken = _nearest(steps, places(states), episodes.action[episodes.valid])
    begun = _nearest(steps, places(firsts), policy(firsts))
    to_go = horizon - np.nonzero(episodes.valid)[1]
    values: dict[float, list[float]] = {discount: [], 1.0: []}
    at_policy, at_logged = np.zeros(len(states)), np.zeros(len(states))
    for _ in range(FITS):
        weights = generator.exponential(size=int(steps.piece.max()) + 1)[steps.piece]
        starts = generator.exponential(size=len(firsts))
        for factor, found in values.items():
            worth = steps.reward
            for k in range(1, horizon + 1):
                if factor == discount:
                    mine = to_go == k
                    at_policy[mine] += _of(asked, mine).mean(worth, weights) / FITS
                    at_logged[mine] += _of(taken, mine).mean(worth, weights) / FITS
                if k < horizon:
                    worth = steps.reward + factor * steps.goes_on * behind.mean(worth, weights)
            found.append(float(np.average(begun.mean(worth, weights), weights=starts)))
    both = Both(*(estimate_of(np.asarray(values[factor])) for factor in (discount, 1.0)))
    return FittedQ(both, *(_placed(part, episodes.valid) for part in (at_policy, at_logged)))


def _steps(episodes: LoggedEpisodes, places: Places) -> tuple[_Steps, np.ndarray]:
    """All logged steps, or `MOST_ROWS` of them; and which."""
    number, time = np.nonzero(episodes.valid)
    used = np.linspace(0, len(number) - 1, min(len(number), MOST_ROWS)).round().astype(np.int64)
    pieces = -(-episodes.valid.shape[1] // PIECE)

    def of(column: np.ndarray) -> np.ndarray:
        return column[episodes.valid][used]

    place, piece = places(of(episodes.state)), (number * pieces + time // PIECE)[used]
    return _Steps(place, of(episodes.action), of(episodes.reward), ~of(episodes.terminated), piece), used


def _nearest(steps: _Steps, place: np.ndarray, action: np.ndarray) -> _Near:
    """The logged steps with that action nearest to each state; those with any action where it was never chosen."""
    row = np.zeros((len(action), NEIGHBOURS), np.int64)
    weight = np.zeros((len(action), NEIGHBOURS))
    for a in np.unique(action):
        mine, same = np.flatnonzero(action == a), np.flatnonzero(steps.action == a)
        same = same if len(same) else np.arange(len(steps.action))
        count = min(NEIGHBOURS, len(same))
        squares = (
            np.sum(place[mine] ** 2, axis=1)[:, None]
            - 2 * place[mine] @ steps.place[same].T
            + np.sum(steps.place[same] ** 2, axis=1)
        )
        order = np.argpartition(squares, count - 1, axis=1)[:, :count]
        gaps = np.sqrt(np.maximum(np.take_along_axis(squares, order, axis=1), 0))
        # Weights fall to nothing a little beyond the farthest of them.
        reach = 1.1 * gaps.max(axis=1, keepdims=True) + LEAST_GAP
        row[mine[:, None], np.arange(count)] = same[order]
        weight[mine[:, None], np.arange(count)] = 1 - (gaps / reach) ** 2
    return _Near(row, weight)


def _of(near: _Near, rows: np.ndarray) -> _Near:
    return _Near(near.row[rows], near.weight[rows])


def _placed(values: np.ndarray, valid: np.ndarray) -> np.ndarray:
    placed = np.zeros(valid.shape)
    placed[valid] = values
    return placed
