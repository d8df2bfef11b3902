"""Standardisation, from the batch itself: states and state differences to zero mean and unit spread."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hipmdp.data.transitions import Transitions
from hipmdp.families.specification import Specification

SMALLEST_SPREAD = 1e-6
"""A column that varies less than this is left unscaled: dividing by its spread would only blow up rounding."""


class Scaling(NamedTuple):
    """What the batch says about its columns; all in the family's own units."""

    state_centre: Float[Array, " state"]
    state_scale: Float[Array, " state"]
    change_centre: Float[Array, " state"]
    change_scale: Float[Array, " state"]

    def features(
        self, state: Float[Array, " state"], action: Int[Array, ""], action_count: int
    ) -> Float[Array, " features"]:
        """The network's input for one row: the standardised state and the one-hot action."""
        x = (state - self.state_centre) / self.state_scale
        return jnp.concatenate([x, jax.nn.one_hot(action, action_count, dtype=x.dtype)])

    def standardised(self, change: Float[Array, " state"]) -> Float[Array, " state"]:
        """A state difference in standardised units."""
        return (change - self.change_centre) / self.change_scale


def wrap_angles(specification: Specification, change: np.ndarray) -> np.ndarray:
    """State differences with those of angles brought to [−π, π): s' − s jumps by 2π where an angle wraps."""
    wrapped = np.mod(change + np.pi, 2 * np.pi) - np.pi
    return np.where(np.asarray(specification.angles), wrapped, change)


def state_change(
    specification: Specification, state: Float[Array, " state"], next_state: Float[Array, " state"]
) -> Float[Array, " state"]:
    """s' − s of one row inside jit, angles wrapped."""
    change = next_state - state
    if not any(specification.angles):
        return change
    wrapped = change - jnp.round(change / (2 * np.pi)) * (2 * np.pi)
    return jnp.where(jnp.asarray(specification.angles), wrapped, change)


def state_changes(transitions: Transitions) -> np.ndarray:
    """s' − s of every row, angles wrapped."""
    change = transitions.next_state.astype(np.float64) - transitions.state.astype(np.float64)
    return wrap_angles(transitions.specification, change)


def scaling_of(transitions: Transitions) -> Scaling:
    """Mean and spread of the columns of a batch."""

    def both(values: np.ndarray) -> tuple[Array, Array]:
        spread = values.std(axis=0, dtype=np.float64)
        spread = np.where(spread > SMALLEST_SPREAD, spread, 1.0)
        return jnp.asarray(values.mean(axis=0, dtype=np.float64), jnp.float32), jnp.asarray(spread, jnp.float32)

    return Scaling(*both(transitions.state), *both(state_changes(transitions)))
