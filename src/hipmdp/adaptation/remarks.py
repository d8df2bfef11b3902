"""What a run says when something is not as it should be: a sentence each, with what to do."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hipmdp.settings.limits import Limits

UNSURE = 0.8
"""Share of the prior variance of w_b above which an episode has said little about the instance."""
SURPRISE, LEAST_SURPRISE = 3.0, 0.2
"""By how many standard deviations, and by what share of itself, a return must miss what was imagined."""


class Expected(NamedTuple):
    """The imagined return of a policy, over the greedy episodes by which policies are compared."""

    mean: float
    spread: float
    """Standard deviation."""


def surprise(value: float, expected: Expected | None) -> list[str]:
    """Whether a real return is far below what imagination expected of the policy."""
    if expected is None:
        return []
    missing = expected.mean - value
    if missing <= max(SURPRISE * expected.spread, LEAST_SURPRISE * abs(expected.mean)):
        return []
    imagined = f"{expected.mean:.4g} ± {expected.spread:.2g}"
    return [
        f"The policy earned {value:.4g} where imagination expected {imagined}: the model is wrong where that policy "
        "leads. Let the instance live more episodes; if it stays so, collect a batch with members more like it."
    ]


def uninformative(share: float | None) -> list[str]:
    """Whether w_b is nearly as uncertain after the first episode as before; `share` is that of the prior variance."""
    if share is None or share <= UNSURE:
        return []
    return [
        f"The first episode said little about the instance ({share:.0%} of the prior variance of its latent is left): "
        "the policy is one for the members that are still possible. An episode in which more happens tells more."
    ]


def broken_limits(limits: Limits, kept: Mapping[str, Any]) -> list[str]:
    """Where no action was allowed, and where limits were broken more often than they might be (`limits_kept`)."""
    decisions, allowed, broken = kept["decisions"], kept["decisions_allowed"], kept["broken_if_allowed"]
    found = []
    if allowed < decisions:
        found.append(
            f"In {decisions - allowed} of {decisions} decisions every action was predicted to break {limits} within "
            f"{limits.within} steps with a chance above {limits.risk:.3g}: the safest was taken."
        )
    if broken > limits.risk * allowed:
        found.append(
            f"After {broken} of the {allowed} other decisions {limits} was broken within {limits.within} steps, more "
            f"often than the risk of {limits.risk:.3g} allows: the model is wrong about this instance."
        )
    return found
