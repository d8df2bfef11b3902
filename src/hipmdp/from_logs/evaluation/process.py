"""A Gaussian process through the rewards of logged steps: (s, a, s') ↦ arsinh(r / unit).

arsinh is linear below the unit and logarithmic above it, as rewards may span many powers of ten. Of some units,
lengths and noises those count that make the rewards of each part of the log most likely, given the other parts; the
amplitude is what these errors say.
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hipmdp.from_logs.evaluation.parts import left_out, likeness, spread_out

MOST_ROWS, SOME_ROWS = 400, 200
"""Rows of the log behind the process, and behind the choice of its unit, length and noise."""
LENGTHS, NOISES = (0.5, 1.0, 2.0, 4.0, 8.0), (1e-4, 1e-3, 1e-2, 0.1, 1.0)
"""Tried: how far steps earn alike, in spreads of the states; variance of the noise, in that of the rewards."""
UNITS = (0.01, 0.1, 0.5, 1.0)
"""Tried: quantiles of the logged |r|."""
SMALL = 0.1
"""Share of the rewards that are small."""
LEAST_VARIANCE = 0.05**2
"""Of arsinh(r / unit) over ends: what one of them may pay differently, though all that were logged paid alike."""
END_LENGTH = 4.0
"""Ends are alike that many times as far as other steps."""
BLOCK, FAR = 50, 1e4
"""Numbers of rows share a compilation by blocks; where rows stand that only fill up."""


class Process(eqx.Module):
    """The mean of arsinh(r / unit) is level + kᵀ K⁻¹ y, and its variance amplitude · (1 + noise − kᵀ K⁻¹ k).

    With K = L Lᵀ both need L⁻¹ k alone, which float32 can bear where K⁻¹ would lose the digits.
    """

    rows: Float[Array, "rows inputs"]
    """In units of the length."""
    whitener: Float[Array, "rows rows"]
    """L⁻¹; zero for rows that only fill up."""
    target: Float[Array, " rows"]
    """L⁻¹ y; likewise."""
    length: Float[Array, ""]
    level: Float[Array, ""]
    amplitude: Float[Array, ""]
    noise: Float[Array, ""]
    unit: Float[Array, ""]
    small: Float[Array, ""]
    """A small reward, where signs change and arsinh bends most."""
    small_spread: Float[Array, ""]
    """The least spread of such: what those of each part were off by, predicted from the others."""
    family_error: Float[Array, ""]
    """How far the family's r̂ is from the logged rewards, in units of |r̂| + `family_unit`."""
    family_unit: Float[Array, ""]

    def __call__(self, inputs: Float[Array, " inputs"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """The reward of a step, and its spread."""
        like = jnp.exp(-0.5 * jnp.sum((self.rows - (inputs / self.length)[None]) ** 2, axis=1))
        white = self.whitener @ like
        mean = self.level + white @ self.target
        known = jnp.clip(white @ white, 0, 1)
        spread = jnp.sinh(jnp.minimum(jnp.sqrt(self.amplitude * (1 + self.noise - known)), 20.0))
        # Where no row is near, it says nothing: what is far away may pay what nobody has seen in this log.
        spread = self.unit * jnp.cosh(mean) * spread * jax.lax.rsqrt(jnp.maximum(known, 1e-12))
        reward = self.unit * jnp.sinh(mean)
        least = self.small_spread * self.small / jnp.maximum(jnp.abs(reward), self.small)
        return reward, jnp.hypot(spread, least)


class _Shape(NamedTuple):
    """What a process is before it has seen rows."""

    unit: float
    length: float
    noise: float


def fit_process(
    inputs: np.ndarray, reward: np.ndarray, family: np.ndarray, family_unit: float, *, part: np.ndarray
) -> Process | None:
    """Through at most `MOST_ROWS` of the rows, `part` of the log by part; None where there are none. `family` is r̂."""
    if len(reward) == 0:
        return None
    few, used = (spread_out(len(reward), most) for most in (SOME_ROWS, MOST_ROWS))
    paid = np.abs(reward[reward != 0])
    units = sorted({float(q) for q in np.quantile(paid, UNITS)}) if len(paid) else [1.0]
    tried = (_Shape(*values) for values in itertools.product(units, LENGTHS, NOISES))
    shape = max(tried, key=lambda shape: _left_out(inputs[few], reward[few], part[few], shape).density)
    left = _left_out(inputs[used], reward[used], part[used], shape)
    error = _family_error(reward, family, family_unit)
    return _through(inputs[used], reward[used], shape, left, error, family_unit)


def fit_ends(
    inputs: np.ndarray, reward: np.ndarray, family: np.ndarray, family_unit: float, *, like: Process | None
) -> Process | None:
    """Through the few rows in which episodes ended: an end pays what others paid, near ones first."""
    if len(reward) == 0:
        return None
    used = spread_out(len(reward), MOST_ROWS)
    unit = float(np.median(np.abs(reward))) or 1.0
    length = END_LENGTH * (LENGTHS[2] if like is None else float(like.length))
    shape = _Shape(unit, length, 0.1)
    left = _Left(0.0, max(float(np.var(np.arcsinh(reward / unit))), LEAST_VARIANCE), 1.0, 0.0)
    error = _family_error(reward, family, family_unit)
    return _through(inputs[used], reward[used], shape, left, error, family_unit)


def _family_error(reward: np.ndarray, family: np.ndarray, unit: float) -> float:
    """Root mean square, without the worst hundredth."""
    errors = ((reward - family) / (unit + np.abs(family))) ** 2
    return float(np.sqrt(np.mean(np.minimum(errors, np.quantile(errors, 0.99)))))


def _covariance(inputs: np.ndarray, shape: _Shape) -> np.ndarray:
    return likeness(inputs / shape.length) + shape.noise * np.eye(len(inputs))


class _Left(NamedTuple):
    """How the rewards of each part of the log are predicted from the others."""

    density: float
    """Their log density."""
    amplitude: float
    small: float
    """Size of small rewards …"""
    small_spread: float
    """… and their root mean square error."""


def _left_out(inputs: np.ndarray, reward: np.ndarray, part: np.ndarray, shape: _Shape) -> _Left:
    y = np.arcsinh(reward / shape.unit)
    errors, variances = left_out(_covariance(inputs, shape), (y - y.mean())[:, None], part)
    errors, variances = errors[:, 0], np.maximum(variances, shape.noise)
    # Far from all rows no less than what rewards differ by.
    amplitude = max(float(np.mean(errors**2 / variances)), float(np.var(y)) / (1 + shape.noise), LEAST_VARIANCE**2)
    density = -0.5 * np.sum(np.log(amplitude * variances) + np.log(reward**2 + shape.unit**2))
    small = max(float(np.quantile(np.abs(reward), SMALL)), shape.unit * 1e-6)
    # Errors that would leave every range say nothing about small rewards.
    predicted = shape.unit * np.sinh(np.clip(y - errors, y.min(), y.max()))
    wrong = (reward - predicted)[np.abs(reward) <= small]
    return _Left(float(density), amplitude, small, float(np.sqrt(np.mean(wrong**2))) if len(wrong) else 0.0)


def _through(
    inputs: np.ndarray, reward: np.ndarray, shape: _Shape, left: _Left, error: float, family_unit: float
) -> Process:
    y = np.arcsinh(reward / shape.unit)
    level = float(y.mean())
    whitener = np.linalg.inv(np.linalg.cholesky(_covariance(inputs, shape)))
    target = whitener @ (y - level)
    more = -len(y) % BLOCK
    numbers = (shape.length, level, left.amplitude, shape.noise, shape.unit, *left[2:], error, family_unit)
    return Process(
        jnp.asarray(np.pad(inputs / shape.length, ((0, more), (0, 0)), constant_values=FAR), jnp.float32),
        jnp.asarray(np.pad(whitener, ((0, more), (0, more))), jnp.float32),
        jnp.asarray(np.pad(target, (0, more)), jnp.float32),
        *(jnp.asarray(number, jnp.float32) for number in numbers),
    )
