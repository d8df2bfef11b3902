"""Imagination proposes, life decides: which of the policies so far to live by."""

from collections.abc import Sequence

import numpy as np

CLEARLY = 2.0
"""Standard errors by which one policy must have lived better than another."""


def best_lived(policies: Sequence[int], returns: Sequence[float], newest: int) -> int:
    """`newest`, unless earlier policies have clearly lived better: then the one of those with the highest mean return.

    Episode i was lived by policy `policies[i]` (counted from 1; 0: before the first tuning) and returned `returns[i]`.
    Policies c and n differ clearly where x̄_c − x̄_n > 2 s √(1/n_c + 1/n_n), with s² the variance within policies,
    pooled over all of them. A policy that has not been lived by is always tried; where none has been lived by twice,
    nothing is clear.
    """
    who, values = np.asarray(policies), np.asarray(returns, np.float64)
    lived = {number: values[who == number] for number in range(1, newest + 1) if np.any(who == number)}
    freedom = sum(len(own) - 1 for own in lived.values())
    if newest not in lived or freedom == 0:
        return newest
    variance = sum(float(np.sum((own - own.mean()) ** 2)) for own in lived.values()) / freedom
    own, mean = lived[newest], {number: float(values.mean()) for number, values in lived.items()}

    def is_clear(number: int) -> bool:
        error = np.sqrt(variance * (1 / len(lived[number]) + 1 / len(own)))
        return bool(mean[number] - mean[newest] > CLEARLY * error)

    return max(filter(is_clear, lived), key=mean.__getitem__, default=newest)
