"""The methods that bring Q(s, w) along, and act under a belief about w_b."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import stream
from hipmdp.adaptation import phases
from hipmdp.adaptation.belief_control import belief_actor, belief_policy, member_policy
from hipmdp.adaptation.built_in import BuiltInMethod
from hipmdp.adaptation.guarding import belief_guard, check_limits, limits_kept
from hipmdp.adaptation.method import Info
from hipmdp.adaptation.model_based import AbstractModelBased
from hipmdp.adaptation.remarks import broken_limits, uninformative
from hipmdp.adaptation.state import AdaptationState
from hipmdp.control.policies import BeliefPolicy
from hipmdp.control.q_network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import new_filter
from hipmdp.families.specification import Specification
from hipmdp.pretraining.model import Model
from hipmdp.settings.dynamics import LatentRole


class Amortised(BuiltInMethod):
    """Q(s, w), learned once for the family: infer w, act, infer again, from the first step on. Nothing is trained."""

    name = "amortised"
    uses_model_of = "embedded"
    keeps_limits = True

    def acts_under_belief(self, model: Model) -> bool:
        """Always."""
        return True

    def check(self, model: Any, batch: Transitions | None) -> None:
        """There must be a T̂ and a Q(s, w)."""
        super().check(model, batch)
        model.need_dynamics(self.name)
        model.need_latent_policy(self.name)
        check_limits(model, self.config.limits)

    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """The prior belief."""
        chosen = new_filter(model.need_dynamics(self.name), stream(key, "adaptation/filter"))
        guard = belief_guard(model, self.family, self.config.limits, key=stream(key, "adaptation/guard"))
        belief = chosen.start
        return AdaptationState(
            model, self.no_data(), dynamics=model.dynamics, latent=belief.best, belief=belief, filter=chosen,
            guard=guard,
        )  # fmt: skip

    def start(self, key: PRNGKeyArray, model: Model, specification: Specification) -> AdaptationState:
        """The prior belief."""
        return self.initial(key, model)

    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """Q(s, w) under the belief."""
        return replace(state, actor=belief_actor(state, self.family, self.config))

    def after_episode(self, key: PRNGKeyArray, state: AdaptationState) -> tuple[AdaptationState, Info]:
        """w_b is the most probable one now."""
        limits, chances = self.config.limits, state.chances
        state = phases.store_episode(state)
        error = phases.model_error(key, state)
        belief = phases.smoothed_belief(state)
        assert belief is not None
        latent = belief.best
        kept = {} if limits is None else limits_kept(limits, chances, phases.last_episode(state))
        state = replace(state, belief=belief, latent=latent, episode=state.episode + 1)
        remarks = uninformative(phases.variance_left(state)) if state.episode == 1 else []
        if limits is not None:
            remarks = [*remarks, *broken_limits(limits, kept)]
        return state, {"model_error": error, "latent": np.asarray(latent), **kept, "remarks": remarks}

    def network(self, state: AdaptationState) -> QNetwork:
        """Q(·, w_b)."""
        return member_policy(state)

    def policy(self, state: AdaptationState) -> BeliefPolicy:
        """Q(s, w) under the belief so far."""
        return belief_policy(state, self.family, self.config)


class Refined(AbstractModelBased):
    """The first episode as `amortised`; then Algorithm 1, whose learner goes on from Q(·, w_b)."""

    name = "refined"
    uses_model_of = "embedded"
    role = LatentRole.EMBEDDED
    begins_refined = True
    explores = False
    keeps_network = True

    def has_first_policy(self, model: Model) -> bool:
        """It has nothing else to begin with."""
        return True

    def check(self, model: Any, batch: Transitions | None) -> None:
        """There must be a Q(s, w)."""
        super().check(model, batch)
        model.need_latent_policy(self.name)

    def has_candidate(self, state: AdaptationState) -> bool:
        """Q(·, w_b) at least."""
        return True
