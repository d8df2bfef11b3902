"""Better than what was done, worse, or unknown, and why."""

from typing import NamedTuple

import numpy as np

from hipmdp.from_logs.evaluation.estimate import Estimate, interval_of

BETTER, WORSE, UNKNOWN, DONE = "better", "worse", "cannot tell", "what was done"
MOST_UNSUPPORTED = 0.25
"""Share of imagined steps that nobody has tried, beyond which rollouts are no evidence."""
LEAST_EFFECTIVE = 3.0
"""Episodes' worth of weight, from which on importance sampling may contradict the model."""
MOST_DRAWS = 200
"""Of what was done: every one is compared with every draw of the policy's value."""


class Evidence(NamedTuple):
    """What a verdict rests on."""

    draws: np.ndarray
    """Of the policy's value …"""
    logged_draws: np.ndarray
    """… and of that of what was done."""
    logged: Estimate
    episodes: int
    """Complete ones, behind `logged`."""
    unsupported: float
    """Share of what the policy would do that has not been tried."""
    disagreement: str
    """How the model is wrong about what was done; empty where it is not."""
    estimate: Estimate
    """The recommended one."""
    weighted: Estimate
    """By importance sampling."""
    effective: float
    """Episodes' worth of its weight."""


class Verdict(NamedTuple):
    """Whether the policy is better than what was done."""

    word: str
    reasons: tuple[str, ...]
    """Why it cannot be known."""


def verdict(evidence: Evidence) -> Verdict:
    """Better or worse where the 90 % interval of the difference says so and nothing speaks against the model."""
    reasons = _reasons(evidence)
    if not reasons:
        some = evidence.logged_draws[:MOST_DRAWS]
        low, high = interval_of(np.subtract.outer(evidence.draws, some))
        if low > 0 or high < 0:
            return Verdict(BETTER if low > 0 else WORSE, ())
        reasons = [_overlap(evidence)]
    return Verdict(UNKNOWN, tuple(reasons))


def _reasons(evidence: Evidence) -> list[str]:
    """What makes the interval of the difference worthless."""
    reasons = []
    if not evidence.episodes:
        reasons.append("too little data: no logged episode went on to its end, or to the time limit")
    if evidence.unsupported > MOST_UNSUPPORTED:
        share = f"{evidence.unsupported:.0%}"
        reasons.append(f"no support: {share} of what the policy would do has not been tried near such states")
    if evidence.disagreement:
        reasons.append(evidence.disagreement)
    weighted, estimate = evidence.weighted, evidence.estimate
    apart = weighted.is_finite and (weighted.high < estimate.low or weighted.low > estimate.high)
    if apart and evidence.effective >= LEAST_EFFECTIVE:
        reasons.append("the model and importance sampling disagree")
    return reasons


def _overlap(evidence: Evidence) -> str:
    """Which of the two is not known well enough."""
    own, logged = evidence.estimate, evidence.logged
    if logged.high - logged.low > own.high - own.low:
        few = "1 episode" if evidence.episodes == 1 else f"{evidence.episodes} episodes"
        return f"too little data: after {few}, what was done may be worth {logged.low:.4g} to {logged.high:.4g}"
    return (
        f"the policy may be worth {own.low:.4g} to {own.high:.4g}, what was done {logged.low:.4g} to {logged.high:.4g}"
    )
