"""The Python loop around the DQN: chunks of ticks, whose steps are handed out at their edges."""

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.control import dqn, gymnasium_loop
from hipmdp.control.dqn import DQNState
from hipmdp.control.q_network import QNetwork
from hipmdp.data.experience import LoggedSteps
from hipmdp.families.gymnasium.family import GymnasiumFamily
from hipmdp.families.protocol import BaseFamily
from hipmdp.families.rollout import AbstractEnvironment
from hipmdp.families.specification import Specification
from hipmdp.settings.dqn import DDQNConfig

RealOrImagined = AbstractEnvironment | BaseFamily
"""Where a DQN can take steps."""


class Chunk(NamedTuple):
    """The DQN at a chunk's edge, and the steps of the chunk (valid ones only, as NumPy arrays)."""

    state: DQNState
    rows: LoggedSteps


def new_network(specification: Specification, config: DDQNConfig, key: PRNGKeyArray) -> QNetwork:
    """A fresh Q-network that standardises with the specification's typical centre and scale."""
    centre = jnp.asarray(specification.state_centre, jnp.float32)
    scale = jnp.asarray(specification.state_scale, jnp.float32)
    actions = specification.action_count
    return QNetwork(centre, scale, actions, config.hidden, normalised=config.normalised, key=key)


def new_dqn(specification: Specification, config: DDQNConfig, episodes: int, key: PRNGKeyArray) -> DQNState:
    """A DQN whose replay holds all of `episodes` episodes."""
    network_key, dqn_key = jax.random.split(key)
    network = new_network(specification, config, network_key)
    return dqn.init(network, config, episodes * specification.horizon, dqn_key)


def finished(state: DQNState, episodes: int) -> bool:
    """All episodes below `episodes` were started and none is under way."""
    return bool(dqn.is_finished(state, episodes))


def train_in_stages(
    config: DDQNConfig, environment: RealOrImagined, contexts: Any, state: DQNState, stages: Iterable[int]
) -> Iterator[Chunk]:
    """Stop after each number of episodes in `stages`, with no episode under way, and hand out what happened since.

    Lanes that have run out of episodes wait for the others at each stop.
    """
    # One episode's worth of ticks: whatever is asked for, nothing else has to be compiled.
    ticks = -(-environment.horizon // config.steps_per_phase) + 1
    for stage in stages:
        parts = []
        for chunk in train(config, environment, contexts, state, stage, ticks):
            state = chunk.state
            parts.append(chunk.rows)
        if parts:
            yield Chunk(state, jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts))


@functools.singledispatch
def run_ticks(
    environment: RealOrImagined, config: DDQNConfig, contexts: Any, state: DQNState, *, limit: int, ticks: int
) -> tuple[DQNState, LoggedSteps]:
    """Run `ticks` ticks in the way that the environment's type needs: in JAX, unless another is registered."""
    assert isinstance(environment, AbstractEnvironment)
    return dqn.run_ticks(config, environment, contexts, state, limit, ticks)


@run_ticks.register(GymnasiumFamily)
def _(
    environment: GymnasiumFamily, config: DDQNConfig, contexts: Any, state: DQNState, *, limit: int, ticks: int
) -> tuple[DQNState, LoggedSteps]:
    return gymnasium_loop.run_ticks(config, environment, contexts, state, limit, ticks)


def train(
    config: DDQNConfig,
    environment: RealOrImagined,
    contexts: Any,
    state: DQNState,
    episodes: int,
    ticks: int,
) -> Iterator[Chunk]:
    """Run chunks of `ticks` ticks until `episodes` episodes (counted from the very first) are done.

    The state of a chunk is donated to the next one: copy what must outlive it. With a family that Python steps, a chunk
    also ends the episodes that are under way.
    """
    while not finished(state, episodes):
        state, rows = run_ticks(environment, config, contexts, state, limit=episodes, ticks=ticks)
        valid = np.asarray(rows.valid).reshape(-1)
        kept: LoggedSteps = jax.tree.map(
            lambda leaf, valid=valid: np.asarray(leaf).reshape(-1, *leaf.shape[2:])[valid], rows
        )
        yield Chunk(state, kept)
