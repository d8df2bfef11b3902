"""LunarLander with unknown gravity and an engine of unknown power: a family of Box2D environments for hipmdp.

    pip install 'hipmdp[examples]'
    hipmdp check-env lunarlander:family
    hipmdp adapt lander.hipmdp --family lunarlander:family --instance test:0 --reward learned

No reward and terminated functions are given, as the end of an episode is not a function of the observation: the ground
beside the pad is drawn anew in every episode and not observed, and a lander that has come to rest is one that has not
moved for half a second. So both are learned from the batch (`--reward learned`). To have "terminated" may be a landing
or a crash: what counts is the return, not the rate of success.
"""

import types

import gymnasium
import numpy as np
from gymnasium.envs.box2d import lunar_lander

import hipmdp


class Lander(lunar_lander.LunarLander):
    """A lander whose main engine is `power` times as strong as Gymnasium's."""

    def __init__(self, gravity: float, power: float) -> None:
        super().__init__(gravity=gravity)
        # The strength of the engine is a constant of Gymnasium's module, which all landers share, and instances are
        # stepped side by side in threads. So each lander has a copy of the function that reads the constant.
        constants = {**vars(lunar_lander), "MAIN_ENGINE_POWER": power * lunar_lander.MAIN_ENGINE_POWER}
        self._step = types.FunctionType(lunar_lander.LunarLander.step.__code__, constants)
        # Gymnasium's bounds are narrower than what is observed: a lander may rise above y = 2.5, or turn over twice.
        low, high = np.full(8, -np.inf, np.float32), np.full(8, np.inf, np.float32)
        low[6:], high[6:] = 0, 1
        self.observation_space = gymnasium.spaces.Box(low, high)

    def step(self, action):
        """Gymnasium's step, with this lander's engine."""
        return self._step(self, action)


def make(theta: dict[str, float]) -> gymnasium.Env:
    """The lander with this engine, under this gravity."""
    return Lander(theta["gravity"], theta["power"])


def rule(observation) -> int:
    """Gymnasium's own heuristic, written for gravity −10 and power 1: a reference that knows no parameter."""
    discrete = types.SimpleNamespace(unwrapped=types.SimpleNamespace(continuous=False))
    return int(lunar_lander.heuristic(discrete, observation))


family = hipmdp.gymnasium_family(
    "lunarlander",
    make,
    # Gymnasium accepts gravity between −12 and 0.
    parameters={"gravity": (-11.5, -8.0), "power": (0.8, 1.3)},
    baseline={"gravity": -10.0, "power": 1.0},
    # Gymnasium's limit is 1000; most landings of its heuristic take 200 to 400 steps.
    horizon=500,
    state_names=("x", "y", "vx", "vy", "angle", "rate", "left_leg", "right_leg"),
    action_names=("none", "left", "main", "right"),
)
