"""`Dynamics`: a fitted T̂(s, a, w_b), its training latents and its standardisation."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.network import (
    Gaussian,
    MeanField,
    NetworkSizes,
    initial_weights,
    network_sizes,
    predicted_change,
    z_size,
)
from hipmdp.dynamics.standardise import Scaling, padded_size, standardised_changes
from hipmdp.families.specification import Specification
from hipmdp.settings.dynamics import DynamicsConfig

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
    """What T̂ predicts for s' − s in natural units, per dimension; variances may leave the range of float32."""

    mean: Float[np.ndarray, "*rows state"]
    epistemic: Float[np.ndarray, "*rows state"]
    """Variance over weight draws: what more data would remove."""
    noise: Float[np.ndarray, "*rows state"]
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
    def sizes(self) -> NetworkSizes:
        """Units of every layer."""
        return network_sizes(self.config, self.specification)

    @property
    def z_size(self) -> int:
        """Numbers of the stochastic input z ~ N(0, I) of every transition: none for most networks."""
        return z_size(self.config)

    @property
    def latent_prior(self) -> Gaussian:
        """The Gaussian fitted to the training latents; the unit Gaussian while there are fewer than two.

        Its variance is never below a hundredth: two alike instances do not prove that all are.
        """
        if self.latents.shape[0] < 2:
            return Gaussian.unit(self.config.latent_size)
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
        state, target = (
            self.specification.from_origin(transitions.state),
            standardised_changes(transitions, self.scaling),
        )
        columns = padded((state, transitions.action, self.shares(transitions.duration)), padded_size(count))
        features = _features(self, *columns)
        if instance is None:
            instance = jnp.asarray(np.zeros(count, np.int32))
        return Rows(jnp.asarray(np.asarray(features)[:count]), jnp.asarray(target), instance)

    def shares(self, duration: Any) -> np.ndarray:
        """Durations of steps, in typical ones."""
        return (np.asarray(duration, np.float64) / (self.specification.step or 1.0)).astype(np.float32)

    def features(
        self, state: Float[Array, " state"], action: Int[Array, ""], share: Float[Array, ""] | None = None
    ) -> Float[Array, " features"]:
        """The network's inputs for one row, without latent and z; a step of typical duration, unless it is given.

        Where durations Δt differ, log(Δt / typical Δt) is one of the inputs: zero in imagination. `share` is
        Δt / typical Δt.
        """
        features = self.scaling.features(state, action, self.specification.action_count)
        if not self.specification.timed:
            return features
        share = jnp.ones((), jnp.float32) if share is None else share
        # Rows that only fill up have no duration.
        return jnp.append(features, jnp.log(jnp.where(share > 0, share, 1)))

    def draw_weights(self, key: PRNGKeyArray, draws: int) -> Float[Array, "draws weights"]:
        """Weights from q(W): `draws` functions that the data allow."""
        normals = jax.random.normal(key, (draws, self.posterior.mean.shape[0]), jnp.float32)
        return jax.vmap(self.posterior.draw, in_axes=(None, 0))(self.prior, normals)

    def draw_z(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """z of `shape` transitions, the last axis its size; without a stochastic input that axis is empty."""
        return jax.random.normal(key, (*shape, self.z_size), jnp.float32)

    def change(
        self,
        weights: Float[Array, " weights"],
        features: Float[Array, " features"],
        latent: Float[Array, " latent"],
        z: Float[Array, " z"] | None = None,
    ) -> Float[Array, " state"]:
        """The standardised difference that one weight draw predicts for one row; z is at its mean (0) unless given."""
        # An empty z is not appended: under vmap over draws it would give every draw its own copy of the features.
        if self.z_size > 0:
            features = jnp.concatenate([features, jnp.zeros(self.z_size, jnp.float32) if z is None else z])
        return predicted_change(self.config.role, self.sizes, weights=weights, features=features, latent=latent)

    def noise_variance(self) -> Float[Array, " state"]:
        """σ_n² in standardised units."""
        return jnp.exp(jnp.maximum(self.log_noise, SMALLEST_LOG_NOISE))


def new_dynamics(
    config: DynamicsConfig, specification: Specification, scaling: Scaling, instances: int, *, key: PRNGKeyArray
) -> Dynamics:
    """An untrained model with a latent for each of `instances` instances."""
    weight_key, latent_key = jax.random.split(key)
    sizes = network_sizes(config, specification)
    count = sizes.weight_count
    posterior = MeanField(initial_weights(sizes, key=weight_key), jnp.full(count, config.initial_rho, jnp.float32))
    prior = Gaussian(jnp.zeros(count, jnp.float32), jnp.full(count, config.prior_variance, jnp.float32))
    latents = 0.1 * jax.random.normal(latent_key, (instances, config.latent_size), jnp.float32)
    noise = jnp.full(specification.state_size, config.initial_log_noise, jnp.float32)
    return Dynamics(
        posterior=posterior, prior=prior, log_noise=noise, latents=latents,
        scaling=scaling, config=config, specification=specification,
    )  # fmt: skip


def instance_rows(batch: Transitions, instances: list[int]) -> Int[Array, " rows"]:
    """For each transition the position of its instance among `instances`: its row of `latents`."""
    return jnp.asarray(np.searchsorted(np.asarray(instances), batch.instance), jnp.int32)


def padded(arrays: Any, size: int) -> Any:
    """Arrays filled up with zeros to `size` rows. In NumPy: JAX would compile for every length."""

    def one(array: Any) -> Any:
        array = np.asarray(array)
        return jnp.asarray(np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)]))

    return jax.tree.map(one, arrays)


