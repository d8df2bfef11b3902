"""Lived episodes as a log."""

import numpy as np

from hipmdp.data.transitions import Transitions
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.rollout import Episode


def episodes_to_transitions(family: AbstractFamily, lived: Episode, theta: Theta, first: int = 0) -> Transitions:
    """The valid steps of episodes of one instance (id 0); lane i is episode `first` + i."""
    lanes, horizon = np.asarray(lived.valid).shape
    time_, lane = np.arange(horizon), np.arange(lanes)
    valid = np.asarray(lived.valid)
    # Time is up at the horizon, or earlier where a Gymnasium environment says so.
    last = valid & ~np.pad(valid, ((0, 0), (0, 1)))[:, 1:]
    columns = {
        "state": np.asarray(lived.states)[valid],
        "action": np.asarray(lived.actions)[valid],
        "reward": np.asarray(lived.rewards)[valid],
        "next_state": np.asarray(lived.next_states)[valid],
        "terminated": np.asarray(lived.terminated)[valid],
        "truncated": (last & ~np.asarray(lived.terminated))[valid],
        "instance": np.zeros(valid.sum(), np.int32),
        "episode": first + np.broadcast_to(lane[:, None], valid.shape)[valid],
        "time": np.broadcast_to(time_, valid.shape)[valid],
    }
    return Transitions(family.specification, columns, {0: {k: float(v) for k, v in theta._asdict().items()}})
