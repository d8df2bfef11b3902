"""After the instance: W and the latents are updated from 𝒟, which now holds one instance more."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.fit_family import fit_dynamics
from hipmdp.pretraining.model import Model


def update_from_batch(
    model: Model,
    batch: Transitions,
    instance_data: Transitions,
    latent: Float[Array, " latent"],
    rounds: int,
    *,
    key: PRNGKeyArray,
) -> Model:
    """The family's model, with the instance of `instance_data` as its newest.

    It goes on from the W of the family, not from the one tuned to this instance: that one has given up what the others
    taught.
    """
    check_batch(model, batch)
    dynamics = model.need_dynamics("update_from_batch")
    everything = batch.extended(instance_data.renumbered(max(batch.instances) + 1))
    known = jnp.concatenate([dynamics.latents, jnp.asarray(latent)[None]])
    start = eqx.tree_at(lambda d: d.latents, dynamics, known)
    fitted = fit_dynamics(everything, replace(dynamics.config, rounds=rounds), key=key, start=start)
    fitted = replace(fitted, config=dynamics.config)
    low = tuple(np.minimum(model.low, instance_data.next_state.min(axis=0)).tolist())
    high = tuple(np.maximum(model.high, instance_data.next_state.max(axis=0)).tolist())
    return replace(model, dynamics=fitted, low=low, high=high)


def check_batch(model: Model, batch: Transitions) -> None:
    """Refuse a batch of other instances than the model was pre-trained on."""
    dynamics = model.dynamics
    if dynamics is None or dynamics.latents.shape[0] == 0:
        return
    if dynamics.latents.shape[0] != len(batch.instances):
        raise ValueError(
            f"The model was trained on {dynamics.latents.shape[0]} instances, the batch holds {len(batch.instances)}: "
            "give the batch that the model was pre-trained on."
        )
