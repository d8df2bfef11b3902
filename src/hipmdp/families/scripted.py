"""Policies that need no learning: uniformly random, constant, fixed schedules, and one rule per built-in family."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.families.base_family import BaseFamily
from hipmdp.families.rollout import Policy


# Cached: `rollouts` compiles once per policy object.
@functools.cache
def random_policy(family: BaseFamily) -> Policy:
    """Choose uniformly among the family's actions."""
    count = family.specification.action_count

    def policy(key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, count, jnp.int32)

    return policy


@functools.cache
def constant_policy(action: int) -> Policy:
    """Choose the same action at every step."""

    def policy(key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.asarray(action, jnp.int32)

    return policy


class Schedule(eqx.Module):
    """A fixed action for each time step, whatever the state."""

    actions: Int[Array, " time"]

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """Choose the action of this time step."""
        return self.actions[time]


def grid_detour(key: PRNGKeyArray, state: Float[Array, " 2"], time: Int[Array, ""]) -> Int[Array, ""]:
    """Solve class 0 of the grid without θ: North along x ≤ 0 until y > 0.4, then East into the goal."""
    x, y = state[0], state[1]
    # The wind takes the agent West on every move North, so keep x away from the left bound first.
    north = (y < 0.4) & (x > -1.2)
    return jnp.where(north, 1, 2).astype(jnp.int32)


def acrobot_pump(key: PRNGKeyArray, state: Float[Array, " 4"], time: Int[Array, ""]) -> Int[Array, ""]:
    """Apply torque in the direction of the lower joint's motion: this pumps energy into any pendulum."""
    return (jnp.sign(state[3]) + 1).astype(jnp.int32)


hiv_both_drugs = constant_policy(3)
"""Give both drugs at every step."""
