"""A model of the family that grows with 𝒟: its size is what held-out data ask for.

A network that is too large follows the accidents of the first instances, one that is too small stays wrong however much
comes. So every size is fitted to a part of 𝒟 and judged on the rest,

    L(size) = mean of  (1/n) Σ log (1/K) Σ_k p(y | x, w_b, W_k)  over episodes of known instances,  w_b fitted,
                  and  the same over the newest instance, of which the fit saw nothing,             w_b inferred,

and the size with the highest L is fitted to everything.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.data.work import WorkFile
from hipmdp.dynamics.fit_family import Capacity, fit_dynamics, held_out_rows, split_in_time
from hipmdp.dynamics.infer import infer_latent
from hipmdp.dynamics.model import Dynamics
from hipmdp.dynamics.quality import Quality, pooled_error, quality
from hipmdp.settings.online import GrowthConfig

HELD_OUT_SHARE = 0.25
"""Every fourth episode of an instance is held out; of an instance with fewer, the last quarter of its rows."""
NEWCOMER_FROM = 3
"""From this many instances on, the newest one is held out as a whole: two others can say what a family is."""


class Choice(NamedTuple):
    """What held-out data said about the sizes."""

    size: tuple[int, ...]
    """The one that is used."""
    sizes: tuple[tuple[int, ...], ...]
    """All that were tried."""
    likelihoods: tuple[float, ...]
    """L of each (the module's docstring)."""
    error: float
    """RMSE (standardised, per dimension) of the chosen one on held-out episodes of known instances."""
    rows: int
    """Transitions in 𝒟 when it was chosen."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Choice":
        """The inverse of `_asdict`, also where JSON has made lists of it."""
        return cls(
            size=tuple(int(units) for units in values["size"]),
            sizes=tuple(tuple(int(units) for units in size) for size in values["sizes"]),
            likelihoods=tuple(float(value) for value in values["likelihoods"]),
            error=float(values["error"]),
            rows=int(values["rows"]),
        )


def choose_size(
    batch: Transitions,
    config: GrowthConfig,
    capacity: Capacity,
    *,
    key: PRNGKeyArray,
    work: WorkFile | None = None,
) -> Choice:
    """Fit every size to a part of `batch` and compare them on the rest."""
    instances = batch.instances
    newcomer = instances[-1] if len(instances) >= NEWCOMER_FROM else None
    known = batch if newcomer is None else batch.split_by_instance([newcomer])[0]
    mask = held_out_rows(known, HELD_OUT_SHARE, split_few=True)
    seen, rest = known.select(~mask), known.select(mask)
    if len(rest) == 0:
        raise ValueError(f"One instance with {len(batch)} transition is too little to hold some out.")
    fit_key, newcomer_key, *keys = jax.random.split(key, 2 + len(seen.instances))
    likelihoods, errors = [], []
    # All sizes are fitted and measured with the same keys: what differs is the size.
    for size in config.sizes:
        dynamics = fit_size(seen, size, config, capacity, key=fit_key, rounds=config.choice_rounds, work=work)
        parts = [
            quality(single_latent(dynamics), rest.of_instance(b), dynamics.latents[row], key=keys[row])
            for row, b in enumerate(seen.instances)
            if b in rest.instances
        ]
        measured = [_mean_log_likelihood(parts)]
        if newcomer is not None:
            measured.append(_newcomer(dynamics, batch.of_instance(newcomer), key=newcomer_key).log_likelihood)
        likelihoods.append(float(np.mean(measured)))
        errors.append(pooled_error(parts))
    best = int(np.argmax(likelihoods))
    return Choice(config.sizes[best], config.sizes, tuple(likelihoods), errors[best], len(batch))


def fit_size(
    batch: Transitions,
    size: tuple[int, ...],
    config: GrowthConfig,
    capacity: Capacity,
    *,
    key: PRNGKeyArray,
    rounds: int | None = None,
    work: WorkFile | None = None,
) -> Dynamics:
    """T̂ and the latents of all instances of `batch`: `pretrain`'s fit, compiled once for the whole run."""
    settings = replace(config.dynamics, hidden=size, held_out_share=0.0)
    return fit_dynamics(batch, settings, key=key, capacity=capacity, rounds=rounds, work=work)


def single_latent(dynamics: Dynamics) -> Dynamics:
    """The same T̂ with the latent of one instance only: its shapes stay the same as instances come."""
    return eqx.tree_at(lambda d: d.latents, dynamics, dynamics.latents[:1])


def padded_latents(dynamics: Dynamics, capacity: int) -> Dynamics:
    """The same T̂ with its latents repeated up to `capacity`: likewise."""
    rows = jnp.arange(max(2, capacity), dtype=jnp.int32) % dynamics.latents.shape[0]
    return eqx.tree_at(lambda d: d.latents, dynamics, dynamics.latents[rows])


def _newcomer(dynamics: Dynamics, transitions: Transitions, *, key: PRNGKeyArray) -> Quality:
    """On an instance that was not fitted: w_b from its first half, judged on the second."""
    latent_key, quality_key = jax.random.split(key)
    first, second = split_in_time(transitions, 0.5)
    latent = infer_latent(dynamics, first, key=latent_key).value
    return quality(single_latent(dynamics), second, latent, key=quality_key)


def _mean_log_likelihood(parts: list[Quality]) -> float:
    """Mean over the rows of all instances."""
    return float(np.average([part.log_likelihood for part in parts], weights=[part.rows for part in parts]))
