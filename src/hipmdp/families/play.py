"""Real episodes of any family: one jitted scan where JAX knows the dynamics, Python where Gymnasium does."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray, UInt32

from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.host import HostFamily, Pool, seed_of
from hipmdp.families.rollout import Actor, Episode, Memoryless, Policy, lives, rollouts


def play(family: AbstractFamily, policy: Policy, keys: Key[Array, " lanes"], thetas: Theta) -> Episode:
    """One episode per (key, θ) pair; every field has a leading axis."""
    if not isinstance(family, HostFamily):
        return rollouts(family, policy, keys, thetas)
    return play_lives(family, Memoryless(policy), None, keys, thetas)[0]


def play_lives(
    family: AbstractFamily, actor: Actor, memory: Any, keys: Key[Array, " lanes"], thetas: Theta
) -> tuple[Episode, Any]:
    """One episode of an actor per (key, θ) pair, each beginning with `memory`; and the memories at their ends."""
    if not isinstance(family, HostFamily):
        return lives(family, actor, memory, keys, thetas)
    values = list(zip(*(np.asarray(leaf, np.float64).tolist() for leaf in thetas), strict=True))
    copies = family.given.copies
    with Pool(family) as pool:
        parts = [_side_by_side(pool, actor, memory, keys[i : i + copies], values[i : i + copies])
                 for i in range(0, len(values), copies)]  # fmt: skip
    return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *parts)


def first_states(family: AbstractFamily, keys: Key[Array, " count"], theta: Theta) -> Float[Array, "count state"]:
    """First states of episodes of one instance."""
    if not isinstance(family, HostFamily):
        return jax.vmap(lambda key: family.reset(key, theta))(keys)
    with Pool(family) as pool:
        live = pool.take(family.values_of(theta))
        return jnp.asarray(np.stack([live.reset(seed_of(key)) for key in keys]))


def _side_by_side(
    pool: Pool, actor: Actor, memory: Any, keys: Key[Array, " lanes"], values: Sequence[tuple[float, ...]]
) -> tuple[Episode, Any]:
    """Episodes in step with each other, each in its own environment: one call of the actor serves them all."""
    specification = pool.family.specification
    shape, size = (len(values), specification.horizon), specification.state_size
    states: Any = np.zeros((*shape, size), np.float32)
    number, paid, flag = (np.zeros(shape, kind) for kind in (np.int32, np.float32, bool))
    blank: Any = Episode(states, number, paid, states, flag, flag)  # type: ignore[arg-type]
    played: Any = jax.tree.map(np.copy, blank)
    lives = [pool.take(v) for v in values]
    seeds, loop_keys = _begin(keys)
    current: Any = np.stack([live.reset(int(seed)) for live, seed in zip(lives, np.asarray(seeds), strict=True)])
    alive = np.ones(len(values), bool)
    memories = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(values), *jnp.shape(leaf))), memory)
    for time in range(specification.horizon):
        actions = np.asarray(_act(actor, loop_keys, current, jnp.asarray(time, jnp.int32), memories))
        played.states[:, time], played.actions[:, time], played.valid[:, time] = current, actions, alive
        for lane in np.flatnonzero(alive):
            current[lane], reward, terminated, truncated = lives[lane].step(int(actions[lane]))
            played.rewards[lane, time], played.terminated[lane, time] = reward, terminated
            alive[lane] = not (terminated or truncated)
        played.next_states[:, time] = current
        if memory is not None:
            lived = played.states[:, time], played.actions[:, time], current, played.valid[:, time]
            memories = _observe(actor, memories, *(jnp.asarray(column) for column in lived))
        if not alive.any():
            # What follows is not valid; states stay where they are, as in `rollout`.
            played.states[:, time + 1 :] = played.next_states[:, time + 1 :] = current[:, None]
            break
    for live in lives:
        pool.give_back(live)
    return played, memories


@jax.jit
def _begin(keys: Key[Array, " lanes"]) -> tuple[UInt32[Array, " lanes"], Key[Array, " lanes"]]:
    def one(key: PRNGKeyArray) -> tuple[UInt32[Array, ""], PRNGKeyArray]:
        reset_key, loop_key = jax.random.split(key)
        return jax.random.bits(reset_key, (), jnp.uint32) >> 1, loop_key

    return jax.vmap(one)(keys)


@eqx.filter_jit
def _act(
    actor: Actor, keys: Key[Array, " lanes"], states: Float[Array, "lanes state"], time: Int[Array, ""], memories: Any
) -> Int[Array, " lanes"]:
    """The same keys as in `rollout`."""

    def one(key: PRNGKeyArray, state: Float[Array, " state"], memory: Any) -> Int[Array, ""]:
        act_key, _ = jax.random.split(jax.random.fold_in(key, time))
        return actor.act(act_key, state, time, memory)

    return jax.vmap(one)(keys, states, memories)


@eqx.filter_jit
def _observe(
    actor: Actor,
    memories: Any,
    states: Float[Array, "lanes state"],
    actions: Int[Array, " lanes"],
    next_states: Float[Array, "lanes state"],
    alive: Bool[Array, " lanes"],
) -> Any:
    def one(memory: Any, state: Array, action: Array, next_state: Array, alive: Array) -> Any:
        learned = actor.observe(memory, state, action, next_state)
        return jax.tree.map(lambda new, old: jnp.where(alive, new, old), learned, memory)

    return jax.vmap(one)(memories, states, actions, next_states, alive)
