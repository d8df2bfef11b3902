"""The methods that bring Q(s, w) along, and act under a belief about w_b."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import stream
from hipmdp.adaptation import phases
from hipmdp.adaptation.built_in import BuiltInMethod
from hipmdp.adaptation.method import Info
from hipmdp.adaptation.model_based import AbstractModelBased
from hipmdp.adaptation.state import AdaptationState
from hipmdp.control.policies import BeliefActor
from hipmdp.control.policy_learner import with_network
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Filter, new_filter
from hipmdp.families.protocol import BaseFamily
from hipmdp.families.specification import Specification
from hipmdp.pretraining.amortise import learn_latent_policy
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dynamics import LatentRole
from hipmdp.settings.presets import amortise_preset


class Amortised(BuiltInMethod):
    """Q(s, w), learned once for the family: infer w, act, infer again, from the first step on. Nothing is trained."""

    name = "amortised"
    uses_model_of = "amortised"
    extends = "embedded"

    def check(self, model: Any, batch: Transitions | None) -> None:
        """There must be a T̂ and a Q(s, w)."""
        super().check(model, batch)
        model.need_dynamics(self.name)
        model.need_latent_policy(self.name)

    def extend(self, key: PRNGKeyArray, model: Model, batch: Transitions, family: BaseFamily) -> Model:
        """Learn Q(s, w) inside the embedded model."""
        config = amortise_preset(self.setting.preset, family.specification, model.facts)
        return learn_latent_policy(model, batch, config, family=family, key=key, quiet=True, work=self.setting.work)

    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """The prior belief."""
        chosen = belief_filter(key, model, self.name)
        belief = chosen.start
        return AdaptationState(
            model, self.no_data(), dynamics=model.dynamics, latent=belief.best, belief=belief, filter=chosen
        )

    def start(self, key: PRNGKeyArray, model: Model, specification: Specification) -> AdaptationState:
        """The prior belief."""
        return self.initial(key, model)

    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """Q(s, w) under the belief."""
        return replace(state, actor=belief_actor(state, self.config))

    def after_episode(self, key: PRNGKeyArray, state: AdaptationState) -> tuple[AdaptationState, Info]:
        """w_b is the most probable one now."""
        state = phases.store_episode(state)
        error = phases.model_error(key, state)
        assert state.belief is not None
        latent = state.belief.best
        state = replace(state, latent=latent, episode=state.episode + 1)
        return state, {"model_error": error, "latent": np.asarray(latent)}

    def network(self, state: AdaptationState) -> QNetwork:
        """Q(·, w_b)."""
        assert state.latent is not None
        return copy_network(state.model.need_latent_policy(self.name).at(state.latent))


class Refined(AbstractModelBased):
    """The first episode as `amortised`; then Algorithm 1, whose DQN goes on from Q(·, w_b)."""

    name = "refined"
    uses_model_of = "amortised"
    role = LatentRole.EMBEDDED
    begins_refined = True
    explores = False
    keeps_network = True

    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """The prior belief, and its policy."""
        chosen = belief_filter(key, model, self.name)
        belief = chosen.start
        policy = model.need_latent_policy(self.name).at(belief.best)
        state = self.initial_with(key, model, policy, unit=model.policy_unit)
        return replace(state, latent=belief.best, belief=belief, filter=chosen)

    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """In the first episode Q(s, w) under the belief."""
        if state.episode > 0:
            return super().with_actor(state)
        return replace(state, actor=belief_actor(state, self.config))

    def check(self, model: Any, batch: Transitions | None) -> None:
        """There must be a Q(s, w)."""
        super().check(model, batch)
        model.need_latent_policy(self.name)

    def _episode_ended(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """After the first episode w_b is the most probable one."""
        state = super()._episode_ended(key, state)
        assert state.belief is not None
        return replace(state, latent=state.belief.best) if state.episode == 0 else state

    def first_learner(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """The DQN goes on from Q(·, w_b)."""
        assert state.latent is not None
        policy = state.model.need_latent_policy(self.name)
        return replace(state, learner=with_network(state.policy_learner, policy.at(state.latent)))

    def has_policy(self, state: AdaptationState) -> bool:
        """Q(·, w_b) at least."""
        return True


def belief_filter(key: PRNGKeyArray, model: Model, purpose: str) -> Filter:
    """How the belief about w_b follows transitions."""
    model.need_latent_policy(purpose)
    return new_filter(model.need_dynamics(purpose), stream(key, "adaptation/filter"))


def belief_actor(state: AdaptationState, config: AdaptationConfig) -> BeliefActor:
    """Q(s, w) under the belief."""
    assert state.filter is not None
    weight = jnp.asarray(config.information_weight, jnp.float32)
    return BeliefActor(state.filter, state.model.need_latent_policy("belief_actor"), weight)
