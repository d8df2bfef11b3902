"""2D navigation: reach the goal quadrant where actions, wind and wall depend on a hidden class.

With r = β √((x+1.5)² + (y+1.5)²) and the unit effect a of an action (W −x, N +y, E +x, S −y):

    class 0:  Δ = c (a − (r, 0))     actions as named, wind blows West, wall on the goal's bottom edge
    class 1:  Δ = −c (a + (0, r))    actions mirrored, wind blows South, wall on the goal's left edge

A move out of the box, into the goal through the wall or out of it through the wall is invalid: the state stays.
"""

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp._errors import in_range
from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.rollout import Policy
from hipmdp.families.scripted import grid_detour
from hipmdp.families.specification import FamilyFacts, Specification

STEP_SIZE = 0.3
BOUND = 2.0
START_LOW, START_HIGH = -1.75, -1.25
WIND_ORIGIN = -1.5
GOAL_REWARD, INVALID_REWARD, STEP_REWARD = 1000.0, -5.0, -0.1
STILL_TOLERANCE = 0.015
"""A displacement shorter than this counts as "did not move" (at β = 0.23 the smallest legal step is 0.037)."""

_SPECIFICATION = Specification(
    family="grid",
    state_names=("x", "y"),
    state_low=(-BOUND, -BOUND),
    state_high=(BOUND, BOUND),
    state_centre=(0.0, 0.0),
    state_scale=(1.0, 1.0),
    angles=(False, False),
    action_names=("W", "N", "E", "S"),
    horizon=100,
    discount=0.99,
)


class GridTheta(NamedTuple):
    """θ of the grid: one of two classes."""

    theta: Any
    """0 ("red") or 1 ("blue")."""


def in_goal(state: Float[Array, " 2"]) -> Bool[Array, ""]:
    """Whether (x, y) lies in the goal region x > 0, y > 0."""
    return (state[0] > 0) & (state[1] > 0)


class Grid(AbstractFamily):
    """The paper's 2D demonstration domain; θ ∈ {0, 1} with equal probability."""

    baseline: ClassVar[GridTheta] = GridTheta(0.0)
    fixed_start: ClassVar[bool] = False
    ships_instances: ClassVar[bool] = True

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

    def initial_state(self, key: PRNGKeyArray, theta: GridTheta) -> Float[Array, " 2"]:
        """Uniform in [−1.75, −1.25]²."""
        return jax.random.uniform(key, (2,), jnp.float32, START_LOW, START_HIGH)

    def displacement(self, state: Float[Array, " 2"], action: Int[Array, ""], theta: GridTheta) -> Float[Array, " 2"]:
        """Δ of the module's docstring, ignoring walls and bounds."""
        # The action's effect is computed, not looked up: a gather would stop vectorisation over lanes.
        effect_x = (action == 2).astype(jnp.float32) - (action == 0).astype(jnp.float32)
        effect_y = (action == 1).astype(jnp.float32) - (action == 3).astype(jnp.float32)
        wind = self.beta * jnp.sqrt(jnp.sum((state - WIND_ORIGIN) ** 2))
        first = jnp.asarray(theta.theta) == 0
        return STEP_SIZE * jnp.stack(
            [jnp.where(first, effect_x - wind, -effect_x), jnp.where(first, effect_y, -effect_y - wind)]
        )

    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " 2"], action: Int[Array, ""], theta: GridTheta
    ) -> Float[Array, " 2"]:
        """Move by Δ unless that is invalid (deterministic: `key` is not used)."""
        proposal = state + self.displacement(state, action, theta)
        outside = jnp.any(jnp.abs(proposal) > BOUND)
        inside_before, inside_after = in_goal(state), in_goal(proposal)
        # The wall is the goal's bottom edge (crossed in y) for class 0, its left edge (crossed in x) for class 1.
        first = jnp.asarray(theta.theta) == 0
        before = jnp.where(first, state[1], state[0])
        after = jnp.where(first, proposal[1], proposal[0])
        through_wall = (inside_after & ~inside_before & (before <= 0)) | (inside_before & ~inside_after & (after <= 0))
        return jnp.where(outside | through_wall, state, proposal)

    def reward(
        self,
        state: Float[Array, " 2"],
        action: Int[Array, ""],
        next_state: Float[Array, " 2"],
        theta: GridTheta | None = None,
    ) -> Float[Array, ""]:
        """1000 on reaching the goal, −5 if the agent did not move, −0.1 otherwise: θ is not needed."""
        still = jnp.sum((next_state - state) ** 2) < STILL_TOLERANCE**2
        reached = in_goal(next_state) & ~(still & in_goal(state))
        return jnp.where(reached, GOAL_REWARD, jnp.where(still, INVALID_REWARD, STEP_REWARD))

    def terminated(self, next_state: Float[Array, " 2"], theta: GridTheta | None = None) -> Bool[Array, ""]:
        """The episode ends in the goal region."""
        return in_goal(next_state)
