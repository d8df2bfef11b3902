"""Settings with which everything runs and nothing is learned well."""

from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.pqn import PQNConfig


def tiny_policy(**changes):
    """Q(s, w) after a few steps."""
    pqn = PQNConfig(hidden=(8,), groups=2, members=2, steps_per_phase=4, minibatches=2, epochs=1)
    return AmortiseConfig(pqn, steps=64, pools=2, **changes)
