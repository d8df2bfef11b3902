"""The record of one `learn_policy` run."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hipmdp.adaptation.method import Info
from hipmdp.control.policy import Policy
from hipmdp.control.q_network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.families.protocol import Theta
from hipmdp.families.rollout import Episode
from hipmdp.imagination.build import Imagined
from hipmdp.settings.adaptation import AdaptationConfig

METRICS = ("returns", "success", "learning_returns", "model_error", "seconds")
"""What a run records of every episode, by the names of its fields."""


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
    """[i]: undiscounted return of learning episode i itself."""
    model_error: np.ndarray
    """[i]: error of the model on learning episode i before it was tuned on it: root mean squared error of the
    standardised state difference per dimension (1: no better than predicting the mean change); NaN without a model."""
    seconds: np.ndarray
    """[i]: wall-clock time of learning episode i and what was learned after it, without evaluation."""
    transitions: Transitions
    """𝒟_b: the learning episodes."""
    evaluation: Episode
    """The greedy evaluation episodes after the last learning episode."""
    trace: tuple[Info, ...]
    """[i]: what the method did after learning episode i, by name."""
    model: Any
    """The model, tuned to the instance where the method has one."""
    policy: Policy
    """The greedy policy: called with a state it gives the action, with rows of states an array of actions."""
    network: QNetwork | None = None
    """Q(s) of the policy, or at the last w_b where that acts under a belief; None for a method of the user's own."""
    config: AdaptationConfig | None = None
    """The settings that were used; None where nothing is learned."""
    imagination: Imagined | None = None
    """What the policy was learned in at the end, and its contexts: to look at, or to roll policies out in."""
    latents: list[np.ndarray] = field(default_factory=list)
    """[i]: w_b after episode i, for methods that have one."""
    belief: Belief | None = None
    """p(w_b | transitions), for methods that update it step by step."""

    @property
    def latent(self) -> np.ndarray | None:
        """The last w_b, or None."""
        return self.latents[-1] if self.latents else None

    @property
    def remarks(self) -> list[str]:
        """What was not as it should be, and what to do about it: a sentence each, with its episode."""
        return [f"Episode {i}: {text}" for i, info in enumerate(self.trace, 1) for text in info.get("remarks", ())]
