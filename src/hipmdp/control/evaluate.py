"""Policies of a Q-network, and greedy ones in the real environment."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from hipmdp.control.network import QNetwork
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.play import play
from hipmdp.families.rollout import Episode


class Greedy(eqx.Module):
    """argmax_a Q(s, a)."""

    network: QNetwork

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The best action in one state."""
        return jnp.argmax(self.network(state)).astype(jnp.int32)


class EpsilonGreedy(eqx.Module):
    """π̂_b: the best action, or with probability ε any."""

    network: QNetwork
    epsilon: Float[Array, ""]

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """An action in one state."""
        explore_key, uniform_key = jax.random.split(key)
        values = self.network(state)
        random = jax.random.randint(uniform_key, (), 0, values.shape[0], jnp.int32)
        greedy = jnp.argmax(values).astype(jnp.int32)
        return jnp.where(jax.random.uniform(explore_key) < self.epsilon, random, greedy)


def greedy_episodes(family: AbstractFamily, network: QNetwork, thetas: Theta, keys: Key[Array, " episodes"]) -> Episode:
    """Greedy episodes, one per key and row of `thetas`."""
    return play(family, Greedy(network), keys, thetas)


def repeat_theta(theta: Theta, count: int) -> Theta:
    """`count` lanes of one instance."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), theta)
