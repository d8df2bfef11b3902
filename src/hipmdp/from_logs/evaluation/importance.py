"""Importance sampling: what the logged episodes earned, each weighed by how likely the policy is to go through it.

The logging policy π_b(a | s) is estimated from the log: a logistic regression on smooth functions of the state. With
ρ_t the product of π(a|s)/π_b(a|s) up to step t, normalised over episodes to w_t:

    weighted, per decision   Σ_t γ^t Σ_i w_{i,t} r_{i,t}
    doubly robust            Σ_t γ^t Σ_i w_{i,t−1} V̂(s_{i,t}) + w_{i,t} (r_{i,t} − Q̂(s_{i,t}, a_{i,t}))

with V̂ and Q̂ of fitted Q evaluation. Over many steps hardly an episode keeps its weight: the doubly robust estimate goes
on with V̂ alone from the step at which fewer than `LEAST_EPISODES` do; the weighted one then is none.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.control.policy import Policy
from hipmdp.from_logs.evaluation.basis import Basis, Places
from hipmdp.from_logs.evaluation.estimate import NOT_KNOWN, Both, Estimate, LoggedEpisodes, estimate_of
from hipmdp.from_logs.evaluation.fitted_q import FittedQ

FUNCTIONS, RIDGE, STEPS = 50, 1.0, 200
"""Of the fit of the logging policy: random functions of the state, penalty of a squared coefficient, Newton steps."""
FLOOR = 0.01
"""Least probability of an action under it."""
BOOTSTRAPS = 1000
LEAST_EPISODES = 1.5
"""Episodes' worth of weight, below which one episode speaks for all."""


class ImportanceEstimates(NamedTuple):
    """What it says."""

    weighted: Both
    doubly_robust: Both
    effective_episodes: float
    """How many episodes the weights at their ends are worth."""


class _Weighed(NamedTuple):
    """What an estimate is made of; each [episode, time]."""

    ratio: np.ndarray
    """ρ up to and with each step; it stays as it is after the end."""
    reward: np.ndarray
    at_policy: np.ndarray
    at_logged: np.ndarray

    def estimates(self, discount: float, last: int, weights: np.ndarray) -> tuple[float, float]:
        """(weighted, doubly robust), with ratios up to step `last`; episodes count as `weights` say."""
        ratio = self.ratio * weights[:, None]
        total = ratio.sum(axis=0)
        share = ratio / np.where(total > 0, total, 1)[None]
        factors = discount ** np.arange(ratio.shape[1], dtype=np.float64)
        before = np.concatenate([weights[:, None] / weights.sum(), share[:, :-1]], axis=1)
        robust = np.sum(before * self.at_policy + share * (self.reward - self.at_logged), axis=0)
        # From there on V̂ says what follows.
        robust[last + 1 :] = 0
        if last + 1 < len(robust):
            robust[last + 1] = np.sum(before[:, last + 1] * self.at_policy[:, last + 1])
        return float(factors @ np.sum(share * self.reward, axis=0)), float(factors @ robust)


def importance_estimates(
    episodes: LoggedEpisodes, policy: Policy, fitted: FittedQ, discount: float, *, key: PRNGKeyArray
) -> ImportanceEstimates:
    """Both, with intervals of a bootstrap over episodes; undiscounted without the doubly robust one, as V̂ is not."""
    generator = numpy_generator(key)
    ratio = _ratios(episodes, policy, generator)
    weighed = _Weighed(ratio, episodes.reward, fitted.at_policy, fitted.at_logged)
    effective = ratio.sum(axis=0) ** 2 / np.maximum(np.sum(ratio**2, axis=0), 1e-300)
    enough = effective >= LEAST_EPISODES
    last = int(np.argmin(enough)) - 1 if not enough.all() else len(enough) - 1
    count = len(ratio)
    weights = [np.ones(count), *generator.dirichlet(np.ones(count), BOOTSTRAPS)]
    drawn = np.asarray([weighed.estimates(discount, last, w) for w in weights])
    summed = np.asarray([weighed.estimates(1.0, last, w)[0] for w in weights])
    weighted, robust, undiscounted = (estimate_of(c[1:], float(c[0])) for c in (*drawn.T, summed))
    return ImportanceEstimates(
        Both(weighted, undiscounted) if last == len(enough) - 1 else NOT_KNOWN,
        NOT_KNOWN._replace(discounted=_less_sure(robust, fitted.value.discounted)),
        float(effective[-1]),
    )


def _less_sure(estimate: Estimate, of: Estimate) -> Estimate:
    """With the error of what it is made of."""
    below = math.hypot(estimate.value - estimate.low, of.value - of.low)
    above = math.hypot(estimate.high - estimate.value, of.high - of.value)
    return estimate._replace(low=estimate.value - below, high=estimate.value + above)


def _ratios(episodes: LoggedEpisodes, policy: Policy, generator: np.random.Generator) -> np.ndarray:
    states, actions = episodes.state[episodes.valid], episodes.action[episodes.valid]
    basis = Basis.draw(Places.of(states, policy.specification), states, FUNCTIONS, generator)
    chances = behaviour(basis(states), actions, policy.specification.action_count)
    ratio = np.ones(episodes.valid.shape)
    ratio[episodes.valid] = (policy(states) == actions) / chances[np.arange(len(actions)), actions]
    return np.cumprod(ratio, axis=1)


def behaviour(features: np.ndarray, actions: np.ndarray, count: int) -> np.ndarray:
    """[row, action]: the estimated probability that whoever logged took it, of a logistic regression.

    Newton steps whose curvature is the largest that there can be (Böhning's bound): each of them goes down.
    """
    taken = np.eye(count)[actions]
    curvature = 0.5 * features.T @ features + RIDGE * np.eye(features.shape[1])
    inverse = np.linalg.inv(curvature)
    weights = np.zeros((features.shape[1], count))
    for _ in range(STEPS):
        slope = features.T @ (taken - _softmax(features @ weights)) - RIDGE * weights
        weights = weights + inverse @ slope
    chances = _softmax(features @ weights)
    return (1 - count * FLOOR) * chances + FLOOR if count * FLOOR < 1 else np.full_like(chances, 1 / count)


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
