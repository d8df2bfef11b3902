"""2D navigation with a compass that is off: directions, wind and wall differ from member to member.

With d = √((x+1.5)² + (y+1.5)²), the unit effect a of an action (W −x, N +y, E +x, S −y) and R(φ) a rotation by φ:

    Δ = c (R(angle) a + wind · d · (cos wind_angle, sin wind_angle))

`grid` has two members, both of which are trained on. Here no two members are alike, and no policy suits all of them.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._errors import in_range
from hipmdp.families.base_family import SET_SIZES
from hipmdp.families.navigation import (
    STEP_SIZE,
    AbstractNavigation,
    action_effect,
    navigation_specification,
    wind_distance,
)
from hipmdp.families.rollout import Policy
from hipmdp.families.scripted import grid_detour
from hipmdp.families.specification import FamilyFacts, Parameter, Specification

TURN = 2 * math.pi
WEAKEST, STRONGEST = 0.03, 0.12
"""Range of the wind: at most 0.59 of a step anywhere in the box, so that every legal step is longer than 0.12."""

_SPECIFICATION = navigation_specification("compass")


class CompassTheta(NamedTuple):
    """θ of the compass."""

    angle: Any
    """By how much the actions' directions are turned, in [0, 2π)."""
    wind_angle: Any
    """Where the wind blows to, in [0, 2π)."""
    wind: Any
    """How fast the wind grows with the distance from (−1.5, −1.5), in [0.03, 0.12]."""
    wall: Any
    """0: the goal's bottom edge is a wall; 1: its left edge."""


class Compass(AbstractNavigation):
    """Angles and wind uniform, either wall with probability one half."""

    baseline: ClassVar[CompassTheta] = CompassTheta(0.0, math.pi, 0.075, 0.0)
    set_sizes: ClassVar[Mapping[str, int]] = {**SET_SIZES, "train": 8}

    @property
    def specification(self) -> Specification:
        """Names, bounds and counts."""
        return _SPECIFICATION

    @property
    def instance_file(self) -> str:
        """One file."""
        return "compass.json"

    @property
    def scripted_rule(self) -> tuple[str, Policy]:
        """The way around the wall for a compass that is right."""
        return "detour (made for angle 0, wall 0)", grid_detour

    def facts(self) -> FamilyFacts:
        """Drawn as a map."""
        meanings = {
            "angle": "turns the actions' directions",
            "wind_angle": "where the wind blows to",
            "wind": "how fast the wind grows with the distance from the start",
            "wall": "0: below the goal, 1: left of it",
        }
        parameters = tuple(
            Parameter(name, float(value), meaning=meanings[name]) for name, value in self.baseline._asdict().items()
        )
        return replace(super().facts(), success="goal reached", picture="compass", parameters=parameters)

    def sample_instance(self, key: PRNGKeyArray) -> CompassTheta:
        """Draw each parameter on its own."""
        angle_key, wind_angle_key, wind_key, wall_key = jax.random.split(key, 4)
        return CompassTheta(
            angle=jax.random.uniform(angle_key, (), jnp.float32, 0, TURN),
            wind_angle=jax.random.uniform(wind_angle_key, (), jnp.float32, 0, TURN),
            wind=jax.random.uniform(wind_key, (), jnp.float32, WEAKEST, STRONGEST),
            wall=jax.random.bernoulli(wall_key).astype(jnp.float32),
        )

    def well_behaved_parts(self, theta: CompassTheta) -> dict[str, Bool[Array, ""]]:
        """The wall must be one of the two, and every legal step long enough."""
        wall, wind = jnp.asarray(theta.wall), jnp.asarray(theta.wind)
        return {"known wall": (wall == 0) | (wall == 1), "wind weaker than a step": (wind >= 0) & (wind <= STRONGEST)}

    def check_parameter(self, name: str, value: float) -> None:
        """Raise `ValueError` unless angles are finite, the wind is weaker than a step and the wall one of the two."""
        if name == "wall" and value not in (0.0, 1.0):
            raise ValueError(f"compass parameter 'wall' must be 0 or 1, got {value:g}.")
        if name == "wind":
            in_range("compass parameter", name, value, 0, STRONGEST)
        elif not math.isfinite(value):
            raise ValueError(f"compass parameter {name!r} must be finite, got {value:g}.")

    def displacement(
        self, state: Float[Array, " 2"], action: Int[Array, ""], theta: CompassTheta
    ) -> Float[Array, " 2"]:
        """Δ of the module's docstring, ignoring walls and bounds."""
        effect_x, effect_y = action_effect(action)
        cos, sin = jnp.cos(theta.angle), jnp.sin(theta.angle)
        wind = theta.wind * wind_distance(state)
        return STEP_SIZE * jnp.stack(
            [
                cos * effect_x - sin * effect_y + wind * jnp.cos(theta.wind_angle),
                sin * effect_x + cos * effect_y + wind * jnp.sin(theta.wind_angle),
            ]
        )

    def wall_is_below(self, theta: CompassTheta) -> Bool[Array, ""]:
        """Below the goal at 0, left of it at 1."""
        return jnp.asarray(theta.wall) == 0
