"""ε-greedy exploration: the only place where random and greedy actions are mixed.

A random action may be held for n steps, P(n) ∝ 1/n up to a longest run (after ε z-greedy, Dabney et al. 2021): where
something happens only if one goes on for a while, single random steps never show it. ε stays the share of random steps:
with E the mean of n, a run begins with probability ε / (ε + (1 − ε) E). Where most episodes are eventful anyway, random
actions are single: runs lead to the edges of what can be reached, and a batch has too little of everything else.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp.settings.dqn import DDQNConfig


class Exploration(NamedTuple):
    """What is random in ε-greedy choices; any shape."""

    chance: Float[Array, "..."]
    """Uniform in [0, 1): below the probability that a run begins, the random action is taken."""
    action: Int[Array, "..."]
    """Uniform over the actions."""
    length: Int[Array, "..."]
    """For how many steps it is held."""


class Held(NamedTuple):
    """The random action that is held, and for how many steps more."""

    action: Int[Array, "..."]
    left: Int[Array, "..."]


EVENTFUL, MEMORY = 0.5, 10
"""Random actions are held while a smaller share of the recent episodes was eventful; how many those are."""


class Events(NamedTuple):
    """Whether something happens: an episode is eventful if its reward varies or it terminates."""

    first: Float[Array, " lanes"]
    """The reward of the first step of the episode under way; NaN before it."""
    eventful: Bool[Array, " lanes"]
    """Whether that episode is eventful so far."""
    share: Float[Array, ""]
    """How many of the recent episodes were eventful, as a share."""

    @property
    def holds(self) -> Bool[Array, ""]:
        """Whether random actions are held now."""
        return self.share < EVENTFUL

    def observe(
        self,
        reward: Float[Array, " lanes"],
        terminated: Bool[Array, " lanes"],
        truncated: Bool[Array, " lanes"],
        valid: Bool[Array, " lanes"],
    ) -> "Events":
        """With one more step of every lane that is valid."""
        first = jnp.where(jnp.isnan(self.first) & valid, reward, self.first)
        eventful = self.eventful | (valid & (terminated | (reward != first)))
        over = valid & (terminated | truncated)
        lanes = max(MEMORY, reward.shape[0])
        share = self.share + jnp.sum(jnp.where(over, eventful.astype(jnp.float32) - self.share, 0)) / lanes
        return Events(jnp.where(over, jnp.nan, first), eventful & ~over, share)


def no_events(lanes: int) -> Events:
    """Before the first step; that episodes are not eventful has to be seen."""
    return Events(jnp.full(lanes, jnp.nan, jnp.float32), jnp.zeros(lanes, bool), jnp.ones((), jnp.float32))


def nothing_held(shape: tuple[int, ...]) -> Held:
    """No action is held."""
    # Arrays of their own: they are donated.
    return Held(jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.int32))


def _lengths(longest: int) -> np.ndarray:
    """P(n) of n = 1 to `longest`."""
    weights = np.arange(1, longest + 1, dtype=np.float64) ** -1
    return weights / weights.sum()


def draw_exploration(key: PRNGKeyArray, shape: tuple[int, ...], actions: int, longest: int = 1) -> Exploration:
    """Draw the random part of choices among `actions` actions, held for `longest` steps at most."""
    if longest == 1:
        chance_key, action_key = jax.random.split(key)
        length = jnp.ones(shape, jnp.int32)
    else:
        chance_key, action_key, length_key = jax.random.split(key, 3)
        reached = jnp.asarray(np.cumsum(_lengths(longest))[:-1], jnp.float32)
        length = 1 + jnp.searchsorted(reached, jax.random.uniform(length_key, shape)).astype(jnp.int32)
    action = jax.random.randint(action_key, shape, 0, actions, jnp.int32)
    return Exploration(jax.random.uniform(chance_key, shape), action, length)


def begin_chance(epsilon: Float[Array, "..."], longest: int, holds: Bool[Array, ""]) -> Float[Array, "..."]:
    """The probability that a run of random actions begins where none is held."""
    mean = jnp.where(holds, float(_lengths(longest) @ np.arange(1, longest + 1)), 1.0)
    return epsilon / (epsilon + (1 - epsilon) * mean)


def epsilon_greedy(
    exploration: Exploration, epsilon: Float[Array, "..."], greedy: Int[Array, "..."]
) -> Int[Array, "..."]:
    """The greedy action, or with probability ε the random one."""
    return jnp.where(exploration.chance < epsilon, exploration.action, greedy)


def explore(
    exploration: Exploration,
    epsilon: Float[Array, "..."],
    greedy: Int[Array, "..."],
    *,
    held: Held,
    longest: int,
    holds: Bool[Array, ""],
) -> tuple[Int[Array, "..."], Held]:
    """The action that is held; otherwise the greedy one, or a random one, which is held from now on if `holds`."""
    goes_on = held.left > 0
    begins = ~goes_on & (exploration.chance < begin_chance(epsilon, longest, holds))
    action = jnp.where(goes_on, held.action, jnp.where(begins, exploration.action, greedy))
    left = jnp.where(goes_on, held.left - 1, jnp.where(begins & holds, exploration.length - 1, 0))
    return action, Held(action, left)


def epsilon(config: DDQNConfig, episode: Int[Array, "..."]) -> Float[Array, "..."]:
    """ε = max(floor, start · decay^episode)."""
    return jnp.maximum(config.epsilon_floor, config.epsilon_start * config.epsilon_decay ** episode.astype(jnp.float32))
