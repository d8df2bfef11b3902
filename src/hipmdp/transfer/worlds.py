"""The worlds that a policy is imagined in: the family before anybody is met, and the instance as far as it is known.

Each is an environment and its contexts.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp.control.evaluate import repeat_theta
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.infer import latent_covariance
from hipmdp.dynamics.model import Dynamics
from hipmdp.dynamics.reward_head import fit_reward_head
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.play import first_states
from hipmdp.families.rollout import Environment
from hipmdp.transfer.config import TransferConfig
from hipmdp.transfer.imagination import Imagination, data_limits, draw_contexts, known_contexts
from hipmdp.transfer.methods import METHODS
from hipmdp.transfer.model import Model
from hipmdp.transfer.rewards import AbstractReward, GivenReward, LearnedReward, TrueReward

STARTS = 64
"""First states that imagination knows."""


@dataclass(frozen=True)
class Worlds:
    """What they are all made from."""

    model: Model
    family: AbstractFamily
    theta: Theta
    """For starts, and for rewards that read it; T̂ is told nothing of it."""
    seed: int
    config: TransferConfig
    reward: str
    start_key: PRNGKeyArray

    def true(self) -> tuple[Environment, Any]:
        """The real environment, for diagnosis."""
        return self.family, repeat_theta(self.theta, 1)

    def of_family(self, key: PRNGKeyArray, lived: Transitions) -> tuple[Environment, Any]:
        """The members that T̂ was trained on, one after the other; `lived` is still empty."""
        dynamics = self.model.need_dynamics("rehearsal")
        environment = self._imagination(dynamics, dynamics.latent_prior.mean, lived)
        return environment, known_contexts(dynamics, key, 1)

    def of_instance(
        self, dynamics: Dynamics, latent: Float[Array, " latent"], lived: Transitions, key: PRNGKeyArray
    ) -> tuple[Environment, Any]:
        """The instance itself: T̂ tuned to what was lived, and every w_b that this still allows."""
        config = self.config
        unsure = config.latent_temperature > 0 and self.model.has_latent and self.model.oracle is None
        covariance = latent_covariance(dynamics, lived, latent, config.latent_temperature) if unsure else None
        contexts = draw_contexts(dynamics, latent, key, config.weight_draws, config.mean_weights, covariance)
        return self._imagination(dynamics, latent, lived), contexts

    def _imagination(self, dynamics: Dynamics, latent: Float[Array, " latent"], lived: Transitions) -> Imagination:
        starts = first_states(self.family, jax.random.split(self.start_key, STARTS), self.theta)
        low = np.vstack([self.model.low, lived.next_state]).min(axis=0)
        high = np.vstack([self.model.high, lived.next_state]).max(axis=0)
        reward = self._reward(dynamics, latent, lived)
        return Imagination(dynamics, reward, starts, data_limits(low, high), self._known_states())

    def _known_states(self) -> Float[Array, "known state"] | None:
        """Where the family has been, for who has learned from it."""
        support = self.model.support
        if not self.config.restart_known or support is None or not METHODS[self.model.method].pretrained:
            return None
        return support.state

    def _reward(self, dynamics: Dynamics, latent: Float[Array, " latent"], lived: Transitions) -> AbstractReward:
        if self.reward == "given":
            return GivenReward(self.family, self.theta)
        if self.reward == "true":
            return TrueReward(self.family, self.theta)
        head = self.model.reward_head
        if head is None:
            # Scratch knows no rewards but those of this instance.
            rows = jnp.broadcast_to(latent, (len(lived), *latent.shape))
            head = fit_reward_head(lived, dynamics.scaling, rows, self.seed)
        return LearnedReward(head)
