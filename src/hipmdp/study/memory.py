"""How much memory this process has needed."""

import importlib.util
import sys


def peak_gb() -> float:
    """The most it ever had, in GiB; NaN where the system does not say (Windows)."""
    if importlib.util.find_spec("resource") is None:
        return float("nan")
    import resource

    # Kilobytes on Linux, bytes on macOS.
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
