"""The built-in families as Gymnasium environments: `gymnasium.make("hipmdp/HIV-v0", theta={"k1": 9e-7})`.

Without `theta` an instance is drawn from the well-behaved part of the prior, at the first reset and at every
reset with a seed; other resets start another episode of the *same* instance, as in the paper's setting.
"""

import abc
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import gymnasium
import jax
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._errors import known_name
from hipmdp._random import root_key, stream
from hipmdp.families.acrobot import Acrobot
from hipmdp.families.compass import Compass
from hipmdp.families.grid import Grid
from hipmdp.families.hiv import HIV
from hipmdp.families.protocol import AbstractFamily, Theta, theta_values
from hipmdp.families.rollout import Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

F = TypeVar("F", bound=AbstractFamily)


# Streams are derived inside the jitted call: dispatch is what a step from Python costs.
@functools.partial(jax.jit, static_argnums=0)
def _step(
    family: AbstractFamily,
    key: PRNGKeyArray,
    time: Int[Array, ""],
    state: Float[Array, " state"],
    action: Int[Array, ""],
    theta: Theta,
) -> Step:
    return family.step(stream(key, "environment/step", time), state, action, theta)


@functools.partial(jax.jit, static_argnums=0)
def _reset(family: AbstractFamily, key: PRNGKeyArray, theta: Theta) -> Float[Array, " state"]:
    return family.reset(stream(key, "environment/reset"), theta)


class FamilyEnv(gymnasium.Env[np.ndarray, np.int64], abc.ABC, Generic[F]):
    """One instance of a family as an environment. `info` carries θ by name, for analysis only."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(
        self, family: F, theta: Mapping[str, float] | Theta | None = None, render_mode: str | None = None
    ) -> None:
        if render_mode is not None:
            known_name("render_mode", render_mode, self.metadata["render_modes"])
        self.family = family
        self.render_mode = render_mode
        spec = family.specification
        self.observation_space = gymnasium.spaces.Box(
            np.asarray(spec.state_low, np.float32), np.asarray(spec.state_high, np.float32), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(spec.action_count)
        self._given = None if theta is None else family.theta(theta)
        self._theta: Theta | None = None
        self._theta_by_name: dict[str, float] = {}
        if self._given is not None:
            self._set_instance(self._given)
        self._key: Any = None
        self._states: list[np.ndarray] = []
        self._actions: list[int] = []
        self._done = True

    @property
    def theta(self) -> dict[str, float]:
        """θ of the current instance, by name."""
        if self._theta is None:
            raise ValueError("The instance is drawn at the first reset: call env.reset() first.")
        return dict(self._theta_by_name)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode; `options={"state": [...]}` (natural units) sets its first state."""
        super().reset(seed=seed)
        options = options or {}
        for option in options:
            known_name("reset option", option, ("state",))
        start = self.family.check_state(options["state"]) if "state" in options else None
        # One key per episode, from Gymnasium's own generator.
        self._key = root_key(int(self.np_random.integers(2**31)))
        if self._given is None and (self._theta is None or seed is not None):
            drawn = self.family.draw_instances(stream(self._key, "environment/instance"), 1)
            self._set_instance(jax.tree.map(lambda leaf: leaf[0], drawn))
        if start is None:
            start = _reset(self.family, self._key, self._theta)
        self._states, self._actions, self._done = [np.asarray(start)], [], False
        return self._states[-1].copy(), {"theta": self.theta}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take one step; `truncated` when the horizon is reached, `terminated` only when the MDP ends."""
        action = self.family.check_action(action)
        if self._done:
            raise ValueError("The episode is over (or has not begun): call env.reset() first.")
        outcome = _step(
            self.family, self._key, np.int32(len(self._actions)), self._states[-1], np.int32(action), self._theta
        )
        self._states.append(np.asarray(outcome.state))
        self._actions.append(action)
        terminated = bool(outcome.terminated)
        truncated = not terminated and len(self._actions) >= self.family.horizon
        self._done = terminated or truncated
        return self._states[-1].copy(), float(outcome.reward), terminated, truncated, {"theta": self.theta}

    def render(self) -> np.ndarray | None:
        """Draw the episode so far as an RGB picture."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing without render_mode: use render_mode='rgb_array'.")
            return None
        if not self._states:
            raise ValueError("Nothing to render before the first reset: call env.reset() first.")
        # Imported here, because it takes longer than everything else that `import hipmdp` needs but JAX.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=self._figure_size, dpi=100, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        self._draw(figure, np.stack(self._states), np.asarray(self._actions, int))
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()

    _figure_size: ClassVar[tuple[float, float]] = (5, 5)

    @abc.abstractmethod
    def _draw(self, figure: "Figure", states: np.ndarray, actions: np.ndarray) -> None:
        """Draw the episode so far."""

    def _set_instance(self, theta: Theta) -> None:
        self._theta = theta
        self._theta_by_name = theta_values(theta)


