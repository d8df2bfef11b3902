"""The network of T̂ with mean-field Gaussian weights.

q(W) = Π_i N(W_i; m_i, v_i), v_i = λ_i·sigmoid(ρ_i) with λ_i the prior variance: a posterior can never be wider than its
prior, which keeps the α-divergence's sites proper. All weights live in one flat vector.
"""

from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.dynamics.config import DynamicsConfig, LatentRole
from hipmdp.families.specification import Specification


class Gaussian(NamedTuple):
    """Independent normals: the prior of the weights, or of a latent."""

    mean: Float[Array, " size"]
    variance: Float[Array, " size"]

    def log_density(self, value: Float[Array, " size"]) -> Float[Array, ""]:
        """Σ_i log N(value_i; mean_i, variance_i)."""
        squares = (value - self.mean) ** 2 / self.variance
        return -0.5 * jnp.sum(squares + jnp.log(2 * jnp.pi * self.variance))


class MeanField(eqx.Module):
    """q(W), relative to a prior."""

    mean: Float[Array, " weights"]
    """m."""
    rho: Float[Array, " weights"]
    """ρ."""

    def variance(self, prior: Gaussian) -> Float[Array, " weights"]:
        """v = λ·sigmoid(ρ)."""
        return prior.variance * jax.nn.sigmoid(self.rho)

    def draw(self, prior: Gaussian, normals: Float[Array, " weights"]) -> Float[Array, " weights"]:
        """W_k = m + √v ε_k, one draw."""
        return self.mean + jnp.sqrt(self.variance(prior)) * normals


def layer_sizes(config: DynamicsConfig, specification: Specification) -> tuple[int, ...]:
    """Units of every layer, from the input to the output."""
    state_size = specification.state_size
    latent = config.latent_size if config.role is LatentRole.EMBEDDED else 0
    outputs = config.latent_size * state_size if config.role is LatentRole.LINEAR else state_size
    more = int(specification.timed) + int(config.stochastic_input)
    return (state_size + specification.action_count + more + latent, *config.hidden, outputs)


def weight_count(sizes: tuple[int, ...]) -> int:
    """Weights and biases of all layers."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def initial_mean(sizes: tuple[int, ...], *, key: PRNGKeyArray) -> Float[Array, " weights"]:
    """He-scaled weights, zero biases; the output layer starts small, so that the first predictions are near zero."""
    parts = []
    for index, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        last = index == len(sizes) - 2
        scale = (2 / fan_in) ** 0.5 * (0.1 if last else 1.0)
        normals = jax.random.normal(jax.random.fold_in(key, index), (fan_in * fan_out,), jnp.float32)
        parts += [scale * normals, jnp.zeros(fan_out, jnp.float32)]
    return jnp.concatenate(parts)


def forward(
    sizes: tuple[int, ...], weights: Float[Array, " weights"], inputs: Float[Array, " inputs"]
) -> Float[Array, " outputs"]:
    """The ReLU network with the given weights, for one input; vmap outside."""
    x, start = inputs, 0
    for index, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        matrix = weights[start : start + fan_in * fan_out].reshape(fan_in, fan_out)
        start += fan_in * fan_out
        x = x @ matrix + weights[start : start + fan_out]
        start += fan_out
        if index < len(sizes) - 2:
            x = jax.nn.relu(x)
    return x


def predicted_change(
    role: LatentRole,
    sizes: tuple[int, ...],
    weights: Float[Array, " weights"],
    features: Float[Array, " features"],
    latent: Float[Array, " latent"],
) -> Float[Array, " state"]:
    """The standardised state difference for one row; `features` are s, one-hot a (the duration, and z)."""
    if role is LatentRole.EMBEDDED:
        return forward(sizes, weights, jnp.concatenate([features, latent]))
    outputs = forward(sizes, weights, features)
    if role is LatentRole.LINEAR:
        return latent @ outputs.reshape(latent.shape[0], -1)
    return outputs
