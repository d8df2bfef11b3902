"""`Dynamics`: a fitted T̂(s, a, w_b), its training latents and its standardisation."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.dynamics.network import (
    Gaussian,
    MeanField,
    initial_mean,
    layer_sizes,
    predicted_change,
    weight_count,
)
from hipmdp.dynamics.scaling import Scaling, state_changes
from hipmdp.families.specification import Specification

SMALLEST_LOG_NOISE = -14.0
"""log σ_n² cannot fall below this (a spread of 0.001 in standardised units): float32 has no more digits to give."""


class Rows(NamedTuple):
    """Transitions as the network sees them."""

    features: Float[Array, "*rows features"]
    target: Float[Array, "*rows state"]
    """Standardised state differences."""
    instance: Int[Array, "*rows"]
    """Row of `latents` that belongs to it."""


class Prediction(NamedTuple):
    """What T̂ says about s' − s in the family's own units, per dimension."""

    mean: Float[Array, "*rows state"]
    epistemic: Float[Array, "*rows state"]
    """Variance over weight draws: what more data would remove."""
    noise: Float[Array, "*rows state"]
    """Variance that stays however much data there is."""


class Dynamics(eqx.Module):
    """q(W), the noise, the latents of the training instances, and what is needed to use them."""

    posterior: MeanField
    prior: Gaussian
    log_noise: Float[Array, " state"]
    """log σ_n² per dimension, standardised units."""
    latents: Float[Array, "instances latent"]
    """w_b of the training instances, in the order of their ids."""
    scaling: Scaling
    config: DynamicsConfig = eqx.field(static=True)
    specification: Specification = eqx.field(static=True)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every layer."""
        return layer_sizes(self.config, self.specification)

    @property
    def latent_prior(self) -> Gaussian:
        """The Gaussian fitted to the training latents; the unit Gaussian while there are fewer than two.

        Its variance is never below a hundredth: two alike instances do not prove that all are.
        """
        if self.latents.shape[0] < 2:
            size = self.config.latent_size
            return Gaussian(jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32))
        return Gaussian(jnp.mean(self.latents, axis=0), jnp.maximum(jnp.var(self.latents, axis=0), 0.01))

    def check(self, transitions: Transitions) -> None:
        """Refuse transitions of another family."""
        if transitions.specification != self.specification:
            raise ValueError(
                f"The model is for {self.specification.family!r}, the transitions are of "
                f"{transitions.specification.family!r}: their specifications differ."
            )

    def rows(self, transitions: Transitions, instance: Int[Array, " rows"] | None = None) -> Rows:
        """The network's view of a log; `instance` are rows of `latents` (by default all the first)."""
        self.check(transitions)
        count = len(transitions)
        change = state_changes(transitions).astype(np.float32)
        columns = padded((transitions.state, transitions.action, transitions.duration, change), padded_size(count))
        features, target = _standardised(self, *columns)
        if instance is None:
            instance = jnp.asarray(np.zeros(count, np.int32))
        return Rows(jnp.asarray(np.asarray(features)[:count]), jnp.asarray(np.asarray(target)[:count]), instance)

    def features(
        self, state: Float[Array, " state"], action: Int[Array, ""], duration: Float[Array, ""] | None = None
    ) -> Float[Array, " features"]:
        """The network's inputs for one row, without latent and z; a step of typical duration, unless it is given.

        Where durations Δt differ, log(Δt / typical Δt) is one of the inputs: zero in imagination.
        """
        features = self.scaling.features(state, action, self.specification.action_count)
        if not self.specification.timed:
            return features
        share = jnp.ones((), jnp.float32) if duration is None else duration / (self.specification.step or 1.0)
        # Rows that only fill up have no duration.
        return jnp.append(features, jnp.log(jnp.where(share > 0, share, 1)))

    def draw_weights(self, key: PRNGKeyArray, draws: int) -> Float[Array, "draws weights"]:
        """Weights from q(W): `draws` functions that the data allow."""
        normals = jax.random.normal(key, (draws, self.posterior.mean.shape[0]), jnp.float32)
        return jax.vmap(self.posterior.draw, in_axes=(None, 0))(self.prior, normals)

    def change(
        self,
        weights: Float[Array, " weights"],
        features: Float[Array, " features"],
        latent: Float[Array, " latent"],
    ) -> Float[Array, " state"]:
        """The standardised difference that one weight draw predicts for one row (`features` include z, if there is)."""
        return predicted_change(self.config.role, self.sizes, weights, features, latent)

    def noise_variance(self) -> Float[Array, " state"]:
        """σ_n² in standardised units."""
        return jnp.exp(jnp.maximum(self.log_noise, SMALLEST_LOG_NOISE))


