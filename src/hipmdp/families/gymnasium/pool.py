"""Open Gymnasium environments: each one checked at every step, and kept for the next episode of its instance."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._errors import LARGEST, number
from hipmdp._random import host_seed
from hipmdp.families.base_family import AbstractInteraction
from hipmdp.families.specification import Specification

Values = tuple[float, ...]
"""θ as plain numbers, in the order of the family's parameter names."""
ROUNDING = 1e-5
"""Relative to the bounds of a space: so far outside is still inside."""


class CheckedEnvironment:
    """A Gymnasium environment of one instance whose observations and rewards are checked at every step."""

    def __init__(self, environment: gymnasium.Env[Any, Any], specification: Specification, values: Values) -> None:
        self.environment, self.specification, self.values = environment, specification, values
        space = environment.action_space
        self.first_action = int(space.start) if isinstance(space, gymnasium.spaces.Discrete) else 0
        self._low, self._high = bounds_with_slack(specification)
        self._time, self._state = 0, np.zeros(specification.state_size, np.float32)

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode."""
        self._time, where = 0, f"reset(seed={seed})"
        try:
            returned: Any = self.environment.reset(seed=seed)
        except (Exception, SystemExit) as error:
            raise self._failure(where, error) from error
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ValueError(f"{self.specification.family} must return (observation, info) from {where}.")
        self._state = self._checked(returned[0], lambda: where)
        return self._state.copy()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Return (next state, reward, terminated, truncated); a step that terminates is not truncated."""

        def where() -> str:
            state = ", ".join(f"{value:.6g}" for value in self._state)
            return f"step {self._time} with action {self.first_action + action} in state [{state}]"

        try:
            returned: Any = self.environment.step(self.first_action + action)
        except (Exception, SystemExit) as error:
            raise self._failure(where(), error) from error
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise ValueError(
                f"{self.specification.family} must return (observation, reward, terminated, truncated, info) "
                f"from {where()}."
            )
        observation, reward, terminated, truncated, _ = returned
        reward = number("A reward", self.specification.family, reward)
        self._state, self._time = self._checked(observation, where), self._time + 1
        return self._state.copy(), reward, bool(terminated), bool(truncated) and not terminated

    def close(self) -> None:
        """Close the environment."""
        self.environment.close()

    def _failure(self, where: str, error: BaseException) -> ValueError:
        """The environment's own error, and where it was."""
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        return ValueError(f"{self.specification.family} raised {what} at {where}.")

    def _checked(self, observation: Any, where: Callable[[], str]) -> np.ndarray:
        spec = self.specification
        try:
            # A copy: an environment may write its next observation into the same array.
            state = np.array(observation, np.float32)
        except (TypeError, ValueError):
            state = np.zeros(0, np.float32)
        if state.shape == (spec.state_size,) and (state >= self._low).all() and (state <= self._high).all():
            return state
        if state.shape != (spec.state_size,) or not np.isfinite(state).all():
            raise ValueError(
                f"{spec.family} gave the observation {observation}, not {spec.state_size} finite numbers, at {where()}."
            )
        column = int(np.argmax((state < self._low) | (state > self._high)))
        value = f"{spec.state_names[column]} = {state[column]:g}"
        space = f"[{spec.state_low[column]:g}, {spec.state_high[column]:g}]"
        raise ValueError(f"{spec.family} gave {value}, outside its observation space {space}, at {where()}.")


def bounds_with_slack(specification: Specification) -> tuple[np.ndarray, np.ndarray]:
    """Between these a state counts as inside its space, whose bounds a float32 may miss by rounding."""
    low, high = (np.asarray(bound, np.float64) for bound in (specification.state_low, specification.state_high))
    slack = ROUNDING * np.maximum(1, np.maximum(np.abs(low), np.abs(high)))
    return np.maximum(low - slack, -LARGEST), np.minimum(high + slack, LARGEST)


class Pool:
    """The environments that are open: `make` is called when no environment of an instance is free; all are closed."""

    def __init__(self, make: Callable[[Values], CheckedEnvironment]) -> None:
        self._make = make
        self._free: dict[Values, list[CheckedEnvironment]] = {}
        self._all: list[CheckedEnvironment] = []

    def acquire(self, values: Values) -> CheckedEnvironment:
        """An environment of this instance, for one episode."""
        free = self._free.setdefault(values, [])
        if not free:
            free.append(self._make(values))
            self._all.append(free[0])
        return free.pop()

    def release(self, environment: CheckedEnvironment) -> None:
        """Return an environment whose episode is over."""
        self._free[environment.values].append(environment)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: object) -> None:
        for environment in self._all:
            environment.close()


class GymnasiumInteraction(AbstractInteraction):
    """One Gymnasium environment, stepped from Python; its own random numbers follow from the key of `reset`."""

    def __init__(self, environment: CheckedEnvironment) -> None:
        self._environment = environment

    def reset(self, key: PRNGKeyArray) -> np.ndarray:
        """Begin an episode with a seed that the key decides."""
        return self._environment.reset(host_seed(key))

    def step(self, key: PRNGKeyArray, action: int) -> tuple[np.ndarray, float, bool, bool]:
        """Take one step (`key` is not used: Gymnasium seeds whole episodes)."""
        return self._environment.step(action)

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()
