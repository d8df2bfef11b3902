"""2D navigation of the paper: actions, wind and wall depend on a hidden class.

With r = β √((x+1.5)² + (y+1.5)²) and the unit effect a of an action (W −x, N +y, E +x, S −y):

    class 0:  Δ = c (a − (r, 0))     actions as named, wind blows West, wall on the goal's bottom edge
    class 1:  Δ = −c (a + (0, r))    actions mirrored, wind blows South, wall on the goal's left edge
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._errors import in_range
from hipmdp.families.navigation import (
    STEP_SIZE,
    AbstractNavigation,
    action_effect,
    navigation_specification,
    wind_distance,
)
from hipmdp.families.rollout import Policy
from hipmdp.families.scripted import grid_detour
from hipmdp.families.specification import FamilyFacts, Specification

_SPECIFICATION = navigation_specification("grid")


class GridTheta(NamedTuple):
    """θ of the grid: one of two classes."""

    theta: Any
    """0 ("red") or 1 ("blue")."""


class Grid(AbstractNavigation):
    """The paper's 2D demonstration domain; θ ∈ {0, 1} with equal probability."""

    baseline: ClassVar[GridTheta] = GridTheta(0.0)
    set_sizes: ClassVar[Mapping[str, int]] = {"train": 2, "test": 2}
    listed_members: ClassVar[tuple[Mapping[str, float], ...]] = ({"theta": 0.0}, {"theta": 1.0})

    beta: float = eqx.field(static=True, default=0.23)
    """Strength of the wind, in (0, 1]; 0.23 in the paper, 0.1 in its authors' notebook."""

    def __check_init__(self) -> None:
        in_range("grid option", "beta", self.beta, 0, 1, open_low=True)

    @property
    def specification(self) -> Specification:
        """Names, bounds and counts."""
        return _SPECIFICATION

    @property
    def instance_file(self) -> str | None:
        """A file exists for β = 0.23."""
        return "grid.json" if self.beta == 0.23 else None

    @property
    def scripted_rule(self) -> tuple[str, Policy]:
        """The way around the wall of class 0."""
        return "detour (made for class 0)", grid_detour

    @property
    def training_pool(self) -> str:
        """`train` holds both members that there are."""
        return "train"

    def facts(self) -> FamilyFacts:
        """Drawn as a map, whose wind needs β."""
        return replace(super().facts(), success="goal reached", picture="grid", options={"beta": self.beta})

    def sample_instance(self, key: PRNGKeyArray) -> GridTheta:
        """Either class with probability one half."""
        return GridTheta(jax.random.bernoulli(key).astype(jnp.float32))

    def well_behaved_parts(self, theta: GridTheta) -> dict[str, Bool[Array, ""]]:
        """One part: θ must be one of the two classes."""
        value = jnp.asarray(theta.theta)
        return {"known class": (value == 0) | (value == 1)}

    def check_parameter(self, name: str, value: float) -> None:
        """Raise `ValueError` unless θ is 0 or 1."""
        if value not in (0.0, 1.0):
            raise ValueError(f"grid parameter {name!r} must be 0 or 1, got {value:g}.")

    def displacement(self, state: Float[Array, " 2"], action: Int[Array, ""], theta: GridTheta) -> Float[Array, " 2"]:
        """Δ of the module's docstring, ignoring walls and bounds."""
        effect_x, effect_y = action_effect(action)
        wind = self.beta * wind_distance(state)
        first = jnp.asarray(theta.theta) == 0
        return STEP_SIZE * jnp.stack(
            [jnp.where(first, effect_x - wind, -effect_x), jnp.where(first, effect_y, -effect_y - wind)]
        )

    def wall_is_below(self, theta: GridTheta) -> Bool[Array, ""]:
        """Below the goal for class 0, left of it for class 1."""
        return jnp.asarray(theta.theta) == 0
