"""`identify`: which member of the family is this, and does the model know such a one at all?"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from hipmdp._random import root_key, stream
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, new_filter
from hipmdp.dynamics.fit_family import split_in_time
from hipmdp.dynamics.model import Dynamics
from hipmdp.dynamics.predictive import predictive, predictive_quality
from hipmdp.dynamics.quality import LEVELS, Quality, quality
from hipmdp.dynamics.smooth import smoothed
from hipmdp.pretraining.model import Model

HELD_OUT = 0.2
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
class Identification:
    """What a log of one new system says about it."""

    belief: Belief
    """p(w_b | all rows)."""
    neighbours: list[Neighbour]
    """All known systems, the nearest first."""
    held_out: Quality
    """On the last rows, with the belief after the rows before them: over w_b, W and the noise of this system."""
    mean_error: float
    """Error there with the mean latent instead: what one would predict without knowing which system it is."""
    expected_error: float
    """Error on known systems, from pre-training."""
    warnings: list[str]
    """Why it may be unlike all known systems; empty if it is not."""

    @property
    def latent(self) -> Float[Array, " latent"]:
        """The most probable w_b."""
        return self.belief.best

    @property
    def spread(self) -> np.ndarray:
        """How unsure w_b still is: standard deviation of each of its dimensions."""
        return np.asarray(self.belief.spread)


def identify(model: Model, transitions: Transitions, seed: int = 0) -> Identification:
    """Infer w_b of the one system that `transitions` came from, and judge it on rows that were held out."""
    if model.dynamics is None or not model.has_latent or not len(model.dynamics.latents):
        raise ValueError(f"A model of method {model.method!r} has no latents to identify a system by: use embedded.")
    if len(transitions.instances) != 1:
        names = ", ".join(transitions.name(i) for i in transitions.instances[:8])
        raise ValueError(f"One system is identified at a time, but the log has {len(transitions.instances)}: {names}.")
    if len(transitions) < LEAST:
        raise ValueError(f"A system needs at least {LEAST} transitions to be identified, got {len(transitions)}.")
    dynamics, key = model.dynamics, root_key(seed)
    chosen, metrics_key = new_filter(dynamics, stream(key, "logs/filter")), stream(key, "logs/metrics")
    before, after = split_in_time(transitions, HELD_OUT)
    held_out = predictive_quality(predictive(dynamics, smoothed(chosen, before), key=metrics_key), after)
    mean = quality(dynamics, after, dynamics.latent_prior.mean, key=jax.random.clone(metrics_key)).error
    belief = smoothed(chosen, transitions)
    neighbours = _neighbours(model, dynamics, belief.best)
    expected = model.expected_error
    return Identification(
        belief=belief,
        neighbours=neighbours,
        held_out=held_out,
        mean_error=mean,
        expected_error=expected,
        warnings=_warnings(dynamics, neighbours, held_out, expected=expected, mean=mean),
    )


def _distances(dynamics: Dynamics, latent: Any) -> np.ndarray:
    scale = np.sqrt(np.asarray(dynamics.latent_prior.variance))
    return np.sqrt(np.mean(((np.asarray(dynamics.latents) - np.asarray(latent)) / scale) ** 2, axis=1))


def _neighbours(model: Model, dynamics: Dynamics, latent: Float[Array, " latent"]) -> list[Neighbour]:
    distances = _distances(dynamics, latent)
    names = model.names or tuple(str(i) for i in range(len(distances)))
    return [Neighbour(names[i], float(distances[i])) for i in np.argsort(distances, kind="stable")]


def _warnings(
    dynamics: Dynamics, neighbours: list[Neighbour], held_out: Quality, *, expected: float, mean: float
) -> list[str]:
    found = []
    latents = np.asarray(dynamics.latents)
    if len(latents) > 2:
        own = [np.partition(_distances(dynamics, latent), 1)[1] for latent in latents]
        if neighbours[0].distance > DISTANCE_FACTOR * max(own):
            found.append(
                f"its latent is {neighbours[0].distance:.2g} standard deviations from the nearest known system; "
                f"known systems have a neighbour within {max(own):.2g}"
            )
    if held_out.error > max(ERROR_FACTOR * expected, GUESS_SHARE * mean):
        found.append(f"its prediction error is {held_out.error:.3g}, that of known systems {expected:.3g}")
    if held_out.coverage[-1] < LEAST_COVERAGE and held_out.rows >= LEAST:
        found.append(f"its {LEVELS[-1]:.0%} intervals hold only {held_out.coverage[-1]:.0%} of what came")
    return found
