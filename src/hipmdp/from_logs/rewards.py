"""What a reward says that a log earned."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.imagination.reward import AbstractReward


def rewards_of(
    log: Transitions, reward: AbstractReward, latent: Float[Array, " latent"], *, key: PRNGKeyArray
) -> np.ndarray:
    """The reward of every logged transition; a `ValueError` where one is no number."""
    from_origin = log.specification.from_origin
    columns = map(jnp.asarray, (from_origin(log.state), log.action, from_origin(log.next_state)))
    values, _ = jax.vmap(lambda s, a, n: reward(key, s, a, n, latent))(*columns)
    found = np.asarray(values, np.float64)
    if not np.isfinite(found).all():
        raise ValueError("The reward is not finite in some logged transition.")
    return found
