"""The same DQN where Python steps the environment: Gymnasium steps, and one jitted call per tick that learns.

A checkpoint cannot hold the inside of an environment, so `run_ticks` ends with no episode under way. Every episode
begins with a seed drawn from the DQN's key: a run that was stopped and restored goes on to the same bits.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

from hipmdp.control import dqn
from hipmdp.control.dqn import DQNState, Lanes
from hipmdp.control.exploration import Events, Exploration, Held, begin_chance, draw_exploration, epsilon
from hipmdp.control.q_network import QNetwork
from hipmdp.data.experience import LoggedSteps
from hipmdp.families.gymnasium.family import GymnasiumFamily, lane_values
from hipmdp.families.gymnasium.pool import CheckedEnvironment, Pool, Values
from hipmdp.families.rollout import Transition
from hipmdp.settings.dqn import DDQNConfig


class Draws(NamedTuple):
    """All that is random in one tick, drawn at once: a call of JAX costs as much as several steps."""

    exploration: Exploration
    """Of every step and lane."""
    seed: UInt32[Array, "steps lanes"]
    """The seed of an episode that begins at this step."""


def run_ticks(
    config: DDQNConfig, family: GymnasiumFamily, contexts: Any, state: DQNState, limit: int, ticks: int
) -> tuple[DQNState, LoggedSteps]:
    """Run `ticks` ticks, and then as many as it takes to end the episodes under way. `state` is donated."""
    if config.restart_share > 0:
        raise ValueError(f"{family.name} is a Gymnasium environment: episodes cannot restart from an earlier state.")
    parts: list[LoggedSteps] = []
    with family.pool() as pool:
        lanes = _SteppedLanes(config, pool, lane_values(contexts), family.horizon, state)
        while len(parts) < ticks or lanes.active.any():
            allowed = limit if len(parts) < ticks else lanes.started
            if not lanes.active.any() and lanes.started >= allowed:
                break
            key, draws = _draw(config, family.specification.action_count, state.key)
            rows = lanes.tick(state.online, jax.tree.map(np.asarray, draws), allowed)
            state = dqn.learn_from(config, rows, state._replace(key=key))
            parts.append(rows)
    return lanes.put_into(state), jax.tree.map(lambda *leaves: np.stack(leaves), *parts)


class _SteppedLanes:
    """The lanes of a DQN, each with the environment of the episode that is under way."""

    def __init__(self, config: DDQNConfig, pool: Pool, values: list[Values], horizon: int, state: DQNState) -> None:
        self.config, self.pool, self.values, self.horizon = config, pool, values, horizon
        self.states, self.time, self.episode, self.active = (np.array(leaf) for leaf in state.lanes[:4])
        self.held, self.left = (np.array(leaf) for leaf in state.lanes.held)
        self.started = int(state.started)
        self.environments: list[CheckedEnvironment | None] = [None] * config.lanes
        self.epsilon, self.chance = [0.0] * config.lanes, [0.0] * config.lanes
        self.events, self.holds = state.events, bool(state.events.holds)

    def tick(self, online: QNetwork, draws: Draws, limit: int) -> LoggedSteps:
        """Take N_π ε-greedy steps in every lane, one lane after the other."""
        steps, lanes, size = self.config.steps_per_phase, self.config.lanes, self.states.shape[1]
        rows: LoggedSteps = _empty_rows(steps * lanes, size)
        for step in range(steps):
            for lane in range(lanes):
                if not self.active[lane] and self.started < limit:
                    self._begin(lane, int(draws.seed[step, lane]))
                if self.active[lane]:
                    self._step(rows, step * lanes + lane, lane, online, draws, step)
        self.events = _observed(
            self.events, jax.tree.map(lambda leaf: leaf.reshape(steps, lanes, *leaf.shape[1:]), rows)
        )
        if self.holds is not bool(self.events.holds):
            self.holds = not self.holds
            self.chance = [self._chance(epsilon) for epsilon in self.epsilon]
        return rows

    def _begin(self, lane: int, seed: int) -> None:
        episode = self.started
        environment = self.pool.acquire(self.values[episode % len(self.values)])
        self.environments[lane], self.states[lane] = environment, environment.reset(seed)
        self.time[lane], self.episode[lane], self.active[lane] = 0, episode, True
        self.epsilon[lane] = float(epsilon(self.config, jnp.asarray(episode, jnp.int32)))
        self.chance[lane], self.left[lane] = self._chance(self.epsilon[lane]), 0
        self.started += 1

    def _chance(self, epsilon: float) -> float:
        """The probability that a run of random actions begins."""
        return float(begin_chance(jnp.asarray(epsilon, jnp.float32), self.config.longest_run, jnp.asarray(self.holds)))

    def _step(self, rows: LoggedSteps, row: int, lane: int, online: QNetwork, draws: Draws, step: int) -> None:
        environment = self.environments[lane]
        assert environment is not None
        # The greedy action is asked for only where it is taken: a call of JAX costs as much as several steps.
        if self.left[lane] > 0:
            self.left[lane] -= 1
        elif draws.exploration.chance[step, lane] < self.chance[lane]:
            self.held[lane] = draws.exploration.action[step, lane]
            self.left[lane] = draws.exploration.length[step, lane] - 1 if self.holds else 0
        else:
            self.held[lane] = _greedy(online, self.states[lane])
        action = int(self.held[lane])
        next_state, reward, terminated, truncated = environment.step(action)
        time = int(self.time[lane])
        truncated = not terminated and (truncated or time + 1 >= self.horizon)
        values = (self.states[lane], action, reward, next_state, terminated, truncated, self.episode[lane], time, True)
        for column, value in zip(jax.tree.leaves(rows), values, strict=True):
            column[row] = value
        self.states[lane], self.time[lane] = next_state, time + 1
        if terminated or truncated:
            self.pool.release(environment)
            self.active[lane] = False

    def put_into(self, state: DQNState) -> DQNState:
        """Return the DQN with these lanes."""
        held = Held(jnp.asarray(self.held), jnp.asarray(self.left))
        states, time, episode, active = (jnp.asarray(a) for a in (self.states, self.time, self.episode, self.active))
        lanes = Lanes(states, time, episode, active, held)
        return state._replace(lanes=lanes, started=jnp.asarray(self.started, jnp.int32), events=self.events)


def _empty_rows(count: int, size: int) -> Any:
    """LoggedSteps for `count` steps, not valid yet."""
    state: Any = np.zeros((count, size), np.float32)
    reward, number, flag = (np.zeros(count, kind) for kind in (np.float32, np.int32, bool))
    shared: Any = LoggedSteps(Transition(state, number, reward, state, flag), flag, number, number, flag)  # type: ignore[arg-type]
    return jax.tree.map(np.copy, shared)


@jax.jit
def _observed(events: Events, rows: LoggedSteps) -> Events:
    """After the steps of a tick: rows have axes of steps and lanes."""

    def one(events: Events, row: LoggedSteps) -> tuple[Events, None]:
        steps = row.transition
        return events.observe(steps.reward, steps.terminated, row.truncated, row.valid), None

    return jax.lax.scan(one, events, rows)[0]


@jax.jit
def _greedy(network: QNetwork, state: Float[Array, " state"]) -> Int[Array, ""]:
    return jnp.argmax(network(state)).astype(jnp.int32)


@eqx.filter_jit
def _draw(config: DDQNConfig, actions: int, key: PRNGKeyArray) -> tuple[PRNGKeyArray, Draws]:
    shape = (config.steps_per_phase, config.lanes)
    key, exploration_key, seed_key = jax.random.split(key, 3)
    return key, Draws(
        draw_exploration(exploration_key, shape, actions, config.longest_run),
        # 31 bits, as `host_seed`.
        jax.random.bits(seed_key, shape, jnp.uint32) >> 1,
    )
