"""The best policy of an instance with one or two state dimensions: value iteration on a fine grid of its states.

V(s) ← max_a R(s, a, s') + γ V(s') on every point of the grid, for deterministic dynamics, with V between the points by
linear interpolation, and V = 0 where the episode has ended. It takes seconds where a Double DQN takes minutes, and
depends on no seed.
"""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._random import root_key, stream
from hipmdp.families.protocol import AbstractFamily, BaseFamily, Theta
from hipmdp.families.rollout import Step

MOST_DIMENSIONS = 2
POINTS = 201
"""Points of the grid along each state dimension."""
DISCOUNT = 0.999
"""Returns are undiscounted; this close to one, detours do not pay, and values stay finite."""
SWEEPS = 300
"""Sweeps over the grid: more than an episode of the families with so few dimensions has steps."""


class GridPolicy(eqx.Module):
    """argmax_a R(s, a, s') + γ V(s'), one step ahead in the true dynamics."""

    family: AbstractFamily
    theta: Theta
    values: Float[Array, "..."]

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The action with the highest value."""
        returns = _action_values(self.family, self.theta, self.values, key, state)
        return jnp.argmax(returns).astype(jnp.int32)


def is_possible(family: BaseFamily) -> bool:
    """Whether the grid is small enough: few state dimensions, each with finite bounds, and steps in JAX."""
    low, high = family.specification.bounds
    bounded = bool(np.all(np.isfinite(low) & np.isfinite(high)))
    return family.simulated and bounded and family.specification.state_size <= MOST_DIMENSIONS


def best_policy(family: BaseFamily, theta: Theta) -> GridPolicy:
    """The greedy policy of the values after `SWEEPS` sweeps."""
    simulator = family.simulator("value iteration")
    return GridPolicy(simulator, theta, _iterate(simulator, theta))


def _action_values(
    family: AbstractFamily,
    theta: Theta,
    values: Float[Array, "..."],
    key: PRNGKeyArray,
    state: Float[Array, " state"],
) -> Float[Array, " actions"]:
    def one(action: Int[Array, ""]) -> Float[Array, ""]:
        outcome: Step = family.step(key, state, action, theta)
        after = _interpolated(family, values, outcome.state)
        return outcome.reward + jnp.where(outcome.terminated, 0.0, DISCOUNT * after)

    return jax.vmap(one)(jnp.arange(family.specification.action_count, dtype=jnp.int32))


def _interpolated(
    family: AbstractFamily, values: Float[Array, "..."], state: Float[Array, " state"]
) -> Float[Array, ""]:
    low, high = (jnp.asarray(bound) for bound in family.specification.bounds)
    place = jnp.clip((state - low) / (high - low), 0, 1) * (POINTS - 1)
    corner = jnp.clip(jnp.floor(place), 0, POINTS - 2)
    share, index = place - corner, corner.astype(jnp.int32)
    total = jnp.zeros((), jnp.float32)
    for offsets in itertools.product((0, 1), repeat=state.shape[0]):
        weight = functools.reduce(jnp.multiply, [share[i] if o else 1 - share[i] for i, o in enumerate(offsets)])
        total = total + weight * values[tuple(index[i] + o for i, o in enumerate(offsets))]
    return total


@eqx.filter_jit
def _iterate(family: AbstractFamily, theta: Theta) -> Float[Array, "..."]:
    low, high = family.specification.bounds
    axes = [np.linspace(a, b, POINTS, dtype=np.float32) for a, b in zip(low, high, strict=True)]
    shape = (POINTS,) * len(axes)
    states = jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)))
    key = stream(root_key(0), "study/measured")

    def sweep(_: Int[Array, ""], values: Float[Array, "..."]) -> Float[Array, "..."]:
        best = jax.vmap(lambda state: jnp.max(_action_values(family, theta, values, key, state)))(states)
        return best.reshape(shape)

    return jax.lax.fori_loop(0, SWEEPS, sweep, jnp.zeros(shape, jnp.float32))
