"""Episodes of a policy in an environment, each one a `scan`: environments, actors, and the arrays that episodes are.

All three loops over time (`rollout_actor`, `total_reward`, and the one around Gymnasium environments) use the same
random keys: `key, reset_key = split(key)` once, then `key, act_key, step_key = split(key, 3)` at every step.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

Policy = Callable[[PRNGKeyArray, Float[Array, " state"], Int[Array, ""]], Int[Array, ""]]
"""(key, state, time step) → action."""


class Step(NamedTuple):
    """What one step of an MDP gives. The time limit is not part of it: see `Specification.horizon`."""

    state: Float[Array, " state"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    cut: Bool[Array, ""] | bool = False
    """A model's imagination left what it knows: the episode ends here as if time were up. Never in a real MDP."""


class Transition(NamedTuple):
    """Transitions (s, a, r, s'), as arrays with any leading axes."""

    state: Float[Array, "*rows state"]
    action: Int[Array, "*rows"]
    reward: Float[Array, "*rows"]
    next_state: Float[Array, "*rows state"]
    terminated: Bool[Array, "*rows"]
    """The MDP ended in s'. A time-out is not recorded here: values are bootstrapped across it."""


class Episode(NamedTuple):
    """One episode of `horizon` steps; the steps after its end are masked by `valid`."""

    steps: Transition
    """With a leading time axis. After the end the state stays and rewards are zero."""
    valid: Bool[Array, "*lanes time"]
    """False after the end of the episode."""

    @property
    def undiscounted_return(self) -> Float[Array, "*lanes"]:
        """Sum of the rewards."""
        return jnp.sum(self.steps.reward, axis=-1)

    @property
    def length(self) -> Int[Array, "*lanes"]:
        """Number of steps taken."""
        return jnp.sum(self.valid, axis=-1)


class Members(NamedTuple):
    """Whom the lanes run: contexts with a leading axis of groups, and where `axes` is 0 a second one of members."""

    contexts: Any
    axes: Any
    """Like `contexts`: 0, or None for what the members of a group share."""


