"""In which units numbers can be learned: how large, how far from zero, how slow. All rules, in float64 on the host.

Everything hot computes in float32, which has powers of ten enough (1e-38 to 1e38), but only seven digits: a column that
is far from zero beside its spread must be measured from an origin of its own, or it loses what it says.
"""

import math

import numpy as np

LARGEST_VALUE = 1e42
"""A spread of 1e30 may lie 1e9 spreads from zero."""
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-32, 1e32
"""1e-30 to 1e30 are promised. Beyond, rare values or slow changes would leave the range of float32."""
FURTHEST = 1e11
"""A column may lie so many spreads from zero: float64 then still tells a hundred-thousandth of a spread."""
FURTHEST_SINGLE = 1e5
"""The same for numbers that are computed in float32 as they are: it then still tells a hundredth of a spread."""
SLOWEST = 1e-6
"""Changes below this share of the distance from the origin vanish when float32 adds them to a state."""
NEAR = 10.0
"""A column that lies no further from zero than so many of its spreads needs no origin …"""
NEAR_CHANGES = 1000.0
"""… and neither does one that is no further from zero than so many of its typical changes."""

_ROUNDING, _ROUNDING_SINGLE = 1e-12, 2.5e-7
_RANGE = "spreads from 1e-30 to 1e30 can be learned"


def rounding(values: np.ndarray) -> np.ndarray:
    """Below this a column's spread is rounding: of float32 if all its numbers are such, otherwise of float64."""
    return np.where(is_single(values), _ROUNDING_SINGLE, _ROUNDING) * np.abs(values).max(axis=0, initial=0.0)


def is_single(values: np.ndarray) -> np.ndarray:
    """Whether all numbers of a column are float32 numbers."""
    with np.errstate(over="ignore"):
        return np.asarray(np.all(values == values.astype(np.float32), axis=0))


def origin_of(states: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Where each column is measured from: zero, or a round number near its mean where it lies far from zero."""
    centre, spread, change = states.mean(axis=0), states.std(axis=0), typical(changes)
    finest = np.where(change > 0, np.minimum(change, spread), spread)
    near = np.abs(centre) <= np.maximum(NEAR * spread, NEAR_CHANGES * finest)
    return np.asarray([0.0 if n else _round(c, s) for n, c, s in zip(near, centre, spread, strict=True)])


def _round(value: float, spread: float) -> float:
    """`value` to the digit of its spread."""
    return round(float(value), -math.floor(math.log10(spread))) if spread > 0 else float(value)


def typical(changes: np.ndarray) -> np.ndarray:
    """Root mean square of each column."""
    largest = np.abs(changes).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return unit * np.sqrt(np.mean((changes / unit) ** 2, axis=0)) if len(changes) else largest


def reward_unit(rewards: np.ndarray) -> float:
    """The mean of |r| where there is a reward, but at most ten medians: rewards may span many powers of ten."""
    paid = np.abs(rewards[rewards != 0])
    return min(float(np.mean(paid)), 10 * float(np.median(paid))) if len(paid) else 1.0


def column_fault(values: np.ndarray, changes: np.ndarray) -> str | None:
    """What makes a column of a log impossible to learn, in float64; None: nothing. To follow "Column 'x' "."""
    spread, level = float(values.std()), float(np.abs(values).max())
    fault = spread_fault(spread)
    if fault is not None:
        return fault
    if level > FURTHEST * spread:
        return f"varies by {spread:.2g} around {values.mean():.6g}: subtract its level, or give it in other units"
    change = float(typical(changes[:, None])[0])
    width = float(np.abs(values - values.mean()).max())
    if 0 < change < SLOWEST * width:
        return (
            f"changes by {change:.2g} in a step, too little beside its range of {2 * width:.2g}: give it in other "
            "units, say from where each episode begins"
        )
    return None


def spread_fault(spread: float) -> str | None:
    """What is wrong with a spread, to follow a column's name."""
    if SMALLEST_SPREAD <= spread <= LARGEST_SPREAD:
        return None
    return f"has a spread of {spread:.2g}: give it in other units ({_RANGE})"


def single_fault(values: np.ndarray) -> str | None:
    """What makes a column impossible to compute with in float32 as it is; None: nothing. A constant one is harmless."""
    spread, level = float(values.std()), float(np.abs(values).max())
    if spread <= float(rounding(values[:, None])[0]):
        return None if level <= LARGEST_SPREAD else f"is {level:.2g}: give it in other units"
    fault = spread_fault(spread)
    if fault is not None or level <= FURTHEST_SINGLE * spread:
        return fault
    return f"varies by {spread:.2g} around {values.mean():.6g}, which float32 cannot tell apart: give it in other units"
