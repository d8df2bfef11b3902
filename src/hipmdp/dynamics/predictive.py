"""What comes next on one system, over everything that is not known of it: w_b by the belief, W, and the noise.

A draw is a w and a weight draw; the noise of this system is that of known ones times the misfit of the belief.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.dynamics.energy import log_likelihoods
from hipmdp.dynamics.model import Dynamics, Rows, padded
from hipmdp.dynamics.quality import SLICE, Quality, quality_of
from hipmdp.dynamics.standardise import padded_size

DRAWS = 100
"""By default."""


class Predictive(eqx.Module):
    """Draws of what is not known of one system."""

    dynamics: Dynamics
    weights: Float[Array, "draws weights"]
    latents: Float[Array, "draws latent"]
    noise: Float[Array, " state"]
    """Standard deviation of what T̂ does not foretell in a step, standardised."""


def predictive(dynamics: Dynamics, belief: Belief, *, key: PRNGKeyArray, draws: int = DRAWS) -> Predictive:
    """The draws that a belief and q(W) allow."""
    return _drawn(dynamics, belief, key, draws)


@eqx.filter_jit
def _drawn(dynamics: Dynamics, belief: Belief, key: PRNGKeyArray, draws: int) -> Predictive:
    weight_key, latent_key = jax.random.split(key)
    noise = jnp.sqrt(belief.misfit * dynamics.noise_variance())
    return Predictive(dynamics, dynamics.draw_weights(weight_key, draws), belief.draw(latent_key, draws), noise)


def predictive_quality(known: Predictive, transitions: Transitions) -> Quality:
    """How well the draws predict `transitions` of the system, one step at a time; z is at its mean."""
    if len(transitions) == 0:
        raise ValueError("There are no transitions to measure the model on.")
    rows, parts = known.dynamics.rows(transitions), []
    for first in range(0, len(transitions), SLICE):
        part = jax.tree.map(lambda leaf, first=first: np.asarray(leaf)[first : first + SLICE], rows)
        count = len(part.instance)
        columns = _assess(known, padded(part, padded_size(count)))
        parts.append([np.asarray(column, np.float64)[:count] for column in columns])
    return quality_of(parts)


@eqx.filter_jit
def _assess(known: Predictive, rows: Rows) -> tuple[Array, Array, Array]:
    """(squared errors, log likelihood, |error|/sd) of a slice of rows."""

    def one(draw: tuple[Array, Array]) -> Float[Array, "rows state"]:
        weights, latent = draw
        return jax.vmap(known.dynamics.change, in_axes=(None, 0, None))(weights, rows.features, latent)

    means, variance = jax.lax.map(one, (known.weights, known.latents)), known.noise**2
    fits = log_likelihoods(rows.target, means, jnp.log(variance))
    mixture = jax.nn.logsumexp(fits, axis=0) - math.log(len(known.weights))
    error = rows.target - jnp.mean(means, axis=0)
    return error**2, mixture, jnp.abs(error) / jnp.sqrt(jnp.var(means, axis=0) + variance[None])
