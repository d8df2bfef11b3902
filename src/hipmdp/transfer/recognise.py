"""`recognise`: which member of the family is this, and does the family know it at all?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.infer import infer_latent, latent_covariance
from hipmdp.dynamics.quality import LEVELS, Quality, quality
from hipmdp.transfer.model import Model

HELD_BACK = 0.2
"""Share of the new system's rows, the last ones, that its latent is judged on."""
ERROR_FACTOR, GUESS_SHARE = 2.0, 0.25
"""A system is unlike the known ones when its error is more than this times that of known systems, and more than this
share of the error that one makes without knowing which system it is (new ones are always a little worse) …"""
DISTANCE_FACTOR = 2.0
"""… or when its latent is further from all of theirs than this times the largest such distance among them …"""
LEAST_COVERAGE = 0.8
"""… or when fewer than this share of what came lies within 95 % intervals."""
LEAST = 10
"""Transitions below which nothing can be said."""


@dataclass(frozen=True)
class Neighbour:
    """A known system."""

    name: str
    distance: float
    """Between the latents, in standard deviations of the known ones (root mean square over dimensions)."""


@dataclass(frozen=True)
class Recognition:
    """What a log of one new system tells."""

    latent: Float[Array, " latent"]
    """w_b, from all rows."""
    covariance: Float[Array, "latent latent"]
    """How unsure it still is."""
    neighbours: list[Neighbour]
    """All known systems, the nearest first."""
    held_back: Quality
    """On the last rows, with the latent of the rows before them."""
    mean_error: float
    """Error there with the mean latent instead: what one would predict without knowing which system it is."""
    expected_error: float
    """Error on known systems, from pre-training."""
    warnings: list[str]
    """Why it may be unlike all known systems; empty if it is not."""

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of each latent dimension."""
        return np.sqrt(np.diag(np.asarray(self.covariance)))


def recognise(model: Model, transitions: Transitions, seed: int = 0) -> Recognition:
    """Infer w_b of the one system that `transitions` came from, and judge it on rows that were held back."""
    if not model.has_latent or not len(model.need_dynamics("recognise").latents):
        raise ValueError(f"A model of method {model.method!r} has no latents to recognise a system by: use embedded.")
    dynamics = model.need_dynamics("recognise")
    if len(transitions.instances) != 1:
        names = ", ".join(transitions.name(i) for i in transitions.instances[:8])
        raise ValueError(f"One system is recognised at a time, but the log has {len(transitions.instances)}: {names}.")
    if len(transitions) < LEAST:
        raise ValueError(f"A system needs at least {LEAST} transitions to be recognised, got {len(transitions)}.")
    ordered = transitions.select(np.lexsort((transitions.time, transitions.episode)))
    first = len(ordered) - max(2, round(HELD_BACK * len(ordered)))
    before, after = (ordered.select(rows) for rows in (np.arange(first), np.arange(first, len(ordered))))
    early = infer_latent(dynamics, before, seed).value
    told = quality(dynamics, after, early, seed)
    mean = quality(dynamics, after, dynamics.latent_prior.mean, seed).l2
    latent = infer_latent(dynamics, ordered, seed).value
    neighbours = _neighbours(model, latent)
    expected = model.report.get("held_out_error", float("nan"))
    covariance = latent_covariance(dynamics, ordered, latent)
    doubts = _doubts(model, neighbours, told, expected, mean)
    return Recognition(latent, covariance, neighbours, told, mean, expected, doubts)


def _gaps(model: Model, latent: Any) -> np.ndarray:
    dynamics = model.need_dynamics("recognise")
    scale = np.sqrt(np.asarray(dynamics.latent_prior.variance))
    return np.sqrt(np.mean(((np.asarray(dynamics.latents) - np.asarray(latent)) / scale) ** 2, axis=1))


def _neighbours(model: Model, latent: Float[Array, " latent"]) -> list[Neighbour]:
    gaps = _gaps(model, latent)
    names = model.names or tuple(str(i) for i in range(len(gaps)))
    return [Neighbour(names[i], float(gaps[i])) for i in np.argsort(gaps, kind="stable")]


def _doubts(model: Model, neighbours: list[Neighbour], told: Quality, expected: float, mean: float) -> list[str]:
    doubts = []
    latents = np.asarray(model.need_dynamics("recognise").latents)
    if len(latents) > 2:
        own = [np.partition(_gaps(model, latent), 1)[1] for latent in latents]
        if neighbours[0].distance > DISTANCE_FACTOR * max(own):
            doubts.append(
                f"its latent is {neighbours[0].distance:.2g} standard deviations from the nearest known system; "
                f"known systems have a neighbour within {max(own):.2g}"
            )
    if told.l2 > max(ERROR_FACTOR * expected, GUESS_SHARE * mean):
        doubts.append(f"its prediction error is {told.l2:.3g}, that of known systems {expected:.3g}")
    if told.coverage[-1] < LEAST_COVERAGE and told.rows >= LEAST:
        doubts.append(f"its {LEVELS[-1]:.0%} intervals hold only {told.coverage[-1]:.0%} of what came")
    return doubts
