"""Normals for weight draws, cheaply.

A gradient step with 50 draws of 1,800 weights needs 90,000 normals, and making them costs more than the step. So a pool
of fresh normals is made once per chunk of steps, and each step reads a window at a random place: within a step all
normals are independent, and windows of different steps meet at random shifts only (benchmarks/dynamics_speed.py).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

POOL_WINDOWS = 16
"""Windows that fit into a pool side by side."""


def make_pool(key: PRNGKeyArray, draws: int, weights: int) -> Float[Array, " pool"]:
    """A pool for steps that need `draws` × `weights` normals each."""
    return jax.random.normal(key, (POOL_WINDOWS * draws * weights,), jnp.float32)


def from_pool(
    pool: Float[Array, " pool"], key: PRNGKeyArray, draws: int, weights: int
) -> Float[Array, "draws weights"]:
    """A window of the pool at a random place."""
    size = draws * weights
    start = jax.random.randint(key, (), 0, pool.shape[0] - size + 1, jnp.int32)
    return jax.lax.dynamic_slice(pool, (start,), (size,)).reshape(draws, weights)
