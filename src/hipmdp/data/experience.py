"""Transitions as arrays of JAX, and as a log."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Bool, Int

from hipmdp.data.transitions import Transitions
from hipmdp.families.protocol import BaseFamily, Theta, theta_values
from hipmdp.families.rollout import Episode, Transition
from hipmdp.families.specification import Specification


class LoggedSteps(NamedTuple):
    """The steps of a learner's lanes, as they are handed out at the edges of a chunk."""

    transition: Transition
    truncated: Bool[Array, "*rows"]
    episode: Int[Array, "*rows"]
    time: Int[Array, "*rows"]
    valid: Bool[Array, "*rows"]
    """False where the lane was idle."""


def episodes_to_transitions(family: BaseFamily, episodes: Episode, theta: Theta, first: int = 0) -> Transitions:
    """The valid steps of episodes of one instance (id 0); lane i is episode `first` + i."""
    valid = np.asarray(episodes.valid)
    lanes, horizon = valid.shape
    # Time is up at the horizon, or earlier where a Gymnasium environment says so.
    last = valid & ~np.pad(valid, ((0, 0), (0, 1)))[:, 1:]
    columns = {
        **{name: np.asarray(column)[valid] for name, column in episodes.steps._asdict().items()},
        "truncated": (last & ~np.asarray(episodes.steps.terminated))[valid],
        "instance": np.zeros(valid.sum(), np.int32),
        "episode": first + np.broadcast_to(np.arange(lanes)[:, None], valid.shape)[valid],
        "time": np.broadcast_to(np.arange(horizon), valid.shape)[valid],
    }
    return Transitions(family.specification, columns, {0: theta_values(theta)})


def rows_to_transitions(family: BaseFamily, parts: list[LoggedSteps], index: int, theta: Theta) -> Transitions:
    """The rows of a learner on one instance as a log, episode by episode."""
    rows: LoggedSteps = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    # Lanes interleave episodes; a log is read episode by episode.
    order = np.lexsort((rows.time, rows.episode))
    columns = {
        **{name: np.asarray(value)[order] for name, value in rows.transition._asdict().items()},
        "truncated": np.asarray(rows.truncated)[order],
        "episode": np.asarray(rows.episode)[order],
        "time": np.asarray(rows.time)[order],
        "instance": np.full(len(order), index, np.int32),
    }
    return Transitions(family.specification, columns, {index: theta_values(theta)})


def steps_to_transitions(
    specification: Specification, steps: Sequence[Transition], *, episode: int, thetas: dict[int, dict[str, float]]
) -> Transitions:
    """One episode of one instance (id 0) that Python stepped, as a log."""
    joined: Transition = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *steps)
    count = len(steps)
    truncated = np.arange(count) == count - 1
    columns = {
        **joined._asdict(),
        "truncated": truncated & ~joined.terminated,
        "instance": np.zeros(count, np.int32),
        "episode": np.full(count, episode, np.int32),
        "time": np.arange(count, dtype=np.int32),
    }
    return Transitions(specification, columns, thetas)


def steps_to_episode(steps: Sequence[Transition], horizon: int) -> Episode:
    """The same as an episode of `horizon` steps: after the end the state stays and rewards are zero."""
    last = steps[-1]
    still = Transition(last.next_state, np.int32(0), np.float32(0), last.next_state, False)  # type: ignore[arg-type]
    filled = [*steps, *[still] * (horizon - len(steps))]
    joined = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *filled)
    return Episode(joined, np.arange(horizon) < len(steps))  # type: ignore[arg-type]


def logged_steps(steps: Sequence[Transition], count: int) -> LoggedSteps:
    """Steps as an update phase of a DQN takes them: `count` rows, of which these are valid."""
    last = steps[-1]
    filled = [*steps, *[last] * (count - len(steps))]
    joined = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *filled)
    zeros = np.zeros(count, np.int32)
    return LoggedSteps(joined, zeros.astype(bool), zeros, zeros, np.arange(count) < len(steps))  # type: ignore[arg-type]
