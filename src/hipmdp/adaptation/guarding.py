"""Limits, where a model's Q(s, w) acts: what predicts the chance of breaking one."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.control.caution import Chances
from hipmdp.control.guard import Boundary, Guard, boundary, broken_within, draw_count
from hipmdp.control.guarded import LatentGreedy
from hipmdp.data.transitions import Transitions
from hipmdp.families.protocol import BaseFamily
from hipmdp.imagination.build import Surroundings, noisy_environment
from hipmdp.imagination.contexts import BeliefContexts
from hipmdp.imagination.environment import Range
from hipmdp.imagination.reward import family_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.limits import Limits

KEPT = ("decisions", "decisions_allowed", "broken_if_allowed")
"""Counts of an episode: all decisions, those with an allowed action, and those of them after which a limit was broken
within so many steps."""


def belief_guard(model: Model, family: BaseFamily, limits: Limits | None, *, key: PRNGKeyArray) -> Guard | None:
    """A guard whose draws follow the belief, and whose policy knows the w of its draw; None without limits."""
    if limits is None:
        return None
    dynamics = model.need_dynamics("limits")
    reward = family_reward(family, model.reward_head, family.name)
    starts = jnp.zeros((1, model.specification.state_size), jnp.float32)
    around = Surroundings(reward, starts, np.asarray(model.low), np.asarray(model.high))
    environment, edges = noisy_environment(dynamics, around), boundary(limits, model.specification)
    check_reachable(limits, edges, environment.imagination.range)
    weights = dynamics.draw_weights(key, draw_count(limits.risk))
    return Guard(
        environment,
        BeliefContexts(weights[:, None], dynamics.noise_variance()),
        LatentGreedy(model.need_latent_policy("limits")),
        edges,
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


def check_reachable(limits: Limits, edges: Boundary, inside: Range) -> None:
    """Refuse a limit that no imagined state can break: imagination does not leave the range of the data."""
    index = np.asarray(edges.dimension)
    farthest = np.where(np.asarray(edges.sign) > 0, np.asarray(inside.high)[index], np.asarray(inside.low)[index])
    for text, furthest, edge in zip(limits.limits, farthest, zip(*edges, strict=True), strict=True):
        at = jnp.zeros_like(inside.low).at[edge[0]].set(furthest)
        if not bool(Boundary(*(part[None] for part in edge)).is_broken(at)):
            raise ValueError(
                f"Nothing like breaking the limit {text!r} is in the data that the model was learned from: whether it "
                "will be broken cannot be predicted."
            )
