"""What T̂ misses on one system: a function of (s, a) where the log shows it to be the same again, and chance otherwise.

    s' − s = T̂(s, a, w) + δ(s, a) + noise,  δ a Gaussian process, all standardised

An error that is the same whenever a system comes by adds up, where chance averages out. How smooth δ is, and how much
of what T̂ misses is chance, is what makes each part of the log most likely, given the other parts; where that cannot be
predicted, it is δ. Every future has a δ of its own that goes through the log: with a draw g of the process before the
log, from random cosines, δ = g + kᵀ K⁻¹ (y − T̂ − g − noise) over logged rows.
"""

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp._random import numpy_generator
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import Dynamics, Rows, padded
from hipmdp.from_logs.evaluation.parts import ACTIONS_APART, left_out, likeness, spread_out
from hipmdp.imagination.contexts import Context

MOST_ROWS, SOME_ROWS, COSINES = 400, 250, 200
"""Rows of the log behind δ, behind the choice of its length and noise; cosines of a draw."""
LENGTHS, NOISES = (0.5, 1.0, 2.0, 4.0), (0.03, 0.3, 3.0, 30.0)
"""Tried: how far errors are alike, in spreads of the states; variance of the noise, in that of δ."""
BLOCK, FAR = 100, 1e4
"""Numbers of rows share a compilation by blocks; where rows stand that only fill up."""
AS_LIKELY = 2.0
"""Log likelihood by which more noise must be better."""
FREEDOM = 3
"""Degrees of freedom of the size of δ."""
KNOWN_ROWS = 10
"""Rows that the error of the belief counts as."""


class Misfit(NamedTuple):
    """δ of all futures."""

    rows: Float[Array, "rows inputs"]
    """Logged (s, a), in units of the length."""
    directions: Float[Array, "inputs cosines"]
    phases: Float[Array, " cosines"]
    length: Float[Array, ""]
    scale: Float[Array, " state"]
    """Spread of δ."""
    noise: Float[Array, " state"]
    """Spread of the noise."""

    def __call__(self, inputs: Float[Array, " inputs"], drawn: "DrawnMisfit") -> Float[Array, " state"]:
        """δ of one future, standardised."""
        place = inputs / self.length
        like = jnp.exp(-0.5 * jnp.sum((self.rows - place[None]) ** 2, axis=1))
        waves = jnp.cos(place @ self.directions + self.phases)
        return self.scale * (waves @ drawn.before + like @ drawn.weights)


class DrawnMisfit(NamedTuple):
    """What is different from future to future; with a leading axis for all of them."""

    before: Float[Array, "*futures cosines state"]
    """g: coefficients of the cosines."""
    weights: Float[Array, "*futures rows state"]
    """K⁻¹ (y − T̂ − g − noise)."""


def misfit_inputs(dynamics: Dynamics, state: Float[Array, " state"], action: Int[Array, ""]) -> Float[Array, " inputs"]:
    """s and a in spreads of all logs; angles on a circle."""
    angles = np.asarray(dynamics.specification.angles)
    features = dynamics.scaling.features(state, action, dynamics.specification.action_count)
    size = len(angles)
    place = features[:size][~angles], jnp.sin(state[angles]), jnp.cos(state[angles])
    return jnp.concatenate([*place, ACTIONS_APART * features[size:]])


