"""Whole episodes as one `scan`: for demonstrations, evaluation and benchmarks of any policy on any instance."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from hipmdp.families.family import AbstractFamily, Step, Theta

Policy = Callable[[PRNGKeyArray, Float[Array, " state"], Int[Array, ""]], Int[Array, ""]]
"""(key, state, time step) → action."""


@runtime_checkable
class Environment(Protocol):
    """Anything with episodes: a family, or imagination inside a learned model."""

    @property
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""

    def reset(self, key: PRNGKeyArray, theta: Any) -> Float[Array, " state"]:
        """First state of an episode in the context `theta`."""

    def step(self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], theta: Any) -> Step:
        """One step."""


class Episode(NamedTuple):
    """One episode of `horizon` steps; what follows termination is masked by `valid`."""

    states: Float[Array, "time state"]
    """The state before each step."""
    actions: Int[Array, " time"]
    rewards: Float[Array, " time"]
    next_states: Float[Array, "time state"]
    terminated: Bool[Array, " time"]
    """True at the step that ended the MDP."""
    valid: Bool[Array, " time"]
    """False after termination; rewards are zero there."""

    @property
    def undiscounted_return(self) -> Float[Array, "..."]:
        """Sum of the rewards."""
        return jnp.sum(self.rewards, axis=-1)

    @property
    def length(self) -> Int[Array, "..."]:
        """Number of steps taken."""
        return jnp.sum(self.valid, axis=-1)


def rollout(family: Environment, policy: Policy, key: PRNGKeyArray, theta: Theta) -> Episode:
    """One episode of `policy` on the instance `theta`. Pure: vmap it over keys and θ, and jit the whole."""
    reset_key, loop_key = jax.random.split(key)

    def body(
        carry: tuple[Float[Array, " state"], Bool[Array, ""]], time: Int[Array, ""]
    ) -> tuple[tuple[Float[Array, " state"], Bool[Array, ""]], Episode]:
        state, alive = carry
        act_key, step_key = jax.random.split(jax.random.fold_in(loop_key, time))
        action = policy(act_key, state, time)
        outcome = family.step(step_key, state, action, theta)
        next_state = jnp.where(alive, outcome.state, state)
        row = Episode(state, action, jnp.where(alive, outcome.reward, 0), next_state, outcome.terminated & alive, alive)
        return (next_state, alive & ~outcome.terminated & ~jnp.asarray(outcome.cut)), row

    first = family.reset(reset_key, theta)
    times = jnp.arange(family.horizon, dtype=jnp.int32)
    return jax.lax.scan(body, (first, jnp.ones((), bool)), times)[1]


def mean_return(episodes: Episode) -> float:
    """Mean undiscounted return, summed in float64."""
    return float(np.mean(np.sum(np.asarray(episodes.rewards, np.float64), axis=-1)))


def success_rate(family: AbstractFamily, episodes: Episode) -> float:
    """Share of episodes that succeed."""
    return float(np.mean(family.succeeded(np.asarray(episodes.terminated), np.asarray(episodes.next_states[:, -1]))))


@eqx.filter_jit
def rollouts(family: AbstractFamily, policy: Policy, keys: Key[Array, " lanes"], thetas: Theta) -> Episode:
    """One episode per (key, θ) pair, in lanes; every field gains a leading axis."""
    return jax.vmap(lambda key, theta: rollout(family, policy, key, theta))(keys, thetas)
