"""How good is a model? Held-out error, likelihood and coverage; and does its latent matter?"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.config import LatentRole
from hipmdp.dynamics.energy import log_likelihoods
from hipmdp.dynamics.model import Dynamics, Rows, padded, padded_size
from hipmdp.dynamics.pretrain import instance_rows

LEVELS = (0.5, 0.8, 0.95)
"""Central intervals whose coverage is reported."""
SLICE = 4096
"""Rows that are predicted at a time."""


class Quality(NamedTuple):
    """On one instance; all in standardised units of s' − s."""

    rmse: float
    """Root of the mean squared error over rows and dimensions."""
    l2: float
    """Mean length of the error vector."""
    log_likelihood: float
    """Mean over rows of log (1/K) Σ_k p(y|x, w, W_k), summed over dimensions."""
    coverage: tuple[float, ...]
    """Share of numbers inside the central 50, 80 and 95 % intervals (mean ± z·sd; epistemic and noise together)."""
    rows: int


@eqx.filter_jit
def _assess(
    dynamics: Dynamics, rows: Rows, latent: Float[Array, " latent"], key: PRNGKeyArray, draws: int
) -> tuple[Array, Array, Array]:
    """(squared errors, log likelihood, |error|/sd) of a slice of rows."""
    weight_key, input_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, draws)
    features = jnp.broadcast_to(rows.features, (draws, *rows.features.shape))
    if dynamics.config.stochastic_input:
        z = jax.random.normal(input_key, (*features.shape[:-1], 1), jnp.float32)
        features = jnp.concatenate([features, z], axis=-1)
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, None))
    means = jax.vmap(over_rows, in_axes=(0, 0, None))(weights, features, latent)
    noise = dynamics.noise_variance()
    fits = log_likelihoods(rows.target, means, jnp.log(noise))
    mixture = jax.nn.logsumexp(fits, axis=0) - math.log(draws)
    error = rows.target - jnp.mean(means, axis=0)
    return error**2, mixture, jnp.abs(error) / jnp.sqrt(jnp.var(means, axis=0) + noise[None])


def quality(
    dynamics: Dynamics, transitions: Transitions, latent: Float[Array, " latent"], seed: int = 0, draws: int = 50
) -> Quality:
    """How well the model with this latent predicts `transitions`."""
    if len(transitions) == 0:
        raise ValueError("There are no transitions to measure the model on.")
    rows = dynamics.rows(transitions)
    parts = []
    for start in range(0, len(transitions), SLICE):
        piece = jax.tree.map(lambda leaf, start=start: np.asarray(leaf)[start : start + SLICE], rows)
        count = len(piece.instance)
        key = jax.random.fold_in(jax.random.key(seed), start)
        told = _assess(dynamics, padded(piece, padded_size(count)), latent, key, draws)
        parts.append([np.asarray(part, np.float64)[:count] for part in told])
    squares, fits, ratios = (np.concatenate(column) for column in zip(*parts, strict=True))
    coverage = tuple(float(np.mean(ratios <= float(norm.ppf(0.5 + level / 2)))) for level in LEVELS)
    return Quality(
        float(np.sqrt(squares.mean())), float(np.sqrt(squares.sum(axis=-1)).mean()), float(fits.mean()), coverage,
        len(transitions),
    )  # fmt: skip


@dataclass(frozen=True)
class LatentUse:
    """Whether predictions change with w_b."""

    sensitivity: float
    """Spread of the mean prediction over the training latents, root mean square over rows and dimensions; the spread
    of s' − s itself is one."""
    own_error: float
    """RMSE with each instance's own latent."""
    mean_error: float
    """RMSE with the mean of all latents instead."""

    @property
    def ignored(self) -> bool:
        """The mean latent predicts as well as the own ones, to within 2 %."""
        return self.mean_error < 1.02 * self.own_error

    def __str__(self) -> str:
        return (
            f"predictions move by {self.sensitivity:.3f} with the latent; "
            f"error {self.own_error:.3f} with the own, {self.mean_error:.3f} with the mean latent"
        )


def latent_use(dynamics: Dynamics, batch: Transitions, seed: int = 0, most: int = 2048) -> LatentUse | None:
    """How much the predictions for `batch` change with w_b; None for a model without latents.

    `batch` holds the training instances, in the order of the model's latents.
    """
    if dynamics.config.role is LatentRole.NONE or dynamics.latents.shape[0] < 2:
        return None
    chosen = np.random.default_rng(seed).permutation(len(batch))[:most]
    picked = batch.select(np.sort(chosen))
    own = instance_rows(picked, batch.instances)
    rows = dynamics.rows(picked, own)
    means, mean_latent = _means_by_latent(dynamics, rows)
    own_means = jnp.take_along_axis(means, own[None, :, None], axis=0)[0]

    def rmse(values: Array) -> float:
        return float(jnp.sqrt(jnp.mean((values - rows.target) ** 2)))

    spread = float(jnp.sqrt(jnp.mean(jnp.var(means, axis=0))))
    return LatentUse(spread, rmse(own_means), rmse(mean_latent))


@eqx.filter_jit
def _means_by_latent(dynamics: Dynamics, rows: Rows) -> tuple[Array, Array]:
    """Predictions with the posterior mean of the weights: under every training latent, and under their mean."""
    features = rows.features
    if dynamics.config.stochastic_input:
        features = jnp.concatenate([features, jnp.zeros((features.shape[0], 1), jnp.float32)], axis=-1)

    def under(latent: Array) -> Array:
        return jax.vmap(dynamics.change, in_axes=(None, 0, None))(dynamics.posterior.mean, features, latent)

    return jax.lax.map(under, dynamics.latents), under(jnp.mean(dynamics.latents, axis=0))
