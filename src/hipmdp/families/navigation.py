"""2D navigation: what `grid` and `compass` share: the box, the start, the goal quadrant with a wall, and the reward.

A move out of the box, into the goal through the wall or out of it through the wall is invalid: the state stays.
"""

import abc
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from hipmdp.families.instance import Theta
from hipmdp.families.protocol import AbstractFamily
from hipmdp.families.specification import Specification

STEP_SIZE = 0.3
BOUND = 2.0
START_LOW, START_HIGH = -1.75, -1.25
WIND_ORIGIN = -1.5
GOAL_REWARD, INVALID_REWARD, STEP_REWARD = 1000.0, -5.0, -0.1
STILL_TOLERANCE = 0.015
"""A displacement shorter than this counts as "did not move" (the smallest legal step of grid at β = 0.23 is 0.037, of
compass 0.12)."""


def navigation_specification(family: str) -> Specification:
    """S and A of a navigation family."""
    return Specification(
        family=family,
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


def in_goal(state: Float[Array, " 2"]) -> Bool[Array, ""]:
    """Whether (x, y) lies in the goal region x > 0, y > 0."""
    return (state[0] > 0) & (state[1] > 0)


def action_effect(action: Int[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The unit effect of an action as it is named: W −x, N +y, E +x, S −y."""
    # Computed, not looked up: a gather would stop vectorisation over lanes.
    effect_x = (action == 2).astype(jnp.float32) - (action == 0).astype(jnp.float32)
    effect_y = (action == 1).astype(jnp.float32) - (action == 3).astype(jnp.float32)
    return effect_x, effect_y


def wind_distance(state: Float[Array, " 2"]) -> Float[Array, ""]:
    """Distance from (−1.5, −1.5), with which the wind grows."""
    return jnp.sqrt(jnp.sum((state - WIND_ORIGIN) ** 2))


class AbstractNavigation(AbstractFamily):
    """A point in a box: a subclass says how it moves, and where the wall is."""

    fixed_start: ClassVar[bool] = False
    ships_instances: ClassVar[bool] = True

    @abc.abstractmethod
    def displacement(self, state: Float[Array, " 2"], action: Int[Array, ""], theta: Theta) -> Float[Array, " 2"]:
        """Move of one step, ignoring walls and bounds."""

    @abc.abstractmethod
    def wall_is_below(self, theta: Theta) -> Bool[Array, ""]:
        """Whether the wall is the goal's bottom edge; otherwise it is the left one."""

    def wind_at(self, state: Float[Array, " 2"], theta: Theta) -> Float[Array, " 2"]:
        """The wind: what opposite actions have in common."""
        west, east = (self.displacement(state, jnp.asarray(action), theta) for action in (0, 2))
        return (west + east) / 2

    def initial_state(self, key: PRNGKeyArray, theta: Theta) -> Float[Array, " 2"]:
        """Uniform in [−1.75, −1.25]²."""
        return jax.random.uniform(key, (2,), jnp.float32, START_LOW, START_HIGH)

    def dynamics(
        self, key: PRNGKeyArray, state: Float[Array, " 2"], action: Int[Array, ""], theta: Theta
    ) -> Float[Array, " 2"]:
        """Move by the displacement unless that is invalid (deterministic: `key` is not used)."""
        proposal = state + self.displacement(state, action, theta)
        outside = jnp.any(jnp.abs(proposal) > BOUND)
        inside_before, inside_after = in_goal(state), in_goal(proposal)
        # The bottom edge is crossed in y, the left one in x.
        below = self.wall_is_below(theta)
        before = jnp.where(below, state[1], state[0])
        after = jnp.where(below, proposal[1], proposal[0])
        through_wall = (inside_after & ~inside_before & (before <= 0)) | (inside_before & ~inside_after & (after <= 0))
        return jnp.where(outside | through_wall, state, proposal)

    def reward(
        self,
        state: Float[Array, " 2"],
        action: Int[Array, ""],
        next_state: Float[Array, " 2"],
        theta: Theta = None,
    ) -> Float[Array, ""]:
        """1000 on reaching the goal, −5 if the agent did not move, −0.1 otherwise: θ is not needed."""
        still = jnp.sum((next_state - state) ** 2) < STILL_TOLERANCE**2
        reached = in_goal(next_state) & ~(still & in_goal(state))
        return jnp.where(reached, GOAL_REWARD, jnp.where(still, INVALID_REWARD, STEP_REWARD))

    def terminated(self, next_state: Float[Array, " 2"], theta: Theta = None) -> Bool[Array, ""]:
        """The episode ends in the goal region."""
        return in_goal(next_state)
