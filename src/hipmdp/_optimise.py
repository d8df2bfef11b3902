"""Gradient steps with optax: Adam whose rate falls along a cosine, and the one place that applies an update."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

_COSINE = optax.cosine_decay_schedule(1.0, decay_steps=1)
"""½ (1 + cos πx) of the share x of the steps that are done, 0 beyond one."""


def cosine_adam(
    learning_rate: float | Float[Array, "..."], steps: float | Float[Array, ""]
) -> optax.GradientTransformation:
    """Adam whose rate falls from `learning_rate` to zero along half a cosine of `steps` updates.

    Both may be arrays inside jit (optax's own schedule wants the number of steps as a constant), so that one compiled
    loop serves every schedule. A `learning_rate` with the shape of the parameters is one rate per parameter.
    """

    def schedule(count: Int[Array, ""]) -> Float[Array, "..."]:
        return jnp.asarray(learning_rate * _COSINE(count.astype(jnp.float32) / steps))

    return optax.adam(schedule)


def apply_optimizer(
    optimizer: optax.GradientTransformation, gradient: Any, state: optax.OptState, parameters: Any
) -> tuple[Any, optax.OptState]:
    """(parameters, optimizer state) after one step; parameters without a gradient (None) stay as they are."""
    # optax raises a float to its integer step count, which strict promotion (our tests) forbids.
    with jax.numpy_dtype_promotion("standard"):
        updates, state = optimizer.update(gradient, state, parameters)
    return eqx.apply_updates(parameters, updates), state
