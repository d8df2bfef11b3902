"""The Q-network: standardised state in, one value per action out."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class Layer(eqx.Module):
    """x ↦ W x + b."""

    weight: Float[Array, "outputs inputs"]
    bias: Float[Array, " outputs"]

    @property
    def out_features(self) -> int:
        """Number of outputs."""
        return int(self.bias.shape[0])

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The outputs for one input."""
        return self.weight @ x + self.bias


class LayerNorm(eqx.Module):
    """x ↦ g ⊙ (x − mean x) / std x + b."""

    gain: Float[Array, " units"]
    shift: Float[Array, " units"]

    def __call__(self, x: Float[Array, " units"]) -> Float[Array, " units"]:
        """The normalised inputs of one layer."""
        centred = x - jnp.mean(x)
        return centred * jax.lax.rsqrt(jnp.mean(centred**2) + 1e-5) * self.gain + self.shift


class QNetwork(eqx.Module):
    """ReLU layers and a linear output (paper: 256 and 512 units), with or without normalisation before each ReLU."""

    layers: tuple[Layer, ...]
    norms: tuple[LayerNorm, ...]
    """One per ReLU layer; empty without normalisation."""
    centre: Float[Array, " state"]
    scale: Float[Array, " state"]

    def __init__(
        self,
        centre: Float[Array, " state"],
        scale: Float[Array, " state"],
        actions: int,
        hidden: tuple[int, ...],
        *,
        normalised: bool = False,
        key: PRNGKeyArray,
    ) -> None:
        sizes = (centre.shape[0], *hidden, actions)
        keys = jax.random.split(key, len(sizes) - 1)
        self.layers = tuple(_he_layer(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys, strict=True))
        self.norms = tuple(_unit_norm(units) for units in hidden) if normalised else ()
        self.centre, self.scale = centre, scale

    @property
    def normalised(self) -> bool:
        """Whether it has layer normalisation."""
        return len(self.norms) > 0

    def __call__(self, state: Float[Array, " state"]) -> Float[Array, " actions"]:
        """Values of all actions in one state."""
        # Inputs are standardised with constants, not parameters.
        x = (state - jax.lax.stop_gradient(self.centre)) / jax.lax.stop_gradient(self.scale)
        for index, layer in enumerate(self.layers[:-1]):
            x = layer(x)
            x = jax.nn.relu(self.norms[index](x) if self.norms else x)
        return self.layers[-1](x)

    def at(self, latent: Float[Array, " latent"]) -> "QNetwork":
        """Q(·, w) of a Q(s, w) whose last inputs are w: a network of s alone, with w's part in the first biases."""
        size = self.centre.shape[0] - latent.shape[0]
        first, *rest = self.layers
        part = first.weight[:, size:] @ ((latent - self.centre[size:]) / self.scale[size:])
        return eqx.tree_at(
            lambda network: (network.layers, network.centre, network.scale),
            self,
            ((Layer(first.weight[:, :size], first.bias + part), *rest), self.centre[:size], self.scale[:size]),
        )


def scaled_values(network: QNetwork, factor: float) -> QNetwork:
    """The network with all values multiplied by `factor`, in arrays of its own."""
    copied = copy_network(network)
    last = jax.tree.map(lambda leaf: factor * leaf, copied.layers[-1])
    return eqx.tree_at(lambda n: n.layers, copied, (*copied.layers[:-1], last))


def _he_layer(fan_in: int, fan_out: int, *, key: PRNGKeyArray) -> Layer:
    weight = jax.random.normal(key, (fan_out, fan_in), jnp.float32) * (2 / fan_in) ** 0.5
    return Layer(weight, jnp.zeros(fan_out, jnp.float32))


def _unit_norm(units: int) -> LayerNorm:
    return LayerNorm(jnp.ones(units, jnp.float32), jnp.zeros(units, jnp.float32))


def copy_network(network: QNetwork) -> QNetwork:
    """A copy that outlives a chunk: the DQN's own arrays are donated to the next one."""
    return jax.tree.map(jnp.copy, network)
