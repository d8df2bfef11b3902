"""Readable errors for what a user types: one sentence that says what, where, and what would be right."""

import difflib
import math
from collections.abc import Iterable
from typing import Any

LARGEST = 3.4e38
"""Everything is computed in float32."""


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
