"""Fitting the family: W and the latents of all training instances, from the batch 𝒟; and what is held out of it."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.data.work import WorkFile
from hipmdp.dynamics import fit
from hipmdp.dynamics.model import Dynamics, instance_rows, new_dynamics
from hipmdp.dynamics.network import Gaussian
from hipmdp.dynamics.quality import pooled_error, quality
from hipmdp.dynamics.standardise import scaling_of
from hipmdp.settings.dynamics import DynamicsConfig


class Capacity(NamedTuple):
    """How much a run will ever hold: arrays have this size from the beginning, so that nothing is compiled twice."""

    instances: int
    rows: int


def held_out_rows(batch: Transitions, share: float, *, split_few: bool = False) -> Bool[np.ndarray, " rows"]:
    """Rows of every 1/share-th episode of each instance: spread over the whole time, none where episodes are few.

    With `split_few` an instance with fewer episodes than that gives its last rows in time order, but never all.
    """
    mask = np.zeros(len(batch), bool)
    if share <= 0:
        return mask
    every = round(1 / share)
    for instance in batch.instances:
        rows = np.flatnonzero(batch.instance == instance)
        episodes = np.unique(batch.episode[rows])
        if len(episodes) >= every:
            mask[rows] = np.isin(batch.episode[rows], episodes[every - 1 :: every])
        elif split_few and len(rows) > 1:
            ordered = rows[np.lexsort((batch.time[rows], batch.episode[rows]))]
            mask[ordered[-_last(len(ordered), share) :]] = True
    return mask


def split_in_time(transitions: Transitions, share: float, *, least: int = 1) -> tuple[Transitions, Transitions]:
    """(the earlier rows, the last `share` of them) of one instance's log in time order; at least `least` are last."""
    if len(transitions) < 2:
        raise ValueError(f"A log needs at least two transitions to hold some out, got {len(transitions)}.")
    ordered = np.lexsort((transitions.time, transitions.episode))
    last = max(_last(len(ordered), share), min(least, len(ordered) - 1))
    return transitions.select(ordered[:-last]), transitions.select(ordered[-last:])


def _last(count: int, share: float) -> int:
    """How many of `count` rows are held out: the share rounded up, but not all."""
    return min(math.ceil(share * count - 1e-9), count - 1)


def fit_dynamics(
    batch: Transitions,
    config: DynamicsConfig,
    *,
    key: PRNGKeyArray,
    latents: Float[Array, "instances latent"] | None = None,
    on_chunk: Callable[[int, Dynamics], None] = lambda done, dynamics: None,
    start: Dynamics | None = None,
    capacity: Capacity | None = None,
    rounds: int | None = None,
    work: WorkFile | None = None,
) -> Dynamics:
    """W, the noise and the latents of all instances of `batch`, except what `config.held_out_share` holds out.

    `latents` fixes the latents (say, at the true θ's). `start` is a model to go on from; it has a latent for every
    instance. With a `capacity` batches of any size up to it share one compilation. `rounds` replaces the number in
    `config` for this fit alone, which is no reason to compile either. `on_chunk` gets the rounds done and the model.
    A fit that was stopped goes on from the checkpoint in `work`, to the same bits.
    """
    instances = batch.instances
    model_key, fit_key = jax.random.split(key)
    size = Capacity(len(instances), 256) if capacity is None else capacity
    dynamics = _first_model(batch, config, size.instances, key=model_key) if start is None else start
    dynamics = _with_latents(dynamics, dynamics.latents if latents is None else latents, size.instances)
    fitting = replace(dynamics, config=config if latents is None else replace(config, latent_steps=0))
    kept = batch.select(~held_out_rows(batch, config.held_out_share))
    rows = dynamics.rows(kept, instance_rows(kept, instances))

    def result(state: fit.FitState) -> Dynamics:
        fitted = fit.fitted(dynamics, state)
        return eqx.tree_at(lambda d: d.latents, fitted, fitted.latents[: len(instances)])

    def at_chunk_edge(done: int, state: fit.FitState) -> None:
        on_chunk(done, result(state))
        if work is not None:
            work.at_chunk_edge(fit.without_rows(state), {"rounds": done})

    first, begin = fit.init(fitting, rows, fit_key, size.rows), 0
    kept_state = None if work is None else work.load(lambda meta: fit.without_rows(first))
    if kept_state is not None:
        first, begin = fit.with_rows(kept_state[0], first), int(kept_state[1]["rounds"])
    state = fit.run_schedule(
        fitting,
        first,
        latent_prior=Gaussian.unit(config.latent_size),
        schedule=fit.Schedule(config.learning_rate, config.latent_learning_rate, rounds or config.rounds),
        on_chunk=at_chunk_edge,
        begin=begin,
    )
    if work is not None:
        work.save(fit.without_rows(state), {"rounds": rounds or config.rounds})
    return result(state)


def _first_model(batch: Transitions, config: DynamicsConfig, instances: int, *, key: PRNGKeyArray) -> Dynamics:
    """An untrained model that is standardised by `batch`."""
    return new_dynamics(config, batch.specification, scaling_of(batch), instances=instances, key=key)


def _with_latents(dynamics: Dynamics, latents: Float[Array, "instances latent"], count: int) -> Dynamics:
    """The model with these latents, and with zeros for instances that are yet to come, up to `count`."""
    latents = jnp.asarray(latents, jnp.float32)
    missing = max(0, count - latents.shape[0])
    if missing > 0:
        latents = jnp.concatenate([latents, jnp.zeros((missing, latents.shape[1]), jnp.float32)])
    return eqx.tree_at(lambda d: d.latents, dynamics, latents)


def held_out_error(dynamics: Dynamics, batch: Transitions, *, key: PRNGKeyArray) -> float:
    """RMSE of the standardised state difference per dimension on the episodes held out of the fit to `batch`.

    Each instance is predicted with its own latent; squared errors are pooled over all rows and dimensions. 1 is no
    better than predicting the mean change. Where episodes are too few to hold any out, all of them are measured.
    """
    held_out = held_out_rows(batch, dynamics.config.held_out_share)
    measured = batch.select(held_out) if held_out.any() else batch
    keys = jax.random.split(key, len(batch.instances))
    known = set(measured.instances)
    parts = [
        quality(dynamics, measured.of_instance(instance), dynamics.latents[row], key=keys[row])
        for row, instance in enumerate(batch.instances)
        if instance in known
    ]
    return pooled_error(parts)
