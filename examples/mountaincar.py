"""MountainCar with a hill and an engine of unknown strength: a family of Gymnasium environments for hipmdp.

hipmdp check-env mountaincar:family

Every step costs 1 until the car is at the flag. Random actions do not reach it within 200 steps, so the batch says
where the flag is only if some episodes of `hipmdp collect` got there.
"""

import gymnasium

import hipmdp


def make(theta: dict[str, float]) -> gymnasium.Env:
    """The car with this engine, on this hill."""
    env = gymnasium.make("MountainCar-v0")
    car = env.unwrapped
    car.gravity, car.force = theta["gravity"], theta["force"]
    return env


def reward(state, action, next_state):
    """Every step costs 1."""
    return -1.0


def terminated(next_state):
    """The car is at the flag, and does not roll back."""
    return (next_state[0] >= 0.5) & (next_state[1] >= 0)


def rule(observation) -> int:
    """Push along the velocity, which adds energy on every hill: a reference that knows no parameter."""
    return 2 if observation[1] >= 0 else 0


family = hipmdp.gymnasium_family(
    "mountaincar",
    make,
    parameters={"gravity": (0.0020, 0.0030), "force": (0.0008, 0.0013)},
    baseline={"gravity": 0.0025, "force": 0.0010},
    reward=reward,
    terminated=terminated,
    state_names=("position", "velocity"),
    action_names=("left", "none", "right"),
)
