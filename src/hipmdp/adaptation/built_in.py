"""What all built-in methods share: how they are made, and how they act and observe."""

import abc
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.adaptation.method import RunnableMethod, Setting
from hipmdp.adaptation.run import Run
from hipmdp.adaptation.state import AdaptationState, restored_state, state_parts, state_template
from hipmdp.adaptation.update import check_batch
from hipmdp.control.guard import Decision
from hipmdp.control.policies import BeliefActor, BeliefPolicy, EpsilonGreedy, Greedy
from hipmdp.control.q_network import QNetwork
from hipmdp.data.transitions import Transitions, empty_transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.families.protocol import BaseFamily, theta_values
from hipmdp.families.rollout import Transition
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.pretrain import prepare_model
from hipmdp.settings import recipe
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.presets import adaptation_preset, dqn_preset


class BuiltInMethod(RunnableMethod):
    """A method whose state is an `AdaptationState`."""

    uses_model_of: ClassVar[str]
    begins_refined: ClassVar[bool] = False
    """Whether its learner begins with a policy, and so with little exploration."""
    uses_adaptation_config: ClassVar[bool] = True
    """Whether it imagines, or acts by what was imagined: then changes of `AdaptationConfig` concern it."""

    def __init__(self, setting: Setting | None = None) -> None:
        self.setting = setting or Setting()

    def prepare(self, key: PRNGKeyArray, batch: Transitions, family: BaseFamily) -> Model:
        """What the method learns from the batch."""
        setting = self.setting
        return prepare_model(
            batch, self.uses_model_of, key=key, preset=setting.preset, config=setting.dynamics, family=family,
            work=setting.work, policy=True if setting.amortise is None else setting.amortise,
        )  # fmt: skip

    def check(self, model: Any, batch: Transitions | None) -> None:
        """The model must be one of ours, and the batch the one that it was pre-trained on."""
        if not isinstance(model, Model):
            raise ValueError(f"{self.name!r} needs a hipmdp.Model, got {type(model).__name__}: use hipmdp.pretrain.")
        if batch is not None:
            check_batch(model, batch)

    @abc.abstractmethod
    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """The state before anything is learned: what is saved later has its shapes."""

    def saved(self, state: AdaptationState) -> tuple[Any, dict[str, Any]]:
        """Arrays and values of a state."""
        return state_parts(state)

    def restored(self, key: PRNGKeyArray, model: Model, load: Callable[[Any], Any]) -> AdaptationState:
        """A state shaped like the initial one."""
        first = self.initial(key, model)
        parts, values = load(lambda values: state_template(first, values))
        return restored_state(first, parts, values)

    def instance_data(self, state: AdaptationState) -> Transitions:
        """𝒟_b."""
        return state.instance_data

    def act(self, key: PRNGKeyArray, state: AdaptationState, observation: Any) -> tuple[int, AdaptationState]:
        """The actor's action; it is chosen before the first step of an episode."""
        if state.actor is None:
            state = self.with_actor(state)
        if isinstance(state.actor, BeliefActor):
            action, chances = _actor_decision(state.actor, key, observation, state.belief)
            if chances is not None:
                state = replace(state, chances=(*state.chances, chances))
            return int(action), state
        return int(_policy_action(state.actor, key, observation)), state

    @abc.abstractmethod
    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """What acts in the next episode."""

    def observe(self, state: AdaptationState, transition: Transition) -> AdaptationState:
        """Keep the transition; follow the belief where there is one."""
        belief = state.belief
        if isinstance(state.actor, BeliefActor):
            belief = _updated(state.actor, belief, transition.state, np.int32(transition.action), transition.next_state)
        return replace(state, steps=(*state.steps, transition), belief=belief)

    @abc.abstractmethod
    def network(self, state: AdaptationState) -> QNetwork:
        """Q(s) of the greedy policy."""

    def policy(self, state: AdaptationState) -> Greedy | BeliefPolicy:
        """The greedy policy so far."""
        return Greedy(self.network(state))

    # What the setting says.

    @property
    def family(self) -> BaseFamily:
        """The family of the instance."""
        assert self.setting.family is not None, "learn_policy makes methods with a family"
        return self.setting.family

    @functools.cached_property
    def config(self) -> AdaptationConfig:
        """Settings of Algorithm 1."""
        given, specification = self.setting.adaptation, self.family.specification
        preset = self.setting.preset
        if given is None:
            config = adaptation_preset(preset, specification, refined=self.begins_refined)
        else:
            little = self.begins_refined and given.pqn is not None
            config = recipe.with_little_exploration(given) if little else given
        caution, limits = self.setting.caution, self.setting.limits
        return replace(
            config,
            caution=config.caution if caution is None else caution,
            limits=config.limits if limits is None else limits,
        )

    @property
    def used_config(self) -> AdaptationConfig | None:
        """The settings that the method uses; None where nothing is learned."""
        return self.config

    def varied_config(self, adaptation: Mapping[str, Any], dqn: Mapping[str, Any]) -> AdaptationConfig | None:
        """Where it imagines, or acts by what was imagined: the settings of Algorithm 1 with changes."""
        if not self.uses_adaptation_config:
            return None
        config = replace(self.config, **adaptation)
        if dqn and config.pqn is not None:
            raise ValueError(
                "A variant's dqn is for the Double DQN in imagination: add ('pqn', None) to its adaptation."
            )
        return replace(config, dqn=replace(config.dqn, **dqn))

    @functools.cached_property
    def real_dqn(self) -> DDQNConfig:
        """Settings of a DQN in real episodes: one lane, and no restarts, as a real system cannot be put anywhere."""
        given = self.setting.adaptation
        preset, specification, episodes = self.setting.preset, self.family.specification, self.setting.episodes
        config = given.dqn if given is not None and given.pqn is None else None
        config = config or dqn_preset(preset, specification, episodes)
        return replace(config, lanes=1, restart_share=0.0)

    def completed(self, run: Run, state: AdaptationState, *, batch: Transitions | None, key: PRNGKeyArray) -> Run:
        """With its network, its settings and its belief."""
        return replace(run, network=self.network(state), config=self.used_config, belief=state.belief)

    def no_data(self) -> Transitions:
        """𝒟_b before the first episode."""
        return empty_transitions(self.family.specification, {0: theta_values(self.setting.theta)})


@jax.jit
def _policy_action(policy: EpsilonGreedy | Greedy, key: PRNGKeyArray, state: Float[Array, " state"]) -> Int[Array, ""]:
    return policy(key, state, jnp.zeros((), jnp.int32))


@jax.jit
def _actor_decision(actor: BeliefActor, key: PRNGKeyArray, state: Float[Array, " state"], belief: Belief) -> Decision:
    return actor.decide(key, state, belief)


@jax.jit
def _updated(actor: BeliefActor, belief: Any, state: Array, action: Array, next_state: Array) -> Belief:
    return actor.observe(belief, state, action, next_state)
