"""The true θ as the latent: it bounds what any learned latent can reach, and shows which part is at fault."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class OracleLatents(NamedTuple):
    """The parameters that vary among the training instances, standardised over them."""

    names: tuple[str, ...]
    centre: Float[Array, " latent"]
    scale: Float[Array, " latent"]
    values: Float[Array, "instances latent"]


def oracle_latents(thetas: dict[int, dict[str, float]]) -> OracleLatents:
    """From θ by name of every training instance, in the order of their ids."""
    if len(thetas) < 2:
        raise ValueError(f"True parameters are needed for at least two instances, got {len(thetas)}.")
    rows = [thetas[i] for i in sorted(thetas)]
    names = tuple(name for name in rows[0] if len({row[name] for row in rows}) > 1)
    if not names:
        raise ValueError("The true parameters of all instances are the same: there is nothing to tell them apart by.")
    table = np.asarray([[row[name] for name in names] for row in rows], np.float64)
    centre, scale = table.mean(axis=0), table.std(axis=0)
    values = (table - centre) / scale
    return OracleLatents(names, *(jnp.asarray(part, jnp.float32) for part in (centre, scale, values)))


def oracle_latent(latents: OracleLatents, theta: Any) -> Float[Array, " latent"]:
    """The latent of an instance whose θ is known."""
    value = jnp.asarray([getattr(theta, name) for name in latents.names], jnp.float32)
    return (value - latents.centre) / latents.scale
