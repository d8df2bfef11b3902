"""Episodes of Gymnasium environments in lanes: Python steps them one after the other, one jitted call acts for all."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from hipmdp._random import host_seed
from hipmdp.families.gymnasium.pool import Pool, Values
from hipmdp.families.rollout import AbstractActor, Episode, Transition
from hipmdp.families.specification import Specification


def run_lanes(
    pool: Pool,
    specification: Specification,
    actor: AbstractActor,
    memory: Any,
    *,
    keys: Key[Array, " lanes"],
    values: Sequence[Values],
) -> tuple[Episode, Any]:
    """One episode per (key, θ) pair, all at the same time, each from `memory`; NumPy arrays with a leading axis.

    Keys, and the rows after the end of an episode, are as in `rollout_actor`.
    """
    episode = _empty_episode(len(values), specification)
    steps = episode.steps
    environments = [pool.acquire(v) for v in values]
    keys, reset_keys = _begin(keys)
    starts = [env.reset(host_seed(key)) for env, key in zip(environments, reset_keys, strict=True)]
    current: Any = np.stack(starts)
    alive = np.ones(len(values), bool)
    memories = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(values), *jnp.shape(leaf))), memory)
    for time in range(specification.horizon):
        keys, chosen = _act(actor, keys, current, jnp.asarray(time, jnp.int32), memories)
        actions = np.asarray(chosen)
        steps.state[:, time], steps.action[:, time], episode.valid[:, time] = current, actions, alive
        for lane in np.flatnonzero(alive):
            current[lane], reward, terminated, truncated = environments[lane].step(int(actions[lane]))
            steps.reward[lane, time], steps.terminated[lane, time] = reward, terminated
            alive[lane] = not (terminated or truncated)
        steps.next_state[:, time] = current
        if memory is not None:
            # Not `current`: JAX may read the array after the next step has changed it.
            columns = steps.state, steps.action, steps.next_state, episode.valid
            memories = _observe(actor, memories, *(jnp.asarray(column[:, time]) for column in columns))
        if not alive.any():
            # The rest is not valid; states stay as they are.
            steps.state[:, time + 1 :] = steps.next_state[:, time + 1 :] = current[:, None]
            break
    for environment in environments:
        pool.release(environment)
    return episode, memories


def _empty_episode(lanes: int, specification: Specification) -> Any:
    shape, size = (lanes, specification.horizon), specification.state_size
    state, next_state = (np.zeros((*shape, size), np.float32) for _ in range(2))
    action, reward = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
    terminated, valid = (np.zeros(shape, bool) for _ in range(2))
    steps: Any = (state, action, reward, next_state, terminated)
    return Episode(Transition(*steps), valid)  # type: ignore[arg-type]


@jax.jit
def _begin(keys: Key[Array, " lanes"]) -> tuple[Key[Array, " lanes"], Key[Array, " lanes"]]:
    """The keys of the loops over time, and those of the resets."""
    both = jax.vmap(jax.random.split)(keys)
    return both[:, 0], both[:, 1]


@eqx.filter_jit
def _act(
    actor: AbstractActor,
    keys: Key[Array, " lanes"],
    states: Float[Array, "lanes state"],
    time: Int[Array, ""],
    memories: Any,
) -> tuple[Key[Array, " lanes"], Int[Array, " lanes"]]:
    """The keys of the next step, and the actions of this one."""

    def act(key: PRNGKeyArray, state: Float[Array, " state"], memory: Any) -> tuple[PRNGKeyArray, Int[Array, ""]]:
        key, act_key, _ = jax.random.split(key, 3)
        return key, actor.act(act_key, state, time, memory)

    return jax.vmap(act)(keys, states, memories)


@eqx.filter_jit
def _observe(
    actor: AbstractActor,
    memories: Any,
    states: Float[Array, "lanes state"],
    actions: Int[Array, " lanes"],
    next_states: Float[Array, "lanes state"],
    alive: Bool[Array, " lanes"],
) -> Any:
    """The memories after one step of those lanes that are alive."""

    def observe(memory: Any, state: Array, action: Array, next_state: Array, alive: Array) -> Any:
        observed = actor.observe(memory, state, action, next_state)
        return jax.tree.map(lambda new, old: jnp.where(alive, new, old), observed, memory)

    return jax.vmap(observe)(memories, states, actions, next_states, alive)