def fit_misfit(
    dynamics: Dynamics,
    contexts: Context,
    latent: Float[Array, " latent"],
    log: Transitions,
    part: np.ndarray,
    known: np.ndarray,
    *,
    key: PRNGKeyArray,
) -> tuple[Misfit, DrawnMisfit]:
    """Through what `log` says, whose rows are in these parts; `known` is the variance of their errors without it."""
    columns = log.specification.from_origin(log.state), log.action, dynamics.rows(log)
    used = spread_out(len(part), MOST_ROWS)
    filled = -(-len(used) // BLOCK) * BLOCK
    chosen = padded(jax.tree.map(lambda leaf: np.asarray(leaf)[used], columns), filled)
    inputs, middle, each = (np.asarray(part, np.float64) for part in _missed(dynamics, contexts, latent, *chosen))
    inputs, middle, each = inputs[: len(used)], middle[: len(used)], each[:, : len(used)]
    length, noise, variance = _shape(inputs, middle, part[used], known)
    generator, futures = numpy_generator(key), len(each)
    directions, phases = generator.standard_normal((inputs.shape[1], COSINES)), generator.uniform(0, 2 * np.pi, COSINES)
    # Away from its log T̂ may be worse than on it: the size of δ is itself not known (a t distribution).
    size = np.sqrt(FREEDOM / generator.chisquare(FREEDOM, (futures, 1, 1)))
    before = size * generator.standard_normal((futures, COSINES, middle.shape[1])) * np.sqrt(2 / COSINES)
    waves = np.cos(inputs / length @ directions + phases)
    chance = size * np.sqrt(noise) * generator.standard_normal(each.shape)
    inverse = np.linalg.inv(likeness(inputs / length) + noise * np.eye(len(inputs)))
    left = each / np.sqrt(variance) - waves @ before - chance
    weights = np.moveaxis(np.tensordot(inverse, left, axes=(1, 1)), 0, 1)
    more = filled - len(used)
    rows = np.pad(inputs / length, ((0, more), (0, 0)), constant_values=FAR)
    numbers = (rows, directions, phases, length, np.sqrt(variance), np.sqrt(noise * variance))
    drawn = before, np.pad(weights, ((0, 0), (0, more), (0, 0)))
    misfit, each_drawn = (tuple(jnp.asarray(value, jnp.float32) for value in parts) for parts in (numbers, drawn))
    return Misfit(*misfit), DrawnMisfit(*each_drawn)


@eqx.filter_jit
def _missed(dynamics: Dynamics, contexts: Context, latent: Array, state: Array, action: Array, rows: Rows) -> Any:
    """Inputs of δ, and y − T̂: [row, state] at the mean weights and `latent`, [future, row, state]."""
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, None))

    def one(weights: Array, latent: Array) -> Array:
        predicted = jax.vmap(over_rows, in_axes=(0, None, None))(weights, rows.features, latent)
        return rows.target - jnp.mean(predicted, axis=0)

    inputs = jax.vmap(misfit_inputs, in_axes=(None, 0, 0))(dynamics, state, action)
    return inputs, one(dynamics.posterior.mean[None], latent), jax.vmap(one)(contexts.weights, contexts.latent)


def _shape(
    inputs: np.ndarray, errors: np.ndarray, part: np.ndarray, known: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """(length, noise, variance of δ per dimension)."""
    few = spread_out(len(part), SOME_ROWS)
    found = []
    for length, noise in itertools.product(LENGTHS, NOISES):
        density, variance = _likely(inputs[few] / length, errors[few], part[few], noise, known)
        found.append((density, length, noise, variance))
    best = max(density for density, *_ in found)
    # The least noise of those that are about as likely, and of these the most likely.
    near = [shape for shape in found if shape[0] >= best - AS_LIKELY]
    least = min(noise for _, _, noise, _ in near)
    _, length, noise, variance = max((shape for shape in near if shape[2] == least), key=lambda shape: shape[0])
    return length, noise, variance


def _likely(
    places: np.ndarray, errors: np.ndarray, part: np.ndarray, noise: float, known: np.ndarray
) -> tuple[float, np.ndarray]:
    """(log density of the errors of each part given the others, variance of δ per dimension)."""
    away, variances = left_out(likeness(places) + noise * np.eye(len(places)), errors, part)
    variances = np.maximum(variances, noise)
    count = len(away)
    # Far from all rows no less than what T̂ misses on them.
    predicted = np.maximum(np.sum(away**2 / variances[:, None], axis=0), np.sum(errors**2, axis=0) / (1 + noise))
    variance = np.maximum((predicted + KNOWN_ROWS * known / (1 + noise)) / (count + KNOWN_ROWS), 1e-14)
    scaled = variance * variances[:, None]
    return float(-0.5 * np.sum(np.log(scaled) + away**2 / scaled)), variance
