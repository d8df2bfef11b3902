"""What has been tried near a state: by the systems that a model knows, and by this one."""

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.data.support import Support
from hipmdp.data.transitions import Transitions
from hipmdp.pretraining.model import Model

LOOKED_AT = 500
"""Steps whose support is asked for, at most."""


def log_support(model: Model, log: Transitions, *, key: PRNGKeyArray) -> Support:
    """A sample of both."""
    own = Support.sample(log, key=key)
    return own if model.support is None else model.support.joined(own)


def unsupported_share(support: Support, model: Model, states: np.ndarray, actions: np.ndarray) -> float:
    """Share of steps further from what was tried than `Support.reach`; states are from the specification's origin."""
    spread, count = np.asarray(model.scale), model.specification.action_count
    chosen = np.linspace(0, len(actions) - 1, min(LOOKED_AT, len(actions))).astype(np.int64)
    gaps = [support.distances(states[i], spread, count)[actions[i]] for i in chosen]
    return float(np.mean(np.asarray(gaps) > support.reach(spread)))
