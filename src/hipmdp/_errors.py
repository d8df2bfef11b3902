"""Readable errors for what a user types: one sentence that says what, where, and what would be right."""

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any

LARGEST = 3.4e38
"""Everything is computed in float32."""
LARGEST_SEED = 2**63 - 1
"""Seeds are stored as 64-bit integers."""
MOST_EPISODES = 1_000_000
"""Episodes of one run, real or imagined."""
MOST_STEPS = 100_000_000
"""Steps of one run, all of which stay in memory."""
MOST_SEEDS = 10_000
"""Repetitions of a study."""
MOST_JOBS = 1_024
"""Processes or threads side by side."""
_SHOWN = 40
"""Characters of a value that an error repeats."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`" Did you mean 'acrobot'?"` when something known is close to `name`, otherwise nothing."""
    known = list(known)
    lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(str(name).lower(), lower, n=1, cutoff=0.5)
    return f" Did you mean {lower[close[0]]!r}?" if close else ""


def known_name(kind: str, name: Any, known: Iterable[str]) -> str:
    """Return `name` if it is one of `known`, otherwise raise a `ValueError` that names the nearest."""
    known = list(known)
    if isinstance(name, str) and name in known:
        return name
    raise ValueError(f"Unknown {kind} {name!r}.{nearest(str(name), known)} Known: {', '.join(known)}.")


def number(kind: str, name: str, value: Any) -> float:
    """`value` as a finite float, otherwise a `ValueError` that names it."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{kind} {name!r} must be a number, got {value!r}.") from None
    if not abs(result) <= LARGEST:
        raise ValueError(f"{kind} {name!r} must be finite, got {result:g}.")
    return result


def in_range(kind: str, name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    """`value` as a float within `[low, high]` (`(low, high]` if `open_low`), otherwise a `ValueError`."""
    result = number(kind, name, value)
    if result < low or result > high or (open_low and result == low):
        if high == math.inf:
            rule = f"greater than {low:g}" if open_low else f"at least {low:g}"
        else:
            rule = f"in {'(' if open_low else '['}{low:g}, {high:g}]"
        raise ValueError(f"{kind} {name!r} must be {rule}, got {result:g}.")
    return result


def whole(name: str, value: Any, low: int = 1, high: int = MOST_EPISODES) -> int:
    """`value` as an int within `[low, high]`, otherwise a `ValueError` that names it."""
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be a whole number, got {_short(value)}.") from None
    if result < low:
        raise ValueError(f"{name} must be at least {low}, got {_short(result)}.")
    if result > high:
        raise ValueError(f"{name} must be at most {high}, got {_short(result)}.")
    return result


def check_seed(seed: Any) -> int:
    """`seed` as an int from 0 to 2⁶³ − 1, otherwise a `ValueError`."""
    return whole("seed", seed, 0, LARGEST_SEED)


def check_episodes(episodes: Any, horizon: int = 1, name: str = "episodes") -> int:
    """`episodes` as a count of episodes of `horizon` steps whose transitions fit into memory."""
    count = whole(name, episodes)
    if count * horizon > MOST_STEPS:
        raise ValueError(
            f"{name} must be at most {max(1, MOST_STEPS // horizon)} where an episode has {horizon} steps, got {count}."
        )
    return count


def check_jobs(jobs: Any, name: str = "jobs") -> int | None:
    """`jobs` as a count of processes or threads; None: the number of cores."""
    return None if jobs is None else whole(name, jobs, 1, MOST_JOBS)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
