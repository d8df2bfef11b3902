"""Limits, where a model's Q(s, w) acts: what predicts the chance of breaking one."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.control.caution import Chances
from hipmdp.control.guard import Guard, boundary, broken_within, draw_count
from hipmdp.control.guarded import LatentGreedy
from hipmdp.data.transitions import Transitions
from hipmdp.families.protocol import BaseFamily
from hipmdp.families.specification import Specification
from hipmdp.imagination.build import DATA_MARGIN, Surroundings, noisy_environment
from hipmdp.imagination.contexts import BeliefContexts
from hipmdp.imagination.reward import family_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.limits import Limits

KEPT = ("decisions", "decisions_allowed", "broken_if_allowed")
"""Counts of an episode: all decisions, those with an allowed action, and those of them after which a limit was broken
within so many steps."""


def check_limits(model: Model, limits: Limits | None, log: Transitions | None = None) -> None:
    """One clear sentence for limits that are not of this model's states, or that it and the log know nothing of."""
    if limits is not None:
        low, high = np.asarray(model.low), np.asarray(model.high)
        if log is not None:
            states = np.concatenate([log.state, log.next_state])
            low, high = np.minimum(low, states.min(axis=0)), np.maximum(high, states.max(axis=0))
        check_reachable(limits, model.specification, low=low, high=high)


def belief_guard(model: Model, family: BaseFamily, limits: Limits | None, *, key: PRNGKeyArray) -> Guard | None:
    """A guard whose draws follow the belief, and whose policy knows the w of its draw; None without limits."""
    if limits is None:
        return None
    dynamics = model.need_dynamics("limits")
    reward = family_reward(family, model.reward_head, family.name)
    starts = jnp.zeros((1, model.specification.state_size), jnp.float32)
    around = Surroundings(reward, starts, np.asarray(model.low), np.asarray(model.high))
    weights = dynamics.draw_weights(key, draw_count(limits.risk))
    return Guard(
        noisy_environment(dynamics, around),
        BeliefContexts(weights[:, None], dynamics.noise_variance()),
        LatentGreedy(model.need_latent_policy("limits")),
        boundary(limits, model.specification),
        within=limits.within,
        risk=limits.risk,
    )


def limits_kept(limits: Limits, chances: Sequence[Chances], episode: Transitions) -> dict[str, Any]:
    """The record of one episode: predicted chances, and how often a limit was broken afterwards.

    `chances` is [time, action]; the counts are those of `KEPT`.
    """
    predicted = np.asarray([np.asarray(of.chance) for of in chances], np.float32)
    allowed = np.any(predicted <= limits.risk, axis=1)
    broken = broken_within(limits, episode.specification, episode.next_state)
    counts = len(predicted), int(allowed.sum()), int((broken & allowed).sum())
    return {"chances": predicted, **dict(zip(KEPT, counts, strict=True))}


def check_reachable(limits: Limits, specification: Specification, *, low: np.ndarray, high: np.ndarray) -> None:
    """Refuse a limit that nothing in the data comes near: imagination, which stays there, could never break it."""
    for text, limit in zip(limits.limits, limits.parsed(specification), strict=True):
        index = specification.state_names.index(limit.name)
        room = DATA_MARGIN * (high[index] - low[index])
        farthest = high[index] + room if limit.sign > 0 else low[index] - room
        if limit.sign * (farthest - limit.bound) <= 0:
            raise ValueError(
                f"The limit {text!r} is far from all data (from {low[index]:.4g} to {high[index]:.4g}): no model of "
                "these can say whether it will be broken."
            )
