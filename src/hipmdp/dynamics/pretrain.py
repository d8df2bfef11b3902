"""Fitting the family: W and the latents of all training instances, from the batch 𝒟."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics import fit
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.dynamics.model import Dynamics, new_dynamics
from hipmdp.dynamics.network import Gaussian
from hipmdp.dynamics.scaling import scaling_of


def held_out_rows(batch: Transitions, share: float) -> np.ndarray:
    """Rows of every 1/share-th episode of each instance: spread over the whole time, none where episodes are few."""
    mask = np.zeros(len(batch), bool)
    if share <= 0:
        return mask
    every = round(1 / share)
    for instance in batch.instances:
        rows = batch.instance == instance
        episodes = np.unique(batch.episode[rows])
        mask[rows] = np.isin(batch.episode[rows], episodes[every - 1 :: every])
    return mask


def instance_rows(batch: Transitions, instances: list[int]) -> Any:
    """For each transition the position of its instance among `instances`."""
    return jnp.asarray(np.searchsorted(np.asarray(instances), batch.instance), jnp.int32)


def fit_dynamics(
    batch: Transitions,
    config: DynamicsConfig,
    seed: int = 0,
    latents: Float[Array, "instances latent"] | None = None,
    report: Callable[[int, Dynamics], None] = lambda rounds, dynamics: None,
    start: Dynamics | None = None,
) -> Dynamics:
    """W, the noise and the latents of all instances of `batch`; `latents` fixes the latents (say, at the true θ's).

    `start` is a model to go on from; it has a latent for every instance.
    """
    key = jax.random.key(seed)
    instances = batch.instances
    dynamics = start or new_dynamics(config, batch.specification, scaling_of(batch), len(instances), key=key)
    if latents is not None:
        dynamics = eqx.tree_at(lambda d: d.latents, dynamics, jnp.asarray(latents, jnp.float32))
        config = replace(config, latent_steps=0)
    kept = batch.select(~held_out_rows(batch, config.held_out_share))
    unit = Gaussian(jnp.zeros(config.latent_size, jnp.float32), jnp.ones(config.latent_size, jnp.float32))
    state = fit.init(dynamics, dynamics.rows(kept, instance_rows(kept, instances)), jax.random.fold_in(key, 1))
    schedule = fit.Schedule(config.learning_rate, config.latent_learning_rate, config.rounds)

    def tell(done: int, state: fit.FitState) -> None:
        report(done, fit.fitted(dynamics, state))

    return fit.fitted(dynamics, fit.run_schedule(dynamics, config, unit, schedule, state, tell))
