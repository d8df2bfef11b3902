"""Standardisation, from the batch itself: states and state differences to zero mean and unit spread.

A log is in natural units and float64. `Specification.from_origin` makes its states float32, `standardised_changes` its
state differences; there is no other way.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from hipmdp._units import is_single, rounding, single_fault
from hipmdp.data.transitions import Transitions
from hipmdp.families.specification import Specification

LARGEST_DRIFT = 1000.0
"""Changes whose mean is more than so many of their spreads are standardised in float64: float32 has too few digits."""


class Scaling(NamedTuple):
    """What the batch says about its columns; in natural units, states from the origin of the specification."""

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


def state_change(
    specification: Specification, state: Float[Array, " state"], next_state: Float[Array, " state"]
) -> Float[Array, " state"]:
    """s' − s of one row inside jit, angles wrapped."""
    return specification.wrap_angles(next_state - state)


def state_changes(transitions: Transitions) -> np.ndarray:
    """s' − s of every row, angles wrapped."""
    return transitions.specification.wrap_angles(transitions.next_state - transitions.state)


def check_units(transitions: Transitions) -> None:
    """Refuse columns that float32 cannot compute with, even from the origin of their specification."""
    specification = transitions.specification
    origin = specification.natural(np.zeros(specification.state_size))
    for name, values in zip(specification.state_names, (transitions.state - origin).T, strict=True):
        fault = single_fault(values)
        if fault is not None:
            hint = "" if specification.origin else " (a log: read it with `read_logs`, which chooses an origin)"
            raise ValueError(f"State {name!r} {fault}{hint}.")
    reward = transitions.reward
    # What a family pays is float32, for better or worse, and mostly known by a formula.
    fault = single_fault(reward) if specification.rewarded and not is_single(reward) else None
    if fault is not None:
        raise ValueError(f"The reward {fault}.")


def scaling_of(transitions: Transitions) -> Scaling:
    """Mean and spread of the columns of a batch.

    A spread that is only rounding is replaced by a size that the column does have: dividing by it would blow up noise.
    """
    state, change = transitions.state, state_changes(transitions)
    noise = rounding(state)
    if transitions.specification.origin:
        state = state - np.asarray(transitions.specification.origin)
    centre, drift = state.mean(axis=0), change.mean(axis=0)
    spread, change_spread = state.std(axis=0), change.std(axis=0)
    spread = np.where(spread > noise, spread, 1.0)
    still = np.where(np.abs(drift) > noise, np.abs(drift), spread)
    change_spread = np.where(change_spread > noise, change_spread, still)
    return Scaling(*(jnp.asarray(v, jnp.float32) for v in (centre, spread, drift, change_spread)))


def standardised_changes(transitions: Transitions, scaling: Scaling) -> np.ndarray:
    """State differences, from float64, as the float32 numbers that T̂ is fitted to."""
    change = state_changes(transitions)
    count = len(change)
    filled = np.zeros((padded_size(count), change.shape[1]), np.float32)
    filled[:count] = change
    single = np.asarray(_standardised(scaling, jnp.asarray(filled)))[:count]
    centre, scale = (np.asarray(v, np.float64) for v in (scaling.change_centre, scaling.change_scale))
    drifts = np.abs(centre) > LARGEST_DRIFT * scale
    return np.where(drifts, (change - centre) / scale, single).astype(np.float32) if drifts.any() else single


@jax.jit
def _standardised(scaling: Scaling, change: Float[Array, "rows state"]) -> Float[Array, "rows state"]:
    return jax.vmap(scaling.standardised)(change)


def padded_size(count: int) -> int:
    """A power of two that holds `count` rows: logs of any length share a few compilations."""
    return max(256, 1 << (count - 1).bit_length())