class GridEnv(FamilyEnv[Grid]):
    """`hipmdp/Grid-v0`."""

    def __init__(
        self, theta: Mapping[str, float] | None = None, render_mode: str | None = None, beta: float = 0.23
    ) -> None:
        super().__init__(Grid(beta=beta), theta, render_mode)

    def _draw(self, figure: "Figure", states: np.ndarray, actions: np.ndarray) -> None:
        from hipmdp.families.drawing import draw_grid

        draw_grid(figure.add_subplot(), self.family, self._theta, states)  # type: ignore[arg-type]


class CompassEnv(FamilyEnv[Compass]):
    """`hipmdp/Compass-v0`."""

    def __init__(self, theta: Mapping[str, float] | None = None, render_mode: str | None = None) -> None:
        super().__init__(Compass(), theta, render_mode)

    def _draw(self, figure: "Figure", states: np.ndarray, actions: np.ndarray) -> None:
        from hipmdp.families.drawing import draw_compass

        draw_compass(figure.add_subplot(), self._theta, states)  # type: ignore[arg-type]


class AcrobotEnv(FamilyEnv[Acrobot]):
    """`hipmdp/Acrobot-v0`."""

    def __init__(
        self, theta: Mapping[str, float] | None = None, render_mode: str | None = None, sd: float = 0.10
    ) -> None:
        super().__init__(Acrobot(sd=sd), theta, render_mode)

    def _draw(self, figure: "Figure", states: np.ndarray, actions: np.ndarray) -> None:
        from hipmdp.families.drawing import draw_acrobot

        torque = int(actions[-1]) - 1 if len(actions) else None
        draw_acrobot(figure.add_subplot(), self._theta, states, torque)  # type: ignore[arg-type]


class HIVEnv(FamilyEnv[HIV]):
    """`hipmdp/HIV-v0`. Observations are log10; `options={"state": ...}` is in natural units."""

    _figure_size: ClassVar[tuple[float, float]] = (8, 4.6)

    def __init__(
        self,
        theta: Mapping[str, float] | None = None,
        render_mode: str | None = None,
        sd: float = 0.25,
        vary: str = "twelve",
    ) -> None:
        super().__init__(HIV(sd=sd, vary=vary), theta, render_mode)

    def _draw(self, figure: "Figure", states: np.ndarray, actions: np.ndarray) -> None:
        from hipmdp.families.drawing import draw_hiv

        draw_hiv(figure.add_subplot(), states, actions, self.family.horizon)


def register() -> None:
    """Register the environments with Gymnasium; the time limit is theirs, not a wrapper's."""
    for name, entry in (("Grid", GridEnv), ("Compass", CompassEnv), ("Acrobot", AcrobotEnv), ("HIV", HIVEnv)):
        gymnasium.register(id=f"hipmdp/{name}-v0", entry_point=f"{__name__}:{entry.__name__}")
