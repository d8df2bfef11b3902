"""Better than what was done, worse, or not to be told, and why."""

from typing import NamedTuple

import numpy as np

from hipmdp.from_logs.evaluation.estimate import LEVEL, Estimate

BETTER, WORSE, UNKNOWN = "better", "worse", "cannot tell"
LEAST_EPISODES = 2
"""Complete episodes, below which what was done has no value of its own."""
MOST_UNSUPPORTED = 0.25
"""Share of imagined steps that nobody has tried, beyond which rollouts are no evidence."""
LEAST_EFFECTIVE = 3.0
"""Episodes' worth of weight, from which on importance sampling may contradict the model."""


class Verdict(NamedTuple):
    """Whether the policy is better than what was done."""

    word: str
    reasons: tuple[str, ...]
    """Why it cannot be told."""


def verdict(
    difference: np.ndarray,
    *,
    complete: int,
    unsupported: float,
    disagreement: str,
    value: Estimate,
    weighted: Estimate,
    effective: float,
) -> Verdict:
    """`difference` are draws of the policy's value minus that of what was done."""
    reasons = []
    if complete < LEAST_EPISODES:
        reasons.append(f"too little data: {complete} logged episodes went on to their end, {LEAST_EPISODES} are needed")
    if unsupported > MOST_UNSUPPORTED:
        reasons.append(f"no support: {unsupported:.0%} of what it would do has not been tried near such states")
    if disagreement:
        reasons.append(disagreement)
    apart = weighted.is_finite and (weighted.high < value.low or weighted.low > value.high)
    if apart and effective >= LEAST_EFFECTIVE:
        reasons.append("the model and importance sampling disagree")
    if reasons:
        return Verdict(UNKNOWN, tuple(reasons))
    low, high = np.quantile(difference, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    if low > 0:
        return Verdict(BETTER, ())
    if high < 0:
        return Verdict(WORSE, ())
    return Verdict(UNKNOWN, (f"the {LEVEL:.0%} interval of the difference holds zero",))
