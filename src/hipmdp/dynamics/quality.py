"""How good is a model? Its error, likelihood and coverage; and does its latent matter?

There is one error measure: the root mean squared error of the standardised state difference per dimension. 1 is no
better than predicting the mean change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.energy import log_likelihoods
from hipmdp.dynamics.model import Dynamics, Rows, instance_rows, padded
from hipmdp.dynamics.standardise import padded_size
from hipmdp.settings.dynamics import LatentRole

LEVELS = (0.5, 0.8, 0.95)
"""Central intervals whose coverage is measured."""
SLICE = 4096
"""Rows that are predicted at a time."""


class Quality(NamedTuple):
    """How well a model with one latent predicts transitions of one instance; in standardised units of s' − s."""

    error: float
    """RMSE over rows and dimensions of the mean prediction (1: no better than predicting the mean change)."""
    log_likelihood: float
    """Mean over rows of log (1/K) Σ_k p(y|x, w, W_k), summed over dimensions."""
    coverage: tuple[float, ...]
    """Share of numbers inside the central 50, 80 and 95 % intervals (mean ± z·sd; epistemic and noise together)."""
    rows: int
    """Transitions that were predicted."""


@eqx.filter_jit
def _assess(
    dynamics: Dynamics, rows: Rows, latent: Float[Array, " latent"], *, key: PRNGKeyArray, draws: int
) -> tuple[Array, Array, Array]:
    """(squared errors, log likelihood, |error|/sd) of a slice of rows."""
    weight_key, z_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, draws)
    z = dynamics.draw_z(z_key, (draws, rows.features.shape[0]))
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, None, 0))
    means = jax.vmap(over_rows, in_axes=(0, None, None, 0))(weights, rows.features, latent, z)
    noise = dynamics.noise_variance()
    fits = log_likelihoods(rows.target, means, jnp.log(noise))
    mixture = jax.nn.logsumexp(fits, axis=0) - math.log(draws)
    error = rows.target - jnp.mean(means, axis=0)
    return error**2, mixture, jnp.abs(error) / jnp.sqrt(jnp.var(means, axis=0) + noise[None])


def quality(
    dynamics: Dynamics,
    transitions: Transitions,
    latent: Float[Array, " latent"],
    *,
    key: PRNGKeyArray,
    draws: int = 50,
) -> Quality:
    """How well the model with this latent predicts `transitions`, over `draws` weight draws."""
    if len(transitions) == 0:
        raise ValueError("There are no transitions to measure the model on.")
    rows = dynamics.rows(transitions)
    firsts = range(0, len(transitions), SLICE)
    parts = []
    for first, slice_key in zip(firsts, jax.random.split(key, len(firsts)), strict=True):
        part = jax.tree.map(lambda leaf, first=first: np.asarray(leaf)[first : first + SLICE], rows)
        count = len(part.instance)
        columns = _assess(dynamics, padded(part, padded_size(count)), latent, key=slice_key, draws=draws)
        parts.append([np.asarray(column, np.float64)[:count] for column in columns])
    return quality_of(parts)


def quality_of(parts: Sequence[Sequence[np.ndarray]]) -> Quality:
    """From (squared errors, log likelihood, |error|/sd) of slices of rows."""
    squares, fits, ratios = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Quality(
        error=float(np.sqrt(squares.mean())),
        log_likelihood=float(fits.mean()),
        coverage=tuple(float(np.mean(ratios <= float(norm.ppf(0.5 + level / 2)))) for level in LEVELS),
        rows=len(fits),
    )


def pooled_error(parts: Sequence[Quality]) -> float:
    """The error over all rows of several instances: squared errors are pooled, so that every row counts the same."""
    squares = [part.error**2 for part in parts]
    return math.sqrt(float(np.average(squares, weights=[part.rows for part in parts])))


@dataclass(frozen=True)
class LatentUse:
    """Whether predictions change with w_b, on a sample of rows and at the mean weights."""

    sensitivity: float
    """Spread of the mean prediction over the training latents, root mean square over rows and dimensions; the spread
    of s' − s itself is one."""
    error_own_latent: float
    """RMSE with each instance's own latent."""
    error_mean_latent: float
    """RMSE with the mean of all latents instead."""

    @property
    def ignored(self) -> bool:
        """The mean latent predicts as well as the own ones, to within 2 %."""
        return self.error_mean_latent < 1.02 * self.error_own_latent

    def __str__(self) -> str:
        return (
            f"predictions move by {self.sensitivity:.3f} with the latent; "
            f"error {self.error_own_latent:.3f} with the own, {self.error_mean_latent:.3f} with the mean latent"
        )


def latent_use(dynamics: Dynamics, batch: Transitions, *, key: PRNGKeyArray, most: int = 2048) -> LatentUse | None:
    """How much the predictions for `batch` change with w_b; None for a model without latents.

    `batch` holds the training instances, in the order of the model's latents; at most `most` of its rows are used.
    """
    if dynamics.config.role is LatentRole.NONE or dynamics.latents.shape[0] < 2:
        return None
    chosen = numpy_generator(key).permutation(len(batch))[:most]
    picked = batch.select(np.sort(chosen))
    own = instance_rows(picked, batch.instances)
    rows = dynamics.rows(picked, own)
    means, mean_latent = _means_by_latent(dynamics, rows)
    own_means = jnp.take_along_axis(means, own[None, :, None], axis=0)[0]

    def error(values: Array) -> float:
        return float(jnp.sqrt(jnp.mean((values - rows.target) ** 2)))

    spread = float(jnp.sqrt(jnp.mean(jnp.var(means, axis=0))))
    return LatentUse(spread, error_own_latent=error(own_means), error_mean_latent=error(mean_latent))


@eqx.filter_jit
def _means_by_latent(dynamics: Dynamics, rows: Rows) -> tuple[Array, Array]:
    """Predictions with the posterior mean of the weights: under every training latent, and under their mean."""

    def under(latent: Array) -> Array:
        return jax.vmap(dynamics.change, in_axes=(None, 0, None))(dynamics.posterior.mean, rows.features, latent)

    return jax.lax.map(under, dynamics.latents), under(jnp.mean(dynamics.latents, axis=0))
