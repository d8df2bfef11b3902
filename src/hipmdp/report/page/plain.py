"""Numbers as short JSON that may stand inside an HTML page, whatever names they come with."""

import json
import math
from typing import Any

import numpy as np

DIGITS = 6
"""Significant digits that are kept: more than any chart shows, and a third of the file's size."""


def plain(value: Any) -> Any:
    """Only what JSON has, with rounded numbers; what is not finite becomes null."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return _rounded(float(value))
    return int(value) if isinstance(value, np.integer) else value


def script_json(value: Any) -> str:
    """JSON for a `<script>` element: no name in the data can end the element or open another."""
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    # Inside JSON these three can only stand in strings, where the escaped form means the same.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
