"""Which of several policies is kept: every rule of the library."""

from collections.abc import Sequence

import numpy as np

STANDARD_ERRORS = 2.0
"""By how many standard errors a policy's real returns must be better than another's to be clearly better."""

CLEARLY = 0.1
"""Share of a return by which another must exceed it to be clearly higher."""
RISE = 0.01
"""Share of a return by which it must rise in a round of learning for another round to follow."""


def is_better(value: float, best: float) -> bool:
    """In imagination and in searches: a higher mean return; a tie keeps the policy there is."""
    return value > best


def has_risen(value: float, before: float) -> bool:
    """Whether a return has risen by more than a hundredth of its size: otherwise learning on is not worth its time.

    Before the first one there is −∞.
    """
    return before == -np.inf or value - before > RISE * max(abs(value), abs(before))


def by_rank(returns: np.ndarray) -> int:
    """The row of (policies, instances) with the best mean rank: returns of instances differ by powers of ten."""
    beaten = (returns[:, None, :] > returns[None, :, :]).mean(axis=(1, 2))
    return _last_argmax(beaten)


def by_scaled_mean(returns: np.ndarray) -> int:
    """The row of (policies, instances) with the highest mean, each instance's returns scaled to [0, 1].

    Ranks would cure different scales too, but prefer a policy that is a little faster on most instances and gets stuck
    on one.
    """
    low, high = returns.min(axis=0), returns.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return _last_argmax(np.mean((returns - low) / width, axis=1))


def _last_argmax(values: np.ndarray) -> int:
    """The last of equals: of policies that are equally good where they were evaluated, it has learned longest."""
    return len(values) - 1 - int(np.argmax(values[::-1]))


def by_evidence(policies: Sequence[int], returns: Sequence[float], newest: int, imagined: float) -> int:
    """`newest`, or the earlier policy that has earned most, where that is clearly more than `newest` is worth.

    Episode i was controlled by policy `policies[i]` and returned `returns[i]`. A policy is worth the mean of its real
    returns; `newest` before its first episode is worth its imagined return. What differs by less than a tenth does not
    differ clearly: the newest has learned from most episodes.
    """
    index, values = np.asarray(policies), np.asarray(returns, np.float64)
    earned = {number: float(values[index == number].mean()) for number in set(policies) if number <= newest}
    best = max((number for number in earned if number != newest), key=earned.__getitem__, default=newest)
    if best == newest:
        return newest
    worth, other = earned.get(newest, imagined), earned[best]
    return best if other - worth > CLEARLY * max(abs(other), abs(worth)) else newest


def by_real_return(policies: Sequence[int], returns: Sequence[float], newest: int) -> int:
    """`newest`, unless earlier policies were clearly better in real episodes: then the best of those.

    Episode i was controlled by policy `policies[i]` (counted from 1; 0: before the first tuning) and returned
    `returns[i]`. Policies c and n differ clearly where x̄_c − x̄_n > 2 s √(1/n_c + 1/n_n), with s² the variance within
    policies, pooled over all of them. A policy without a real episode is always tried; where none has two, nothing is
    clear.
    """
    index, values = np.asarray(policies), np.asarray(returns, np.float64)
    by_policy = {number: values[index == number] for number in range(1, newest + 1) if np.any(index == number)}
    freedom = sum(len(own) - 1 for own in by_policy.values())
    if newest not in by_policy or freedom == 0:
        return newest
    variance = sum(float(np.sum((own - own.mean()) ** 2)) for own in by_policy.values()) / freedom
    own, mean = by_policy[newest], {number: float(values.mean()) for number, values in by_policy.items()}

    def is_clear(number: int) -> bool:
        error = np.sqrt(variance * (1 / len(by_policy[number]) + 1 / len(own)))
        return bool(mean[number] - mean[newest] > STANDARD_ERRORS * error)

    return max(filter(is_clear, by_policy), key=mean.__getitem__, default=newest)
