"""The record of one `learn_policy` run."""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.control.network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.families.family import Theta
from hipmdp.families.rollout import Environment
from hipmdp.transfer.config import TransferConfig
from hipmdp.transfer.model import Model


@dataclass(frozen=True)
class Run:
    """What happened on one instance, episode by episode, and the policy at the end."""

    method: str
    theta: Theta
    returns: np.ndarray
    """[i]: mean undiscounted return of greedy evaluation episodes in the real environment after learning episode i."""
    success: np.ndarray
    """[i]: share of those evaluation episodes that reach the goal (HIV: that end healed)."""
    learning_returns: np.ndarray
    """[i]: undiscounted return of learning episode i itself (ε-greedy)."""
    model_error: np.ndarray
    """[i]: mean L2 error of the model on episode i before tuning, in standardised units; NaN without a model."""
    seconds: np.ndarray
    """[i]: wall-clock time of learning episode i and what was learned after it, without evaluation."""
    transitions: Transitions
    """𝒟_b: the learning episodes."""
    model: Model
    network: QNetwork
    config: TransferConfig | None = None
    """The settings that were used; None where nothing is learned."""
    imagination: tuple[Environment, Any] | None = None
    """What the policy was learned in at the end, and its contexts: to look at, or to roll policies out in."""
    latents: list[Any] = field(default_factory=list)
    """[i]: w_b after episode i, for methods that have one."""
    belief: Belief | None = None
    """p(w_b | what was seen), for methods that follow it step by step."""

    @property
    def latent(self) -> Any:
        """The last w_b, or None."""
        return self.latents[-1] if self.latents else None

    def policy(self, observation: Any) -> Any:
        """The greedy action: an int for one observation, an array of ints for a batch of them."""
        states = np.asarray(observation, np.float32)
        size = self.network.centre.shape[0]
        if states.ndim not in (1, 2) or states.shape[-1] != size:
            raise ValueError(f"An observation must have {size} numbers (or be a batch of such), got {states.shape}.")
        if not np.isfinite(states).all():
            raise ValueError("An observation must be finite.")
        values = _values(self.network, jnp.asarray(np.atleast_2d(states)))
        actions = np.argmax(np.asarray(values), axis=-1)
        return int(actions[0]) if states.ndim == 1 else actions


@jax.jit
def _values(network: QNetwork, states: jax.Array) -> jax.Array:
    return jax.vmap(network)(states)
