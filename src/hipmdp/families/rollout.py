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
class Actor(Protocol):
    """A policy that remembers: what it has seen of the instance changes what it does."""

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Any
    ) -> Int[Array, ""]:
        """The action."""

    def observe(
        self, memory: Any, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Any:
        """The memory after one transition."""


class Memoryless(eqx.Module):
    """A plain policy as an actor."""

    policy: Policy

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: None
    ) -> Int[Array, ""]:
        """The policy's action."""
        return self.policy(key, state, time)

    def observe(
        self, memory: None, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> None:
        """Nothing is remembered."""


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
    return live(family, Memoryless(policy), None, key, theta)[0]


def live(family: Environment, actor: Actor, memory: Any, key: PRNGKeyArray, theta: Theta) -> tuple[Episode, Any]:
    """One episode of an actor that begins with `memory`, and its memory at the end. Pure, as `rollout`."""
    reset_key, loop_key = jax.random.split(key)

    def body(
        carry: tuple[Float[Array, " state"], Bool[Array, ""], Any], time: Int[Array, ""]
    ) -> tuple[tuple[Float[Array, " state"], Bool[Array, ""], Any], Episode]:
        state, alive, memory = carry
        act_key, step_key = jax.random.split(jax.random.fold_in(loop_key, time))
        action = actor.act(act_key, state, time, memory)
        outcome = family.step(step_key, state, action, theta)
        next_state = jnp.where(alive, outcome.state, state)
        learned = actor.observe(memory, state, action, outcome.state)
        memory = jax.tree.map(lambda new, old: jnp.where(alive, new, old), learned, memory)
        row = Episode(state, action, jnp.where(alive, outcome.reward, 0), next_state, outcome.terminated & alive, alive)
        return (next_state, alive & ~outcome.terminated & ~jnp.asarray(outcome.cut), memory), row

    first = family.reset(reset_key, theta)
    times = jnp.arange(family.horizon, dtype=jnp.int32)
    (_, _, memory), episode = jax.lax.scan(body, (first, jnp.ones((), bool), memory), times)
    return episode, memory


def total_reward(family: Environment, policy: Policy, key: PRNGKeyArray, theta: Theta) -> Float[Array, ""]:
    """The undiscounted return of `rollout`, and nothing else of it: it ends with the episode. Pure, as `rollout`."""
    reset_key, loop_key = jax.random.split(key)
    Carry = tuple[Float[Array, " state"], Bool[Array, ""], Int[Array, ""], Float[Array, ""]]

    def is_going(carry: Carry) -> Bool[Array, ""]:
        _, alive, time, _ = carry
        return alive & (time < family.horizon)

    def body(carry: Carry) -> Carry:
        state, _, time, total = carry
        act_key, step_key = jax.random.split(jax.random.fold_in(loop_key, time))
        outcome = family.step(step_key, state, policy(act_key, state, time), theta)
        alive = ~outcome.terminated & ~jnp.asarray(outcome.cut)
        return outcome.state, alive, time + 1, total + outcome.reward

    zero = jnp.zeros((), jnp.float32)
    first = family.reset(reset_key, theta), jnp.ones((), bool), jnp.zeros((), jnp.int32), zero
    return jax.lax.while_loop(is_going, body, first)[-1]


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


@eqx.filter_jit
def lives(
    family: AbstractFamily, actor: Actor, memory: Any, keys: Key[Array, " lanes"], thetas: Theta
) -> tuple[Episode, Any]:
    """One episode of an actor per (key, θ) pair, each beginning with the same memory; the memories at their ends."""
    return jax.vmap(lambda key, theta: live(family, actor, memory, key, theta))(keys, thetas)
