"""The size of a typical reward, which a DQN divides rewards by: read from the rewards themselves.

u = exp(mean log |r|) over the rewards that are not zero, where |r| below a millionth of a typical one counts as zero.
In logarithms one outlier among a thousand rewards moves u by a few percent. Values far above u are compressed
(`DDQNConfig.squash`), so that u need not be exact.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

ROWS = 1000
"""Rewards other than zero after which a DQN keeps its unit: values that are learned must not change their meaning."""
NEGLIGIBLE = 1e-6
"""Rewards below this share of a typical one count as zero."""


class RewardUnit(NamedTuple):
    """What a DQN knows of the size of its rewards."""

    log_sum: Float[Array, ""]
    """Σ log |r| over the rewards that are counted."""
    rows: Float[Array, ""]
    """How many those are."""

    @property
    def value(self) -> Float[Array, ""]:
        """u; one before the first reward."""
        return jnp.exp(self.log_sum / jnp.maximum(self.rows, 1))

    def observe(self, rewards: Float[Array, " rows"], valid: Bool[Array, " rows"]) -> "RewardUnit":
        """With some more rewards, unless there were enough."""
        sizes = jnp.where(valid, jnp.abs(rewards), 0)
        least = NEGLIGIBLE * jnp.where(self.rows > 0, self.value, jnp.max(sizes))
        counted = (sizes > least) & (self.rows < ROWS)
        logs = jnp.where(counted, jnp.log(jnp.where(counted, sizes, 1)), 0)
        return RewardUnit(self.log_sum + jnp.sum(logs), self.rows + jnp.sum(counted, dtype=self.rows.dtype))


def unknown_unit() -> RewardUnit:
    """Nothing was seen yet."""
    # Arrays of their own: they are donated from chunk to chunk.
    return RewardUnit(*(jnp.zeros((), jnp.float32) for _ in RewardUnit._fields))


def known_unit(value: float) -> RewardUnit:
    """A unit that stays as it is."""
    size = jnp.asarray(value, jnp.float32)
    return RewardUnit(jnp.log(size) * ROWS, jnp.asarray(ROWS, jnp.float32))
