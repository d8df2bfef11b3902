"""The same learner where Python steps the environment: steps on the host, updates in one jitted call per tick.

A checkpoint cannot hold the inside of an environment, so `run_ticks` ends with no episode under way. Every episode
begins with a seed drawn from the learner's key: a run that was stopped and restored goes on to the same bits.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from hipmdp.control import learner
from hipmdp.control.config import DDQNConfig
from hipmdp.control.learner import Experience, Lanes, LearnerState, Rows
from hipmdp.control.network import QNetwork
from hipmdp.families.host import HostFamily, Live, Pool


class Draws(NamedTuple):
    """All that is random in one tick, drawn at once: a call of JAX costs as much as several steps."""

    chance: Float[Array, "steps lanes"]
    action: Int[Array, "steps lanes"]
    seed: UInt32[Array, "steps lanes"]


def run_ticks(
    config: DDQNConfig, family: HostFamily, contexts: Any, state: LearnerState, limit: int, ticks: int
) -> tuple[LearnerState, Rows]:
    """`ticks` ticks, and then as many as it takes to end the episodes under way. `state` is donated."""
    if config.restart_share > 0:
        raise ValueError(f"{family.name} is a Gymnasium environment: episodes cannot restart from a state met before.")
    values = list(zip(*(np.asarray(leaf, np.float64).tolist() for leaf in contexts), strict=True))
    parts: list[Rows] = []
    with Pool(family) as pool:
        host = _Host(config, pool, values, state)
        while len(parts) < ticks or host.active.any():
            wanted = limit if len(parts) < ticks else host.started
            if not host.active.any() and host.started >= wanted:
                break
            key, draws = _draw(config, family.specification.action_count, state.key)
            rows = host.tick(state.online, jax.tree.map(np.asarray, draws), wanted)
            state = _learn((config, rows), state._replace(key=key))
            parts.append(rows)
    return host.put_into(state), jax.tree.map(lambda *leaves: np.stack(leaves), *parts)


class _Host:
    """Where each lane is, and its environment."""

    def __init__(self, config: DDQNConfig, pool: Pool, values: list[tuple[float, ...]], state: LearnerState) -> None:
        self.config, self.pool, self.values = config, pool, values
        self.states, self.time, self.episode, self.active = (np.array(leaf) for leaf in state.lanes)
        self.started = int(state.started)
        self.lives: list[Live | None] = [None] * config.lanes

    def tick(self, online: QNetwork, draws: Draws, limit: int) -> Rows:
        """N_π ε-greedy steps of every lane, one lane after the other."""
        steps, lanes, size = self.config.steps_per_phase, self.config.lanes, self.states.shape[1]
        rows: Rows = _no_rows(steps * lanes, size)
        for step in range(steps):
            for lane in range(lanes):
                if not self.active[lane] and self.started < limit:
                    self._begin(lane, int(draws.seed[step, lane]))
                if self.active[lane]:
                    self._step(rows, step * lanes + lane, lane, online, draws, step)
        return rows

    def _begin(self, lane: int, seed: int) -> None:
        episode = self.started
        live = self.pool.take(self.values[episode % len(self.values)])
        self.lives[lane], self.states[lane] = live, live.reset(seed)
        self.time[lane], self.episode[lane], self.active[lane] = 0, episode, True
        self.started += 1

    def _step(self, rows: Rows, row: int, lane: int, online: QNetwork, draws: Draws, step: int) -> None:
        live, config = self.lives[lane], self.config
        assert live is not None
        chance = config.epsilon_start * config.epsilon_decay ** int(self.episode[lane])
        explore = draws.chance[step, lane] < max(config.epsilon_floor, chance)
        action = int(draws.action[step, lane] if explore else _greedy(online, self.states[lane]))
        next_state, reward, terminated, truncated = live.step(action)
        time = int(self.time[lane])
        truncated = not terminated and (truncated or time + 1 >= self.pool.family.horizon)
        told = (self.states[lane], action, reward, next_state, terminated, truncated, self.episode[lane], time, True)
        for column, value in zip(jax.tree.leaves(rows), told, strict=True):
            column[row] = value
        self.states[lane], self.time[lane] = next_state, time + 1
        if terminated or truncated:
            self.pool.give_back(live)
            self.active[lane] = False

    def put_into(self, state: LearnerState) -> LearnerState:
        """The learner with these lanes."""
        lanes = Lanes(*(jnp.asarray(a) for a in (self.states, self.time, self.episode, self.active)))
        return state._replace(lanes=lanes, started=jnp.asarray(self.started, jnp.int32))


def _no_rows(count: int, size: int) -> Any:
    """Room for `count` steps."""
    state: Any = np.zeros((count, size), np.float32)
    reward, number, flag = (np.zeros(count, kind) for kind in (np.float32, np.int32, bool))
    blank: Any = Rows(Experience(state, number, reward, state, flag), flag, number, number, flag)  # type: ignore[arg-type]
    return jax.tree.map(np.copy, blank)


@jax.jit
def _greedy(network: QNetwork, state: Float[Array, " state"]) -> Int[Array, ""]:
    return jnp.argmax(network(state)).astype(jnp.int32)


@eqx.filter_jit
def _draw(config: DDQNConfig, actions: int, key: PRNGKeyArray) -> tuple[PRNGKeyArray, Draws]:
    shape = (config.steps_per_phase, config.lanes)
    key, chance_key, action_key, seed_key = jax.random.split(key, 4)
    return key, Draws(
        jax.random.uniform(chance_key, shape),
        jax.random.randint(action_key, shape, 0, actions, jnp.int32),
        jax.random.bits(seed_key, shape, jnp.uint32) >> 1,
    )


@eqx.filter_jit(donate="all-except-first")
def _learn(kept: tuple[DDQNConfig, Rows], state: LearnerState) -> LearnerState:
    config, rows = kept
    return learner.learn(config, state, rows)
