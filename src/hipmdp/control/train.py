"""The host's loop around the learner: chunks of ticks, with what happened handed out at their edges."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.control import host, learner
from hipmdp.control.config import DDQNConfig
from hipmdp.control.learner import LearnerState, Rows
from hipmdp.control.network import QNetwork
from hipmdp.families.host import HostFamily
from hipmdp.families.rollout import Environment
from hipmdp.families.specification import Specification


class Chunk(NamedTuple):
    """The learner at a chunk's edge, and the rows of the chunk (valid ones only, as NumPy arrays)."""

    state: LearnerState
    rows: Rows


def new_network(specification: Specification, config: DDQNConfig, key: PRNGKeyArray) -> QNetwork:
    """A fresh Q-network that standardises with the specification's typical centre and scale."""
    centre = jnp.asarray(specification.state_centre, jnp.float32)
    scale = jnp.asarray(specification.state_scale, jnp.float32)
    return QNetwork(centre, scale, specification.action_count, config.hidden, key=key)


def new_learner(specification: Specification, config: DDQNConfig, episodes: int, key: PRNGKeyArray) -> LearnerState:
    """A learner whose replay holds all of `episodes` episodes."""
    network_key, learner_key = jax.random.split(key)
    network = new_network(specification, config, network_key)
    return learner.init(network, config, episodes * specification.horizon, learner_key)


def finished(state: LearnerState, episodes: int) -> bool:
    """All episodes below `episodes` were started and none is under way."""
    return bool(learner.is_finished(state, episodes))


def train_in_stages(
    config: DDQNConfig, environment: Environment, contexts: Any, state: LearnerState, stages: Iterable[int]
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


def copied(network: QNetwork) -> QNetwork:
    """A copy that outlives the chunk: the learner's own arrays are donated to the next one."""
    return jax.tree.map(jnp.copy, network)


def train(
    config: DDQNConfig,
    environment: Environment,
    contexts: Any,
    state: LearnerState,
    episodes: int,
    ticks: int,
) -> Iterator[Chunk]:
    """Run chunks of `ticks` ticks until `episodes` episodes (counted from the very first) are done.

    The state of a chunk is donated to the next one: copy what must outlive it. With a family that Python steps, a chunk
    also ends the episodes that are under way.
    """
    run: Any = host.run_ticks if isinstance(environment, HostFamily) else learner.run_ticks
    while not finished(state, episodes):
        state, rows = run(config, environment, contexts, state, episodes, ticks)
        valid = np.asarray(rows.valid).reshape(-1)
        kept: Rows = jax.tree.map(lambda leaf, valid=valid: np.asarray(leaf).reshape(-1, *leaf.shape[2:])[valid], rows)
        yield Chunk(state, kept)
