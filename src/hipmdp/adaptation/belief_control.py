"""Acting by a model's Q(s, w) before anything is learned at the instance."""

import jax.numpy as jnp
import numpy as np

from hipmdp.adaptation.state import AdaptationState
from hipmdp.control.policies import BeliefActor, BeliefPolicy, Lookahead
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.families.protocol import BaseFamily
from hipmdp.imagination.build import Surroundings, mean_environment
from hipmdp.imagination.reward import family_reward
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.recipe import SQUASH


def belief_actor(state: AdaptationState, family: BaseFamily, config: AdaptationConfig) -> BeliefActor:
    """Q(s, w) under the belief, some steps of T̂ ahead."""
    assert state.filter is not None
    weight = jnp.asarray(config.information_weight, jnp.float32)
    policy = state.model.need_latent_policy("belief_actor")
    return BeliefActor(
        state.filter, policy, weight, _lookahead(state, family, config), caution=config.caution, guard=state.guard
    )


def _lookahead(state: AdaptationState, family: BaseFamily, config: AdaptationConfig) -> Lookahead | None:
    model = state.model
    if config.steps_ahead == 0 or model.policy_unit is None:
        return None
    reward = family_reward(family, model.reward_head, family.name)
    starts = jnp.zeros((1, model.specification.state_size), jnp.float32)
    around = Surroundings(reward, starts, np.asarray(model.low), np.asarray(model.high))
    return Lookahead(
        mean_environment(model.need_dynamics("belief_actor"), around),
        unit=jnp.asarray(model.policy_unit, jnp.float32),
        discount=model.specification.discount,
        squash=SQUASH,
        steps=config.steps_ahead,
        error=jnp.asarray(model.metadata.get("policy_error", 0.0), jnp.float32),
    )


def belief_policy(state: AdaptationState, family: BaseFamily, config: AdaptationConfig) -> BeliefPolicy:
    """The policy of the belief so far, which learns nothing more."""
    assert state.belief is not None
    policy = state.model.need_latent_policy("belief_policy")
    lookahead = _lookahead(state, family, config)
    return BeliefPolicy(policy, state.belief, lookahead, caution=config.caution, guard=state.guard)


def member_policy(state: AdaptationState) -> QNetwork:
    """Q(·, w_b) at the w_b so far, which is zero where T̂ has none."""
    policy = state.model.need_latent_policy("member_policy")
    assert state.latent is not None
    return copy_network(policy.at(state.latent if state.model.has_latent else jnp.zeros_like(state.latent)))
