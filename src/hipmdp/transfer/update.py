"""After the instance: W and the latents are updated from 𝒟, which now holds one instance more."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.pretrain import fit_dynamics
from hipmdp.transfer.model import Model


def update_from_batch(
    model: Model, batch: Transitions, lived: Transitions, latent: Float[Array, " latent"], rounds: int, seed: int
) -> Model:
    """The family's model, with `lived` as its newest instance.

    It goes on from the W of the family, not from the one tuned to this instance: that one has given up what the others
    taught. For `scratch` there is nothing to update: it keeps no memory of other instances.
    """
    dynamics = model.need_dynamics("update_from_batch")
    if dynamics.latents.shape[0] != len(batch.instances):
        raise ValueError(
            f"The model was trained on {dynamics.latents.shape[0]} instances, the batch holds {len(batch.instances)}: "
            "give the batch that the model was pre-trained on."
        )
    everything = batch.extended(lived.renumbered(max(batch.instances) + 1))
    known = jnp.concatenate([dynamics.latents, jnp.asarray(latent)[None]])
    start = eqx.tree_at(lambda d: d.latents, dynamics, known)
    fitted = fit_dynamics(everything, replace(dynamics.config, rounds=rounds), seed, start=start)
    fitted = replace(fitted, config=dynamics.config)
    low = tuple(np.minimum(model.low, lived.next_state.min(axis=0)).tolist())
    high = tuple(np.maximum(model.high, lived.next_state.max(axis=0)).tolist())
    return replace(model, dynamics=fitted, low=low, high=high)
