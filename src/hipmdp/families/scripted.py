"""Policies that need no learning: what a learned policy has to beat."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.families.family import AbstractFamily
from hipmdp.families.rollout import Policy


# Cached: `rollouts` compiles once per policy object.
@functools.cache
def random_policy(family: AbstractFamily) -> Policy:
    """Uniform over the family's actions."""
    count = family.specification.action_count

    def policy(key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        return jax.random.randint(key, (), 0, count, jnp.int32)

    return policy


@functools.cache
def constant_policy(action: int) -> Policy:
    """Always the same action."""

    def policy(key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        return jnp.asarray(action, jnp.int32)

    return policy


class Schedule(eqx.Module):
    """A fixed action for each time step, whatever the state."""

    actions: Int[Array, " time"]

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The action of this time step."""
        return self.actions[time]


def grid_detour(key: PRNGKeyArray, state: Float[Array, " 2"], time: Int[Array, ""]) -> Int[Array, ""]:
    """Solves class 0 without looking at θ: North along x ≤ 0 until y > 0.4, then East into the goal."""
    x, y = state[0], state[1]
    # The wind takes the agent West on every move North, so keep x away from the left bound first.
    north = (y < 0.4) & (x > -1.2)
    return jnp.where(north, 1, 2).astype(jnp.int32)


def acrobot_pump(key: PRNGKeyArray, state: Float[Array, " 4"], time: Int[Array, ""]) -> Int[Array, ""]:
    """Torque in the direction of the lower joint's motion: pumps energy into any pendulum."""
    return (jnp.sign(state[3]) + 1).astype(jnp.int32)


hiv_both_drugs = constant_policy(3)
"""What a cautious doctor would prescribe: both drugs, always."""

SCRIPTED: dict[str, tuple[str, Policy]] = {
    "grid": ("detour (made for class 0)", grid_detour),
    "acrobot": ("torque = sign(rate2)", acrobot_pump),
    "hiv": ("both drugs, always", hiv_both_drugs),
}
"""One θ-blind rule per family, with the words for it."""
