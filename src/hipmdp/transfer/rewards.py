"""The reward inside imagination: given, learned, or (for diagnosis) the true one.

A HiP-MDP's R is shared by all instances and known; its hidden parameters are not. On grid and HIV R needs no θ, so the
given reward leaks nothing. Acrobot's R reads l1 and l2 of the instance: "given" tells imagination that much (as in the
paper), "learned" tells it nothing.
"""

import abc
from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Int

from hipmdp.dynamics.reward_head import RewardHead
from hipmdp.families.family import AbstractFamily, Theta

REWARDS = ("given", "learned", "true")
"""Values of `reward=`."""


class AbstractReward(eqx.Module):
    """r̂ and whether the episode ends."""

    @abc.abstractmethod
    def __call__(
        self,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        next_state: Float[Array, " state"],
        latent: Float[Array, " latent"],
    ) -> tuple[Float[Array, ""], Bool[Array, ""]]:
        """(reward, terminated) of one imagined transition."""


class GivenReward(AbstractReward):
    """The family's R(s, a, s'). θ is passed on only where R is written in terms of it."""

    family: AbstractFamily
    theta: Theta | None

    def __init__(self, family: AbstractFamily, theta: Theta) -> None:
        self.family = family
        self.theta = theta if family.reward_needs_theta else None

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """R and the terminal states of the family, at the imagined s'."""
        reward = self.family.reward(state, action, next_state, self.theta)
        return reward, self.family.terminated(next_state, self.theta)


class LearnedReward(AbstractReward):
    """A network fitted to logged rewards and terminations: tells nothing that the logs do not."""

    head: RewardHead

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """What the network says."""
        return self.head(state, action, next_state, latent)


class TrueReward(AbstractReward):
    """What the real instance would pay and whether it would end, from the imagined s: for diagnosis only.

    (The authors' released code used this on grid.)
    """

    family: AbstractFamily
    theta: Theta

    def __call__(self, state: Any, action: Any, next_state: Any, latent: Any) -> Any:
        """One step of the true dynamics."""
        outcome = self.family.step(jax.random.key(0), state, action, self.theta)
        return outcome.reward, outcome.terminated
