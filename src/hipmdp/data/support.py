"""What has been tried where: a sample of the batch by which later choices are judged."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.data.transitions import Transitions

MOST = 2000
"""Rows that a model keeps."""
LEVEL = 0.99
"""A state is near the data when it is as near as this share of the data's own rows are to each other."""


class Support(NamedTuple):
    """States in which actions were tried, measured from the origin of their specification."""

    state: Float[Array, "rows state"]
    action: Int[Array, " rows"]

    @staticmethod
    def sample(batch: Transitions, *, key: PRNGKeyArray, most: int = MOST) -> "Support":
        """Rows of `batch`, at most `most` of them, each with the same probability."""
        chosen = np.sort(numpy_generator(key).permutation(len(batch))[:most])
        return Support(
            jnp.asarray(batch.specification.from_origin(batch.state[chosen])), jnp.asarray(batch.action[chosen])
        )

    def joined(self, more: "Support") -> "Support":
        """The rows of this sample, then those of `more`."""
        return Support(*(jnp.concatenate(pair) for pair in zip(self, more, strict=True)))

    def distances(self, state: np.ndarray, scale: np.ndarray, actions: int) -> np.ndarray:
        """From `state` to the nearest row with each action, in spreads of the states; infinite for one never tried."""
        gaps = np.sqrt(np.mean(((np.asarray(self.state, np.float64) - state) / scale) ** 2, axis=1))
        taken = np.asarray(self.action)
        return np.asarray([gaps[taken == a].min() if (taken == a).any() else np.inf for a in range(actions)])

    def reach(self, scale: np.ndarray) -> float:
        """How far apart rows with the same action usually are: beyond this there is no support."""
        nearest = []
        states, taken = np.asarray(self.state, np.float64) / scale, np.asarray(self.action)
        for action in np.unique(taken):
            mine = states[taken == action]
            if len(mine) < 2:
                continue
            # (a − b)² = a² − 2ab + b², as the plain differences of 2,000 rows would take half a gigabyte.
            squares = np.sum(mine**2, axis=1)
            gaps = squares[:, None] - 2 * mine @ mine.T + squares[None]
            np.fill_diagonal(gaps, np.inf)
            nearest.append(np.sqrt(np.maximum(gaps.min(axis=1), 0) / mine.shape[1]))
        return float(np.quantile(np.concatenate(nearest), LEVEL)) if nearest else 0.0
