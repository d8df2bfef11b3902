"""What `learn_policy` starts from: a method, the specification of its data, and what that method has learned so far.

Dynamics models join later; `model_free` starts from standardisation alone, `blind` from one policy for all.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp.control.config import DDQNConfig
from hipmdp.control.network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.families.checks import known_name
from hipmdp.families.specification import Specification

METHODS = ("model_free", "blind")
"""The methods that `learn_policy` knows so far."""


@dataclass(frozen=True)
class Model:
    """A method and what it brings along to a new instance."""

    method: str
    specification: Specification
    centre: tuple[float, ...]
    """Mean of each state dimension in the batch."""
    scale: tuple[float, ...]
    """Standard deviation of each state dimension in the batch."""
    policy: QNetwork | None = None
    """`blind`: the Q-network trained across the training instances."""

    def new_network(self, config: DDQNConfig, key: PRNGKeyArray) -> QNetwork:
        """An untrained Q-network that standardises as the batch says."""
        centre, scale = (jnp.asarray(v, jnp.float32) for v in (self.centre, self.scale))
        return QNetwork(centre, scale, self.specification.action_count, config.hidden, key=key)


def pretrain(batch: Transitions, method: str = "model_free", seed: int = 0) -> Model:
    """What a method learns from the batch 𝒟 before it meets a new instance.

    `model_free` takes only the standardisation: its network starts untrained, as in the paper.
    """
    known_name("method of pretrain", method, ("model_free",))
    if len(batch) < 2:
        raise ValueError(f"pretrain needs at least two transitions, got {len(batch)}.")
    mean, spread = batch.state.mean(axis=0, dtype=np.float64), batch.state.std(axis=0, dtype=np.float64)
    # A dimension that never changes says nothing; dividing by its spread would only blow up rounding.
    spread = np.where(spread > 1e-6, spread, 1.0)
    return Model(method, batch.specification, tuple(mean.tolist()), tuple(spread.tolist()))
