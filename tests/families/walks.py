"""The smallest Gymnasium environments with a hidden parameter: a walk along a line whose step length is hidden."""

from typing import Any

import gymnasium
import numpy as np

from hipmdp.families.gymnasium.build import gymnasium_family

TINY = {"parameters": {"length": (0.5, 1.0)}, "horizon": 6, "state_names": ("x",), "action_names": ("left", "right")}


class Walk(gymnasium.Env):
    """From x ∈ {0, 0.25} by ±length; ends beyond 2 (terminated), and after `limit` steps (truncated). Pays s'."""

    def __init__(self, length: float, limit: int = 10) -> None:
        self.observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2, start=1)
        self.length, self.limit, self.closed = length, limit, False

    def reset(self, *, seed: int | None = None, options: Any = None):
        super().reset(seed=seed)
        self.x, self.time = 0.25 * float(self.np_random.integers(2)), 0
        return np.array([self.x], np.float32), {}

    def step(self, action):
        assert self.action_space.contains(np.int64(action))
        self.x += self.length * (1 if action == 2 else -1)
        self.time += 1
        return np.array([self.x], np.float32), self.x, self.x > 2, self.time >= self.limit, {}

    def close(self):
        self.closed = True


def walk(make: Any = lambda theta: Walk(theta["length"]), **options: Any):
    """A family of walks."""
    return gymnasium_family("walk", make, **(TINY | options))


WALK = walk(reward=lambda state, action, after: after[0], terminated=lambda after: after[0] > 2)
"""One that knows its reward."""


def half_walk(length: float = 0.5):
    """θ of a walk."""
    return WALK.theta({"length": length})


SILENT = walk()
"""One that does not."""
