"""A model of the family that grows with what was lived: its size is what held-back data ask for.

A network that is too large follows the accidents of the first instances, one that is too small stays wrong however much
comes. So every size is fitted to a part of 𝒟 and judged on the rest,

    L(size) = mean of  (1/n) Σ log (1/K) Σ_k p(y | x, w_b, W_k)  over episodes of known instances,  w_b fitted,
                  and  the same over the newest instance, of which the fit saw nothing,             w_b inferred,

and the size with the highest L is fitted to everything.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics import fit
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.dynamics.infer import infer_latent
from hipmdp.dynamics.model import Dynamics, new_dynamics
from hipmdp.dynamics.network import Gaussian
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.dynamics.pretrain import instance_rows
from hipmdp.dynamics.quality import Quality, quality
from hipmdp.dynamics.scaling import scaling_of
from hipmdp.families.specification import Specification

HELD_BACK_EVERY = 4
"""Every fourth episode of an instance is held back; of an instance with fewer, the last quarter of its rows."""
NEWCOMER_FROM = 3
"""From this many instances on, the newest one is held back as a whole: two others can say what a family is."""


@dataclass(frozen=True)
class GrowthConfig:
    """Which models are tried, and how they are fitted."""

    sizes: tuple[tuple[int, ...], ...] = ((8, 8), (32, 32), (64, 64))
    """Hidden layers of the candidates, from the smallest."""
    choice_rounds: int = 1500
    """Rounds of the fits by which sizes are compared."""
    dynamics: DynamicsConfig = field(default_factory=lambda: DynamicsConfig(rounds=4000))
    """Everything else of a fit; `rounds` are those of the fit that is used."""

    def __post_init__(self) -> None:
        if not self.sizes or any(not size or min(size) < 1 for size in self.sizes):
            raise ValueError(f"sizes must name at least one network, each with layers of a unit or more: {self.sizes}.")


def growth_preset(specification: Specification, rounds: int = 4000) -> GrowthConfig:
    """The candidates for a family."""
    config = replace(dynamics_preset("default", specification), rounds=rounds, held_out_share=0.0)
    return GrowthConfig(dynamics=config)


class Room(NamedTuple):
    """How much a run will ever hold: arrays have this size from the beginning, so that nothing is compiled twice."""

    instances: int
    rows: int


class Choice(NamedTuple):
    """What held-back data said about the sizes."""

    size: tuple[int, ...]
    """The one that is used."""
    sizes: tuple[tuple[int, ...], ...]
    """All that were tried."""
    likelihoods: tuple[float, ...]
    """L of each (the module's docstring)."""
    error: float
    """Mean L2 error of the chosen one on held-back episodes of known instances, standardised."""
    rows: int
    """Transitions in 𝒟 when it was chosen."""


def held_back(batch: Transitions) -> np.ndarray:
    """Rows of known instances that a fit must not see; every instance keeps some that it does see."""
    mask = np.zeros(len(batch), bool)
    for instance in batch.instances:
        rows = np.flatnonzero(batch.instance == instance)
        episodes = np.unique(batch.episode[rows])
        if len(episodes) >= HELD_BACK_EVERY:
            mask[rows] = np.isin(batch.episode[rows], episodes[HELD_BACK_EVERY - 1 :: HELD_BACK_EVERY])
        elif len(rows) > 1:
            ordered = rows[np.lexsort((batch.time[rows], batch.episode[rows]))]
            mask[ordered[-len(ordered) // 4 :]] = True
    return mask


def choose_size(batch: Transitions, config: GrowthConfig, room: Room, seed: int = 0) -> Choice:
    """Fit every size to a part of `batch` and compare them on the rest."""
    instances = batch.instances
    newcomer = instances[-1] if len(instances) >= NEWCOMER_FROM else None
    known = batch if newcomer is None else batch.split_by_instance([newcomer])[0]
    mask = held_back(known)
    seen, rest = known.select(~mask), known.select(mask)
    if len(rest) == 0:
        raise ValueError(f"One instance with {len(batch)} transition is too little to hold some back.")
    likelihoods, errors = [], []
    for size in config.sizes:
        dynamics = fit_family(seen, size, config, room, seed, config.choice_rounds)
        told = [quality(bare(dynamics), rest.of_instance(b), dynamics.latents[row], seed)
                for row, b in enumerate(seen.instances) if b in rest.instances]  # fmt: skip
        parts = [_over_rows(told, "log_likelihood")]
        if newcomer is not None:
            parts.append(_newcomer(dynamics, batch.of_instance(newcomer), seed).log_likelihood)
        likelihoods.append(float(np.mean(parts)))
        errors.append(_over_rows(told, "l2"))
    best = int(np.argmax(likelihoods))
    return Choice(config.sizes[best], config.sizes, tuple(likelihoods), errors[best], len(batch))


def fit_family(
    batch: Transitions, size: tuple[int, ...], config: GrowthConfig, room: Room, seed: int, rounds: int | None = None
) -> Dynamics:
    """T̂ and the latents of all instances of `batch`: `pretrain`'s fit, compiled once for the whole run."""
    # `rounds` is not part of what is compiled.
    settings = replace(config.dynamics, hidden=size, held_out_share=0.0)
    key, instances = jax.random.key(seed), batch.instances
    start = new_dynamics(settings, batch.specification, scaling_of(batch), room.instances, key=key)
    rows = start.rows(batch, instance_rows(batch, instances))
    state = fit.init(start, rows, jax.random.fold_in(key, 1), room.rows)
    unit = Gaussian(jnp.zeros(settings.latent_size, jnp.float32), jnp.ones(settings.latent_size, jnp.float32))
    schedule = fit.Schedule(settings.learning_rate, settings.latent_learning_rate, rounds or settings.rounds)
    dynamics = fit.fitted(start, fit.run_schedule(start, settings, unit, schedule, state))
    return eqx.tree_at(lambda d: d.latents, dynamics, dynamics.latents[: len(instances)])


def bare(dynamics: Dynamics) -> Dynamics:
    """The same T̂ with the latent of one instance only: its shapes stay the same as instances come."""
    return eqx.tree_at(lambda d: d.latents, dynamics, dynamics.latents[:1])


def tiled(dynamics: Dynamics, capacity: int) -> Dynamics:
    """The same T̂ with its latents repeated up to `capacity`: likewise."""
    rows = jnp.arange(max(2, capacity), dtype=jnp.int32) % dynamics.latents.shape[0]
    return eqx.tree_at(lambda d: d.latents, dynamics, dynamics.latents[rows])


def _newcomer(dynamics: Dynamics, lived: Transitions, seed: int) -> Quality:
    """On an instance that was not fitted: w_b from its first half, judged on the second."""
    ordered = lived.select(np.lexsort((lived.time, lived.episode)))
    half = max(1, len(ordered) // 2)
    first, second = ordered.select(np.arange(half)), ordered.select(np.arange(half, len(ordered)))
    return quality(bare(dynamics), second, infer_latent(dynamics, first, seed).value, seed)


def _over_rows(told: list[Quality], name: str) -> float:
    """Mean over the rows of all instances."""
    return float(np.average([getattr(part, name) for part in told], weights=[part.rows for part in told]))
