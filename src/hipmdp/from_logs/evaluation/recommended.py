"""The recommended estimate: rollouts in the posterior, as far as they can be believed."""

from typing import NamedTuple

import numpy as np

from hipmdp.from_logs.evaluation.estimate import Both, Estimate, LoggedEpisodes, estimate_of
from hipmdp.from_logs.evaluation.rollouts import Values

WRONG = 2.0
"""Where what was earned lies so many lengths of the interval beyond it, the model is wrong …"""
MUCH = 0.5
"""… if that is more than this share of what was earned, too."""


class Recommended(NamedTuple):
    """An estimate, and whether to believe it."""

    value: Both
    draws: np.ndarray
    """Draws of the discounted value, as much further apart as the interval is longer."""
    disagreement: str
    """How the model is wrong about what was done; empty where it is not."""


def recommended(values: Values, repeated: Values, logged: LoggedEpisodes, discount: float) -> Recommended:
    """The rollouts' value; its interval is longer by what the model misses when it repeats what was `logged`."""
    found = []
    for draws, again, factor in (
        (values.means.discounted, repeated.means.discounted, discount),
        (values.means.undiscounted, repeated.means.undiscounted, 1.0),
    ):
        found.append(longer(estimate_of(draws), estimate_of(again), float(logged.returns(factor).mean())))
    predicted, earned = estimate_of(repeated.means.discounted), float(logged.returns(discount).mean())
    missed = _missed(predicted, earned)
    is_wrong = missed > WRONG * (predicted.high - predicted.low) and missed > MUCH * abs(earned)
    return Recommended(
        Both(*found),
        _apart(values.means.discounted, found[0]),
        f"the model is wrong about what was done: {predicted.value:.4g} instead of {earned:.4g}" if is_wrong else "",
    )


def longer(own: Estimate, predicted: Estimate, earned: float) -> Estimate:
    """`own`, as much less sure as `predicted` would have to be to hold what was `earned`.

    By the same factor, as values of good and bad policies can be decades apart; where signs differ, by that share.
    """
    if predicted.holds(earned):
        return own
    edge = predicted.low if earned < predicted.low else predicted.high
    numbers = np.asarray([earned, edge, own.low, own.value, own.high])
    if (numbers > 0).all() or (numbers < 0).all():
        factor = max(earned / edge, edge / earned)
        inner, outer = (own.low, own.high) if own.value > 0 else (own.high, own.low)
        ends = inner / factor, outer * factor
        return Estimate(own.value, min(ends), max(ends))
    share = _missed(predicted, earned) / max(abs(predicted.low), abs(predicted.high), abs(earned))
    by = share * max(abs(own.low), abs(own.high))
    return Estimate(own.value, own.low - by, own.high + by)


def _missed(predicted: Estimate, earned: float) -> float:
    return max(0.0, predicted.low - earned, earned - predicted.high)


def _apart(draws: np.ndarray, estimate: Estimate) -> np.ndarray:
    """The draws, each half stretched to its side of the interval."""
    raw = estimate_of(draws)
    below = _ratio(estimate.value - estimate.low, raw.value - raw.low)
    above = _ratio(estimate.high - estimate.value, raw.high - raw.value)
    away = draws - raw.value
    return np.asarray(estimate.value + away * np.where(away < 0, below, above))


def _ratio(longer: float, length: float) -> float:
    return longer / length if length > 0 else 1.0