class AbstractEnvironment(eqx.Module):
    """An environment whose steps are pure functions of JAX arrays: a family, or imagination inside a learned model.

    A *context* is what differs between its members: θ_b of a family, a latent and network weights in imagination.
    """

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """Steps after which an episode is truncated."""

    @abc.abstractmethod
    def reset(self, key: PRNGKeyArray, context: Any) -> Float[Array, " state"]:
        """Draw the first state of an episode in `context`."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: Float[Array, " state"], action: Int[Array, ""], context: Any) -> Step:
        """Take one step in `context`."""

    @property
    def restart_states(self) -> Float[Array, "states state"] | None:
        """States in which episodes may restart; None: those in the replay."""
        return None

    def restart(self, state: Float[Array, " state"], context: Any) -> Float[Array, " state"]:
        """`state`, where an episode of any context has been, as a first state of an episode in `context`."""
        return state


class AbstractActor(eqx.Module):
    """A policy with a memory: the transitions that it observes change its actions."""

    @abc.abstractmethod
    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Any
    ) -> Int[Array, ""]:
        """Choose the action in `state`."""

    @abc.abstractmethod
    def observe(
        self, memory: Any, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Any:
        """Return the memory after one transition."""


class Memoryless(AbstractActor):
    """A plain policy as an actor; its memory is None."""

    policy: Policy

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Any
    ) -> Int[Array, ""]:
        """Choose the policy's action."""
        return self.policy(key, state, time)

    def observe(
        self, memory: Any, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Any:
        """Return the memory unchanged."""
        return memory


def rollout(environment: AbstractEnvironment, policy: Policy, key: PRNGKeyArray, context: Any) -> Episode:
    """Run one episode of `policy` in `context`. Pure: vmap it over keys and contexts, and jit the whole."""
    return rollout_actor(environment, Memoryless(policy), None, key, context)[0]


def rollout_actor(
    environment: AbstractEnvironment, actor: AbstractActor, memory: Any, key: PRNGKeyArray, context: Any
) -> tuple[Episode, Any]:
    """Run one episode of an actor that begins with `memory`; return its memory at the end too. Pure, as `rollout`."""
    Carry = tuple[PRNGKeyArray, Float[Array, " state"], Bool[Array, ""], Any]

    def body(carry: Carry, time: Int[Array, ""]) -> tuple[Carry, Episode]:
        key, state, alive, memory = carry
        key, act_key, step_key = jax.random.split(key, 3)
        action = actor.act(act_key, state, time, memory)
        outcome = environment.step(step_key, state, action, context)
        next_state = jnp.where(alive, outcome.state, state)
        observed = actor.observe(memory, state, action, outcome.state)
        memory = jax.tree.map(lambda new, old: jnp.where(alive, new, old), observed, memory)
        reward = jnp.where(alive, outcome.reward, 0)
        row = Episode(Transition(state, action, reward, next_state, outcome.terminated & alive), alive)
        return (key, next_state, alive & ~outcome.terminated & ~jnp.asarray(outcome.cut), memory), row

    key, reset_key = jax.random.split(key)
    first = key, environment.reset(reset_key, context), jnp.ones((), bool), memory
    (_, _, _, memory), episode = jax.lax.scan(body, first, jnp.arange(environment.horizon, dtype=jnp.int32))
    return episode, memory


def total_reward(environment: AbstractEnvironment, policy: Policy, key: PRNGKeyArray, context: Any) -> Float[Array, ""]:
    """Sum the rewards of the episode that `rollout` gives, and stop when it ends. Pure, as `rollout`."""
    Carry = tuple[PRNGKeyArray, Float[Array, " state"], Bool[Array, ""], Int[Array, ""], Float[Array, ""]]

    def is_running(carry: Carry) -> Bool[Array, ""]:
        _, _, alive, time, _ = carry
        return alive & (time < environment.horizon)

    def body(carry: Carry) -> Carry:
        key, state, _, time, total = carry
        key, act_key, step_key = jax.random.split(key, 3)
        outcome = environment.step(step_key, state, policy(act_key, state, time), context)
        alive = ~outcome.terminated & ~jnp.asarray(outcome.cut)
        return key, outcome.state, alive, time + 1, total + outcome.reward

    key, reset_key = jax.random.split(key)
    start = environment.reset(reset_key, context)
    first = key, start, jnp.ones((), bool), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32)
    return jax.lax.while_loop(is_running, body, first)[-1]


@eqx.filter_jit
def rollouts(environment: AbstractEnvironment, policy: Policy, keys: Key[Array, " lanes"], contexts: Any) -> Episode:
    """Run one episode per (key, context) pair, in lanes: every field gains a leading axis."""
    return jax.vmap(lambda key, context: rollout(environment, policy, key, context))(keys, contexts)


@eqx.filter_jit
def rollout_actors(
    environment: AbstractEnvironment, actor: AbstractActor, memory: Any, keys: Key[Array, " lanes"], contexts: Any
) -> tuple[Episode, Any]:
    """Run one episode of an actor per (key, context) pair, each from the same memory; return the last memories too."""
    return jax.vmap(lambda key, context: rollout_actor(environment, actor, memory, key, context))(keys, contexts)


def mean_return(episodes: Episode) -> float:
    """Mean undiscounted return, summed in float64."""
    return float(np.mean(np.sum(np.asarray(episodes.steps.reward, np.float64), axis=-1)))


def success_rate(family: Any, episodes: Episode) -> float:
    """Share of the episodes that succeed, by the `succeeded` of their family."""
    steps = episodes.steps
    return float(np.mean(family.succeeded(np.asarray(steps.terminated), np.asarray(steps.next_state[:, -1]))))
