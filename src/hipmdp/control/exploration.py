"""ε-greedy exploration: the only place where random and greedy actions are mixed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.settings.dqn import DDQNConfig


class Exploration(NamedTuple):
    """What is random in ε-greedy choices; any shape."""

    chance: Float[Array, "..."]
    """Uniform in [0, 1): below ε, the random action is taken."""
    action: Int[Array, "..."]
    """Uniform over the actions."""


def draw_exploration(key: PRNGKeyArray, shape: tuple[int, ...], actions: int) -> Exploration:
    """Draw the random part of choices among `actions` actions."""
    chance_key, action_key = jax.random.split(key)
    action = jax.random.randint(action_key, shape, 0, actions, jnp.int32)
    return Exploration(jax.random.uniform(chance_key, shape), action)


def epsilon_greedy(
    exploration: Exploration, epsilon: Float[Array, "..."], greedy: Int[Array, "..."]
) -> Int[Array, "..."]:
    """The greedy action, or with probability ε the random one."""
    return jnp.where(exploration.chance < epsilon, exploration.action, greedy)


def epsilon(config: DDQNConfig, episode: Int[Array, "..."]) -> Float[Array, "..."]:
    """ε = max(floor, start · decay^episode)."""
    return jnp.maximum(config.epsilon_floor, config.epsilon_start * config.epsilon_decay ** episode.astype(jnp.float32))
