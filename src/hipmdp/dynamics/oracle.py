"""The true θ as the latent: it bounds what any learned latent can reach, and shows which part is at fault."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class OracleLatents(NamedTuple):
    """The parameters that vary among the training instances, and how they are standardised."""

    names: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]

    def latent(self, theta: Any) -> Float[Array, " latent"]:
        """The latent of an instance whose θ (a named tuple or a dict by name) is known."""
        values = theta if isinstance(theta, dict) else theta._asdict()
        rows = zip(self.names, self.centre, self.scale, strict=True)
        return jnp.asarray([(float(values[name]) - centre) / scale for name, centre, scale in rows], jnp.float32)


def oracle_latents(thetas: dict[int, dict[str, float]]) -> OracleLatents:
    """Which parameters vary among the training instances, given θ by name of each, and their mean and spread."""
    if len(thetas) < 2:
        raise ValueError(f"True parameters are needed for at least two instances, got {len(thetas)}.")
    rows = list(thetas.values())
    names = tuple(name for name in rows[0] if len({row[name] for row in rows}) > 1)
    if not names:
        raise ValueError("The true parameters of all instances are the same: nothing distinguishes them.")
    table = np.asarray([[row[name] for name in names] for row in rows], np.float64)
    return OracleLatents(names, tuple(table.mean(axis=0).tolist()), tuple(table.std(axis=0).tolist()))


def training_latents(oracle: OracleLatents, thetas: dict[int, dict[str, float]]) -> Float[Array, "instances latent"]:
    """The latents of the training instances, in the order of their ids."""
    return jnp.stack([oracle.latent(thetas[i]) for i in sorted(thetas)])