@eqx.filter_jit
def _features(dynamics: Dynamics, state: Array, action: Array, share: Array) -> Array:
    return jax.vmap(dynamics.features)(state, action, share)


@eqx.filter_jit
def _predict(
    dynamics: Dynamics,
    features: Float[Array, "rows features"],
    latents: Float[Array, "rows latent"],
    *,
    key: PRNGKeyArray,
    draws: int,
) -> tuple[Array, Array, Array]:
    """(mean, epistemic variance, noise variance), standardised."""
    weight_key, z_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, draws)
    # Variance over z within a weight draw is noise; over weight draws of the mean over z, it is epistemic.
    z_draws = draws if dynamics.z_size else 1
    z = dynamics.draw_z(z_key, (draws, z_draws, features.shape[0]))
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, 0, 0))

    def one(weights: Array, z: Array) -> tuple[Array, Array]:
        over_z = jax.vmap(lambda z: over_rows(weights, features, latents, z))(z)
        return jnp.mean(over_z, axis=0), jnp.var(over_z, axis=0)

    means, spread = jax.vmap(one)(weights, z)
    noise = dynamics.noise_variance()[None] + jnp.mean(spread, axis=0)
    return jnp.mean(means, axis=0), jnp.var(means, axis=0), noise


def predict(
    dynamics: Dynamics,
    state: Any,
    action: Any,
    latent: Any,
    *,
    key: PRNGKeyArray,
    draws: int = 50,
    duration: Any = None,
) -> Prediction:
    """Mean and variances of s' − s for rows of states and actions, under one latent or one per row; natural units.

    `duration` of each step, where steps differ; by default the typical one.
    """
    rows = [jnp.asarray(dynamics.specification.from_origin(state)), jnp.asarray(action, jnp.int32)]
    if duration is not None:
        rows.append(jnp.asarray(dynamics.shares(duration)))
    features = jax.vmap(dynamics.features)(*rows)
    latents = jnp.broadcast_to(jnp.asarray(latent, jnp.float32), (features.shape[0], np.shape(latent)[-1]))
    standardised = _predict(dynamics, features, latents, key=key, draws=draws)
    mean, epistemic, noise = (np.asarray(part, np.float64) for part in standardised)
    scale, centre = (np.asarray(v, np.float64) for v in (dynamics.scaling.change_scale, dynamics.scaling.change_centre))
    return Prediction(mean * scale + centre, epistemic * scale**2, noise * scale**2)
