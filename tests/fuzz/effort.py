"""How many examples property tests take: a fixed small share in the suite, more in `make fuzz`."""

import os

FACTOR = int(os.environ.get("HIPMDP_FUZZ", "1"))


def examples(count: int) -> int:
    """So many examples in the suite; `HIPMDP_FUZZ` times as many in `make fuzz`."""
    return count * FACTOR
