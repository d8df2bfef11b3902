"""The value of a policy by rollouts in the posterior.

A value is a mean over episodes of one future. First states are drawn anew from the logged ones; chance is the same in
all episodes of a future: what looks like chance may be error, which many episodes do not average out.

The same futures also repeat what was done: the logged actions from the logged first states. What they then earn, beside
what was earned, says how far the model's values can be believed.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.control.policy import HostRule, Policy
from hipmdp.families.rollout import Policy as Rule
from hipmdp.families.rollout import rollout
from hipmdp.families.scripted import Schedule
from hipmdp.families.specification import Specification
from hipmdp.from_logs.evaluation.estimate import LoggedEpisodes
from hipmdp.from_logs.evaluation.futures import Drawn, Future, Futures

EPISODES = 5
"""Of each future: from first states drawn anew, or of the log."""


class Values(NamedTuple):
    """[future, episode]: returns."""

    discounted: np.ndarray
    undiscounted: np.ndarray

    @property
    def means(self) -> "Values":
        """[future]: over the episodes."""
        return Values(*(part.mean(axis=1) for part in self))


class Visited(NamedTuple):
    """The steps that were imagined."""

    state: np.ndarray
    """From the origin of the specification."""
    action: np.ndarray


def policy_values(
    futures: Futures, policy: Policy, episodes: LoggedEpisodes, discount: float, *, key: PRNGKeyArray
) -> tuple[Values, Visited]:
    """Returns of the policy in every future, from logged first states drawn anew, and where it went."""
    start_key, episode_key = jax.random.split(key)
    keys = futures.keys(episode_key)
    rows = jax.random.randint(start_key, (len(keys), EPISODES), 0, len(episodes.first_states), jnp.int32)
    firsts = jnp.asarray(policy.specification.from_origin(episodes.first_states))[rows]
    try:
        found = _policy_returns(futures, policy.rule, firsts, keys, jnp.asarray(discount, jnp.float32))
        returns, states, actions, valid = jax.tree.map(np.asarray, found)
    except jax.errors.JaxRuntimeError:
        if isinstance(policy.rule, HostRule) and policy.rule.host.error is not None:
            # A user's function: its own words, instead of those around them.
            raise policy.rule.host.error from None
        raise
    return _values(returns), Visited(states[valid], actions[valid])


def some_episodes(episodes: LoggedEpisodes) -> LoggedEpisodes:
    """`EPISODES` of them, evenly spread; some twice where there are fewer."""
    return episodes.select(np.linspace(0, len(episodes.complete) - 1, EPISODES).round().astype(np.int64))


def repeated_values(
    futures: Futures, specification: Specification, logged: LoggedEpisodes, discount: float, *, key: PRNGKeyArray
) -> Values:
    """Returns of `some_episodes` in every future: logged actions from logged first states, as long as they were."""
    firsts = jnp.asarray(specification.from_origin(logged.first_states))
    actions = np.zeros((EPISODES, specification.horizon), np.int32)
    actions[:, : logged.action.shape[1]] = logged.action
    lengths = jnp.asarray(logged.lengths, jnp.int32)
    scripts = (firsts, jnp.asarray(actions), lengths)
    return _values(_repeated_returns(futures, *scripts, futures.keys(key), jnp.asarray(discount, jnp.float32)))


def _values(returns: Any) -> Values:
    return Values(*(np.asarray(part, np.float64) for part in returns))


@eqx.filter_jit
def _policy_returns(
    futures: Futures, rule: Rule, firsts: Float[Array, "futures starts state"], keys: Any, discount: Float[Array, ""]
) -> Any:
    def one(first: Array, key: PRNGKeyArray, drawn: Drawn) -> Any:
        episode = rollout(Future(futures, drawn, first), rule, key, None)
        return _sums(episode.steps.reward, discount), episode.steps.state, episode.steps.action, episode.valid

    over_starts = jax.vmap(one, in_axes=(0, None, None))
    return jax.vmap(over_starts)(firsts, keys, futures.drawn)


@eqx.filter_jit
def _repeated_returns(
    futures: Futures, firsts: Array, actions: Array, lengths: Array, keys: Any, discount: Float[Array, ""]
) -> Any:
    def one(first: Array, actions: Array, length: Array, key: PRNGKeyArray, drawn: Drawn) -> Any:
        episode = rollout(Future(futures, drawn, first), Schedule(actions), key, None)
        within = jnp.arange(actions.shape[0], dtype=jnp.int32) < length
        return _sums(jnp.where(within, episode.steps.reward, 0), discount)

    over_starts = jax.vmap(one, in_axes=(0, 0, 0, None, None))
    over_futures = jax.vmap(over_starts, in_axes=(None, None, None, 0, 0))
    return over_futures(firsts, actions, lengths, keys, futures.drawn)


def _sums(rewards: Float[Array, " time"], discount: Float[Array, ""]) -> tuple[Array, Array]:
    factors = discount ** jnp.arange(rewards.shape[0], dtype=jnp.float32)
    return rewards @ factors, jnp.sum(rewards)