def new_dynamics(
    config: DynamicsConfig, specification: Specification, scaling: Scaling, instances: int, *, key: PRNGKeyArray
) -> Dynamics:
    """An untrained model for that many instances."""
    weight_key, latent_key = jax.random.split(key)
    sizes = layer_sizes(config, specification)
    count = weight_count(sizes)
    posterior = MeanField(initial_mean(sizes, key=weight_key), jnp.full(count, config.initial_rho, jnp.float32))
    prior = Gaussian(jnp.zeros(count, jnp.float32), jnp.full(count, config.prior_variance, jnp.float32))
    latents = 0.1 * jax.random.normal(latent_key, (instances, config.latent_size), jnp.float32)
    noise = jnp.full(specification.state_size, config.initial_log_noise, jnp.float32)
    return Dynamics(posterior, prior, noise, latents, scaling, config, specification)


def padded_size(count: int) -> int:
    """A power of two that holds `count` rows: logs of any length share a few compilations."""
    return max(256, 1 << (count - 1).bit_length())


def padded(arrays: Any, size: int) -> Any:
    """Arrays filled up with zeros to `size` rows. In NumPy: JAX would compile for every length."""

    def one(array: Any) -> Any:
        array = np.asarray(array)
        return jnp.asarray(np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)]))

    return jax.tree.map(one, arrays)


@eqx.filter_jit
def _standardised(
    dynamics: Dynamics, state: Array, action: Array, duration: Array, change: Array
) -> tuple[Array, Array]:
    return jax.vmap(dynamics.features)(state, action, duration), jax.vmap(dynamics.scaling.standardised)(change)


@eqx.filter_jit
def _predict(
    dynamics: Dynamics,
    features: Float[Array, "rows features"],
    latents: Float[Array, "rows latent"],
    key: PRNGKeyArray,
    draws: int,
) -> Prediction:
    weight_key, input_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, draws)
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, 0))
    noise = jnp.broadcast_to(dynamics.noise_variance(), (features.shape[0], dynamics.specification.state_size))
    if not dynamics.config.stochastic_input:
        means = jax.vmap(over_rows, in_axes=(0, None, None))(weights, features, latents)
    else:
        # Variance over z within a weight draw is noise; over weight draws of the mean over z, it is epistemic.
        z = jax.random.normal(input_key, (draws, draws, features.shape[0], 1), jnp.float32)

        def one(weights: Array, z: Array) -> tuple[Array, Array]:
            over_z = jax.vmap(lambda z: over_rows(weights, jnp.concatenate([features, z], axis=-1), latents))(z)
            return jnp.mean(over_z, axis=0), jnp.var(over_z, axis=0)

        means, spread = jax.vmap(one)(weights, z)
        noise = noise + jnp.mean(spread, axis=0)
    centre, scale = dynamics.scaling.change_centre[None], dynamics.scaling.change_scale[None]
    change = jnp.mean(means, axis=0) * scale + centre
    return Prediction(change, jnp.var(means, axis=0) * scale**2, noise * scale**2)


def predict(
    dynamics: Dynamics,
    state: Any,
    action: Any,
    latent: Any,
    seed: int = 0,
    draws: int = 50,
    duration: Any = None,
) -> Prediction:
    """Mean and variances of s' − s for rows of states and actions, under one latent or one per row.

    `duration` of each step, where steps differ; by default the typical one.
    """
    rows = [jnp.asarray(state, jnp.float32), jnp.asarray(action, jnp.int32)]
    if duration is not None:
        rows.append(jnp.asarray(duration, jnp.float32))
    features = jax.vmap(dynamics.features)(*rows)
    latents = jnp.broadcast_to(jnp.asarray(latent, jnp.float32), (features.shape[0], np.shape(latent)[-1]))
    return _predict(dynamics, features, latents, jax.random.key(seed), draws)
