"""Choosing an action when its value is not known: by the worst share of what may be, and among those that are allowed.

*Caution* c counts the worst share 1 − c of what may be so (the conditional value at risk): 0 is the mean, 0.9 the mean
of the worst tenth. *Limits* leave out the actions whose chance of breaking them is above a risk.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

BEYOND = 1e-3
"""What being beyond a limit all the time adds to the harm of an action: less than one draw of a thousand."""


class Chances(NamedTuple):
    """What is predicted to happen to limits after each action, with or without several ways to go on."""

    chance: Float[Array, "*ways actions"]
    """That one is broken within so many steps."""
    beyond: Float[Array, "*ways actions"]
    """Expected share of those steps in which one is broken."""

    @property
    def harm(self) -> Float[Array, "*ways actions"]:
        """What the safest action has least of: the chance, and among equal ones the time beyond."""
        return self.chance + BEYOND * self.beyond


def weighted_cvar(values: Any, weights: Any, caution: float) -> Any:
    """[action]: the mean of `values` [draw, action] over the worst share 1 − `caution` of the `weights` [draw].

    The draw at the edge of that share counts in part. Weights need not add up to one; draws of weight zero do not
    count, whatever their value. A value that is no number counts as the worst. JAX or NumPy.
    """
    xp: Any = np if isinstance(values, np.ndarray) else jnp
    values = xp.where(xp.isnan(values), -xp.inf, values)
    order = xp.argsort(values, axis=0)
    ordered = xp.take_along_axis(values, order, axis=0)
    shares = (weights / xp.sum(weights))[order]
    before = xp.cumsum(shares, axis=0) - shares
    counted = xp.clip((1 - caution) - before, 0, shares)
    # 0 · ∞ is no number.
    total = xp.sum(xp.where(counted > 0, ordered, 0) * counted, axis=0)
    return total / xp.sum(counted, axis=0)


def allowed_actions(chances: Chances, risk: float) -> Bool[Array, " actions"]:
    """Whose chance is at most the risk."""
    return chances.chance <= risk


def choose(scores: Float[Array, " actions"], chances: Chances, risk: float) -> Int[Array, ""]:
    """The allowed action with the highest score; where none is allowed, the safest (of several, the best of them)."""
    allowed, harm = allowed_actions(chances, risk), chances.harm
    candidates = jnp.where(jnp.any(allowed), allowed, harm <= jnp.min(harm))
    # A candidate of any score comes before the others.
    finite = jnp.maximum(jnp.nan_to_num(scores, nan=-jnp.inf), jnp.finfo(scores.dtype).min)
    return jnp.argmax(jnp.where(candidates, finite, -jnp.inf)).astype(jnp.int32)
