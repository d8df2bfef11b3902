"""The value of a policy by rollouts in the posterior: one future is a draw of W, of w_b, and of the start states.

The same futures also repeat what was done: the logged actions from the logged first states. What they then earn, beside
what was earned, says how far the model's values can be believed.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from hipmdp.control.policy import Policy
from hipmdp.families.rollout import rollout
from hipmdp.families.scripted import Schedule
from hipmdp.from_logs.evaluation.estimate import LoggedEpisodes
from hipmdp.imagination.contexts import Context
from hipmdp.imagination.environment import Future, Imagination

FUTURES = 100
"""Draws of everything that is not known."""
STARTS = 8
"""Episodes of each, at most."""


class Futures(NamedTuple):
    """Draws of what is not known of a system."""

    imagination: Imagination
    contexts: Context
    """One for each future."""
    noise: Float[Array, " state"]
    """Spread of what T̂ does not foretell in a step, standardised."""

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.contexts.latent.shape[0])

    def beginning_in(self, first: Float[Array, " state"]) -> Future:
        """The environment that begins there."""
        return Future(self.imagination, first, self.noise)


class Values(NamedTuple):
    """[future]: mean returns over the start states of a future."""

    discounted: np.ndarray
    undiscounted: np.ndarray


class Visited(NamedTuple):
    """Some of the steps that were imagined."""

    state: np.ndarray
    """From the origin of the specification."""
    action: np.ndarray


def policy_values(
    futures: Futures, policy: Policy, episodes: LoggedEpisodes, discount: float, *, key: PRNGKeyArray
) -> tuple[Values, Visited]:
    """Returns of the policy in every future, from logged first states drawn anew, and where it went."""
    start_key, episode_key = jax.random.split(key)
    count = min(STARTS, len(episodes.first_states))
    rows = jax.random.randint(start_key, (futures.size, count), 0, len(episodes.first_states), jnp.int32)
    firsts = jnp.asarray(policy.specification.from_origin(episodes.first_states))[rows]
    keys = jax.random.split(episode_key, (futures.size, count))
    returns, states, actions, valid = _policy_returns(futures, policy.rule, firsts, keys, discount)
    chosen = np.asarray(valid)
    return Values(*(_means(part) for part in returns)), Visited(np.asarray(states)[chosen], np.asarray(actions)[chosen])


def repeated_values(
    futures: Futures, episodes: LoggedEpisodes, policy: Policy, discount: float, *, key: PRNGKeyArray
) -> Values:
    """Returns of what was done, in every future: logged actions from logged first states."""
    firsts = jnp.asarray(policy.specification.from_origin(episodes.first_states))
    horizon = futures.imagination.horizon
    actions = np.zeros((len(firsts), horizon), np.int32)
    steps = min(horizon, episodes.action.shape[1])
    actions[:, :steps] = episodes.action[:, :steps]
    lengths = jnp.asarray(episodes.valid.sum(axis=1), jnp.int32)
    keys = jax.random.split(key, (futures.size, len(firsts)))
    returns = _repeated_returns(futures, firsts, jnp.asarray(actions), lengths, keys, discount)
    return Values(*(_means(part) for part in returns))


def _means(returns: Any) -> np.ndarray:
    return np.asarray(returns, np.float64).mean(axis=1)


@eqx.filter_jit
def _policy_returns(
    futures: Futures,
    rule: Any,
    firsts: Float[Array, "futures starts state"],
    keys: Key[Array, "futures starts"],
    discount: float,
) -> Any:
    def one(first: Array, key: PRNGKeyArray, context: Any) -> Any:
        episode = rollout(futures.beginning_in(first), rule, key, context)
        returns = _sums(episode.steps.reward, discount)
        return returns, episode.steps.state, episode.steps.action, episode.valid

    return _over_futures(one)(firsts, keys, futures.contexts)


@eqx.filter_jit
def _repeated_returns(
    futures: Futures,
    firsts: Float[Array, "starts state"],
    actions: Int[Array, "starts time"],
    lengths: Int[Array, " starts"],
    keys: Key[Array, "futures starts"],
    discount: float,
) -> Any:
    def one(first: Array, actions: Array, length: Array, key: PRNGKeyArray, context: Any) -> Any:
        episode = rollout(futures.beginning_in(first), Schedule(actions), key, context)
        within = jnp.arange(actions.shape[0], dtype=jnp.int32) < length
        return _sums(jnp.where(within, episode.steps.reward, 0), discount)

    over_starts = jax.vmap(one, in_axes=(0, 0, 0, 0, None))
    return jax.vmap(over_starts, in_axes=(None, None, None, 0, 0))(firsts, actions, lengths, keys, futures.contexts)


def _over_futures(one: Any) -> Any:
    return jax.vmap(jax.vmap(one, in_axes=(0, 0, None)), in_axes=(0, 0, 0))


def _sums(rewards: Float[Array, " time"], discount: float) -> tuple[Array, Array]:
    factors = discount ** jnp.arange(rewards.shape[0], dtype=jnp.float32)
    return rewards @ factors, jnp.sum(rewards)
