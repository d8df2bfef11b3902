"""Importance sampling: what the logged episodes earned, weighed by how likely the policy would have lived them.

The logging policy π_b(a | s) is estimated: a softmax that is linear in the state and its squares. With ρ_t the product
of π(a|s)/π_b(a|s) up to step t, over episodes normalised to w_t:

    weighted, per decision   Σ_t γ^t Σ_i w_{i,t} r_{i,t}
    doubly robust            Σ_t γ^t Σ_i w_{i,t−1} V̂(s_{i,t}) + w_{i,t} (r_{i,t} − Q̂(s_{i,t}, a_{i,t}))
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hipmdp._optimise import apply_optimizer, cosine_adam
from hipmdp._random import numpy_generator
from hipmdp.control.policy import Policy
from hipmdp.from_logs.evaluation.estimate import NO_ESTIMATE, Estimate, LoggedEpisodes, estimate_of

STEPS, RATE, RIDGE = 300, 0.1, 1e-2
"""Of the fit of the logging policy."""
FLOOR = 0.01
"""Least probability of an action under it."""
BOOTSTRAPS = 1000
LEAST_ESS = 1.5
"""Episodes' worth of weight at the last step, below which there is no estimate."""


class ImportanceEstimates(NamedTuple):
    """Without a model."""

    weighted: Estimate
    doubly_robust: Estimate
    effective_episodes: float
    """How many episodes the weights at their ends are worth."""


def importance_estimates(
    episodes: LoggedEpisodes, policy: Policy, values: np.ndarray, discount: float, *, key: jax.Array
) -> ImportanceEstimates:
    """Both, with intervals of a bootstrap over episodes; `values` are Q̂ on logged states ([episode, time, action])."""
    ratios = _ratios(episodes, policy)
    asked = np.zeros(episodes.action.shape, np.int32)
    asked[episodes.valid] = policy(episodes.state[episodes.valid])
    at_policy, at_logged = (
        np.take_along_axis(values, actions[..., None], axis=2)[..., 0] for actions in (asked, episodes.action)
    )
    full = _estimates(ratios, episodes, at_policy, at_logged, discount)
    weight = ratios[:, -1]
    effective = float(weight.sum() ** 2 / max(np.sum(weight**2), 1e-300))
    if effective < LEAST_ESS:
        return ImportanceEstimates(NO_ESTIMATE, NO_ESTIMATE, effective)
    count, draw = len(ratios), numpy_generator(key)
    rows = draw.integers(count, size=(BOOTSTRAPS, count))
    drawn = [
        _estimates(ratios[r], episodes.select(r), at_policy[r], at_logged[r], discount)
        for r in rows
        if ratios[r, -1].sum() > 0
    ]
    intervals = [estimate_of(column) for column in np.asarray(drawn).T]
    weighted, robust = (i._replace(value=value) for i, value in zip(intervals, full, strict=True))
    return ImportanceEstimates(weighted, robust, effective)


def _ratios(episodes: LoggedEpisodes, policy: Policy) -> np.ndarray:
    """[episode, time]: ρ up to and with each step; it stays as it is after the end."""
    states, actions = episodes.state[episodes.valid], episodes.action[episodes.valid]
    chances = behaviour(states, actions, policy.specification.action_count)
    same = np.asarray(policy(states)) == actions
    ratio = np.ones(episodes.valid.shape)
    ratio[episodes.valid] = same / chances[np.arange(len(actions)), actions]
    return np.cumprod(ratio, axis=1)


def behaviour(states: np.ndarray, actions: np.ndarray, count: int) -> np.ndarray:
    """[row, action]: the estimated probability that who logged took it."""
    spread = states.std(axis=0)
    x = (states - states.mean(axis=0)) / np.where(spread > 0, spread, 1)
    features = np.concatenate([x, x**2, np.ones((len(x), 1))], axis=1)
    logits = features @ np.asarray(_fit(jnp.asarray(features, jnp.float32), jnp.asarray(actions, jnp.int32), count))
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return (1 - count * FLOOR) * chances + FLOOR if count * FLOOR < 1 else np.full_like(chances, 1 / count)


def _fit(features: Float[Array, "rows features"], actions: Int[Array, " rows"], count: int) -> Float[Array, "f a"]:
    optimizer = cosine_adam(RATE, STEPS)

    @jax.jit
    def fitted(features: Array, actions: Array) -> Array:
        def loss(weights: Array) -> Array:
            chosen = jnp.take_along_axis(jax.nn.log_softmax(features @ weights), actions[:, None], axis=1)
            return -jnp.mean(chosen) + RIDGE * jnp.mean(weights**2)

        def step(carry: tuple[Array, object], _: None) -> tuple[tuple[Array, object], None]:
            weights, state = carry
            return apply_optimizer(optimizer, jax.grad(loss)(weights), state, weights), None

        first = jnp.zeros((features.shape[1], count), jnp.float32)
        return jax.lax.scan(step, (first, optimizer.init(first)), None, STEPS)[0][0]

    return fitted(features, actions)


def _estimates(
    ratios: np.ndarray, episodes: LoggedEpisodes, at_policy: np.ndarray, at_logged: np.ndarray, discount: float
) -> tuple[float, float]:
    """(weighted, doubly robust)."""
    # Steps that no episode's weight reaches count as the present weights do: nothing is known there.
    total = ratios.sum(axis=0)
    share = ratios / np.where(total > 0, total, 1)[None]
    factors = discount ** np.arange(ratios.shape[1], dtype=np.float64)
    weighted = float(np.sum(factors * np.sum(share * episodes.reward, axis=0)))
    before = np.concatenate([np.full((len(ratios), 1), 1 / len(ratios)), share[:, :-1]], axis=1)
    robust = factors * np.sum(share * (episodes.reward - at_logged) + before * at_policy * episodes.valid, axis=0)
    return weighted, float(np.sum(robust))
