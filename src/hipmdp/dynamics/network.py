"""The network of T̂ with mean-field Gaussian weights.

With a correction, T̂ is two networks. The first proposes a change y of the state; the second sees the state, the
proposal and w_b, but not the action, and says where the system does not follow it (walls, contacts, saturation):

    y = f(s, a, w_b),  (u, v) = g(s, y, w_b),  T̂ = y + sigmoid(u) ⊙ (v − y)

What stops a system is mostly the same whatever moved it, so that g carries over to new members of the family. A
bilinear f has parts that are multiplied by w_b: what a hidden parameter scales carries over, too.

    f(s, a, w) = f₀(s, a, w) + Σ_k w_k f_k(s, a, w)

q(W) = Π_i N(W_i; m_i, v_i), v_i = λ_i·sigmoid(ρ_i) with λ_i the prior variance: a posterior can never be wider than its
prior, which keeps the α-divergence's sites proper. All weights live in one flat vector.
"""

from itertools import pairwise
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.families.specification import Specification
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole


class Gaussian(NamedTuple):
    """Independent normals: the prior of the weights, or of a latent."""

    mean: Float[Array, " size"]
    variance: Float[Array, " size"]

    @staticmethod
    def unit(size: int) -> "Gaussian":
        """N(0, I)."""
        return Gaussian(jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32))

    def log_density(self, value: Float[Array, " size"]) -> Float[Array, ""]:
        """Σ_i log N(value_i; mean_i, variance_i)."""
        return jnp.sum(norm.logpdf(value, self.mean, jnp.sqrt(self.variance)))


class MeanField(eqx.Module):
    """q(W) = Π N(m, λ·sigmoid(ρ)), relative to a prior with variances λ."""

    mean: Float[Array, " weights"]
    """m: the mean of every weight."""
    rho: Float[Array, " weights"]
    """ρ: the logit of the posterior variance as a share of the prior variance."""

    def variance(self, prior: Gaussian) -> Float[Array, " weights"]:
        """v = λ·sigmoid(ρ)."""
        return prior.variance * jax.nn.sigmoid(self.rho)

    def draw(self, prior: Gaussian, normals: Float[Array, " weights"]) -> Float[Array, " weights"]:
        """W_k = m + √v ε_k, one draw."""
        return self.mean + jnp.sqrt(self.variance(prior)) * normals


class NetworkSizes(NamedTuple):
    """Units of every layer, from the input to the output."""

    proposal: tuple[int, ...]
    correction: tuple[int, ...]
    """Empty: T̂ is the proposal."""
    bilinear: bool = False
    """Whether the proposal's outputs are f₀, f₁, …, which w_b combines."""

    @property
    def weight_count(self) -> int:
        """Weights and biases of both networks."""
        return weight_count(self.proposal) + weight_count(self.correction)


def network_sizes(config: DynamicsConfig, specification: Specification) -> NetworkSizes:
    """The sizes of both networks."""
    state_size = specification.state_size
    latent = config.latent_size if config.role is LatentRole.EMBEDDED else 0
    bilinear = config.bilinear and config.role is LatentRole.EMBEDDED
    parts = {LatentRole.LINEAR: config.latent_size, LatentRole.EMBEDDED: 1 + bilinear * config.latent_size}
    outputs = parts.get(config.role, 1) * state_size
    inputs = state_size + specification.action_count + int(specification.timed) + z_size(config) + latent
    proposal = (inputs, *config.hidden, outputs)
    # The linear method has no correction: its changes are linear in w_b.
    if not config.correction or config.role is LatentRole.LINEAR:
        return NetworkSizes(proposal, (), bilinear)
    return NetworkSizes(proposal, (2 * state_size + latent, *config.correction, 2 * state_size), bilinear)


def z_size(config: DynamicsConfig) -> int:
    """Numbers of the stochastic input z: one where the network has it, none otherwise."""
    return int(config.stochastic_input)


def weight_count(sizes: tuple[int, ...]) -> int:
    """Weights and biases of all layers of one network; none without layers."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def initial_mean(sizes: tuple[int, ...], *, key: PRNGKeyArray) -> Float[Array, " weights"]:
    """He-scaled weights, zero biases; the output layer starts small, so that the first predictions are near zero."""
    parts = []
    keys = jax.random.split(key, len(sizes) - 1)
    for index, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        last = index == len(sizes) - 2
        scale = (2 / fan_in) ** 0.5 * (0.1 if last else 1.0)
        normals = jax.random.normal(keys[index], (fan_in * fan_out,), jnp.float32)
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


UNCORRECTED = -2.0
"""Logit at which the share of the correction begins: 0.12."""


def initial_weights(sizes: NetworkSizes, *, key: PRNGKeyArray) -> Float[Array, " weights"]:
    """Means of all weights; corrections begin small."""
    if not sizes.correction:
        return initial_mean(sizes.proposal, key=key)
    proposal_key, correction_key = jax.random.split(key)
    outputs = sizes.correction[-1]
    correction = initial_mean(sizes.correction, key=correction_key)
    biases = jnp.where(jnp.arange(outputs) < outputs // 2, UNCORRECTED, 0.0).astype(correction.dtype)
    return jnp.concatenate([initial_mean(sizes.proposal, key=proposal_key), correction[:-outputs], biases])


def predicted_change(
    role: LatentRole,
    sizes: NetworkSizes,
    *,
    weights: Float[Array, " weights"],
    features: Float[Array, " features"],
    latent: Float[Array, " latent"],
) -> Float[Array, " state"]:
    """The standardised state difference of one row; `features` are s, one-hot a, the duration and z, if there are."""
    own = latent if role is LatentRole.EMBEDDED else latent[:0]
    split = weight_count(sizes.proposal)
    proposed = forward(sizes.proposal, weights[:split], jnp.concatenate([features, own]))
    if role is LatentRole.LINEAR:
        return latent @ proposed.reshape(latent.shape[0], -1)
    if sizes.bilinear:
        parts = proposed.reshape(1 + latent.shape[0], -1)
        proposed = parts[0] + latent @ parts[1:]
    if not sizes.correction:
        return proposed
    size = proposed.shape[0]
    outputs = forward(sizes.correction, weights[split:], jnp.concatenate([features[:size], proposed, own]))
    return proposed + jax.nn.sigmoid(outputs[:size]) * (outputs[size:] - proposed)
