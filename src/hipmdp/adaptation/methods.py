"""The methods that are compared, a class each: what it knows beforehand, and how it learns.

`METHODS` has them by name. A new method is a new class.
"""

from dataclasses import replace
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from hipmdp._errors import known_name
from hipmdp._random import stream
from hipmdp.adaptation import phases
from hipmdp.adaptation.built_in import BuiltInMethod
from hipmdp.adaptation.latent_policy import Amortised, Refined
from hipmdp.adaptation.method import AbstractMethod, Info, OwnMethod, RunnableMethod, Setting
from hipmdp.adaptation.model_based import AbstractModelBased
from hipmdp.adaptation.state import AdaptationState
from hipmdp.control import dqn
from hipmdp.control.exploration import epsilon
from hipmdp.control.policies import EpsilonGreedy, Greedy
from hipmdp.control.policy_learner import PolicyLearner, new_policy_learner
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.data.experience import logged_steps
from hipmdp.data.transitions import Transitions
from hipmdp.families.loading import user_module
from hipmdp.families.protocol import BaseFamily
from hipmdp.families.rollout import Transition
from hipmdp.families.specification import Specification
from hipmdp.pretraining.blind import VALIDATIONS, train_blind_policy
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.pretrain import ROLES
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.presets import dqn_preset


class Embedded(AbstractModelBased):
    """The paper's: T̂(s, a, w_b), pre-trained on the batch."""

    name = "embedded"
    uses_model_of = "embedded"
    role = ROLES["embedded"]


class Linear(AbstractModelBased):
    """w_bᵀ T̂(s, a): the earlier HiP-MDP's way to combine, with the same network."""

    name = "linear"
    uses_model_of = "linear"
    role = ROLES["linear"]


class Average(AbstractModelBased):
    """One T̂(s, a) for all instances."""

    name = "average"
    uses_model_of = "average"
    role = ROLES["average"]


class Scratch(AbstractModelBased):
    """T̂(s, a) learned on this instance alone."""

    name = "scratch"
    uses_model_of = "scratch"
    role = ROLES["scratch"]
    knows_family = False


class ModelFree(BuiltInMethod):
    """Double DQN on the real instance: ε-greedy, learning from every step."""

    name = "model_free"
    uses_model_of = "model_free"
    uses_adaptation_config = False

    @property
    def used_config(self) -> AdaptationConfig | None:
        """The DQN of real episodes is all that it uses."""
        return replace(self.config, dqn=self.real_dqn)

    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """An untrained DQN."""
        config, capacity = self.real_dqn, self.setting.episodes * self.family.horizon
        network = model.new_network(config, stream(key, "adaptation/network", 0))
        learner = new_policy_learner(network, config, capacity, stream(key, "adaptation/dqn", 0))
        return AdaptationState(model, self.no_data(), learner)

    def start(self, key: PRNGKeyArray, model: Model, specification: Specification) -> AdaptationState:
        """An untrained DQN."""
        return self.initial(key, model)

    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """ε-greedy with the online network, which changes with every update phase."""
        chance = epsilon(self.real_dqn, jnp.asarray(state.episode, jnp.int32))
        return replace(state, actor=EpsilonGreedy(state.policy_learner.dqn.online, chance))

    def observe(self, state: AdaptationState, transition: Transition) -> AdaptationState:
        """Every N_π steps: an update phase."""
        state = super().observe(state, transition)
        due = len(state.steps) % self.real_dqn.steps_per_phase == 0
        return self._learned(state, self.real_dqn.steps_per_phase) if due else state

    def after_episode(self, key: PRNGKeyArray, state: AdaptationState) -> tuple[AdaptationState, Info]:
        """An update phase for the last steps."""
        state = self._learned(state, len(state.steps) % self.real_dqn.steps_per_phase)
        state = phases.store_episode(state)
        return replace(state, episode=state.episode + 1), {}

    def _learned(self, state: AdaptationState, count: int) -> AdaptationState:
        """The DQN after an update phase on the last `count` steps."""
        if count == 0:
            return state
        rows = logged_steps(state.steps[-count:], self.real_dqn.steps_per_phase)
        # A copy, as the state before stays as it is.
        learned = dqn.learn_from(self.real_dqn, rows, dqn.copy_state(state.policy_learner.dqn))
        learner = PolicyLearner(learned, copy_network(learned.online), state.policy_learner.best_return)
        return replace(state, learner=learner, actor=None)

    def network(self, state: AdaptationState) -> QNetwork:
        """The online network."""
        return state.network


class Blind(BuiltInMethod):
    """One policy for all instances, which learns nothing on the instance: what transfer has to beat."""

    name = "blind"
    uses_model_of = "blind"
    uses_adaptation_config = False
    used_config = None
    EPISODES: ClassVar[int] = 2000
    """Training episodes where they cost next to nothing; elsewhere as many as the batch has."""

    def prepare(self, key: PRNGKeyArray, batch: Transitions, family: BaseFamily) -> Model:
        """Train the policy on the instances of the batch, in their environments."""
        thetas = [batch.thetas[instance] for instance in batch.instances]
        episodes = self.EPISODES if family.simulated else max(VALIDATIONS, batch.episode_count)
        config = dqn_preset(self.setting.preset, family.specification, episodes)
        return train_blind_policy(family, thetas, episodes, key=key, config=config)

    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """The policy."""
        return AdaptationState(model, self.no_data())

    def check(self, model: Any, batch: Transitions | None) -> None:
        """There must be a policy."""
        super().check(model, batch)
        if model.policy is None:
            raise ValueError(f"'blind' needs a model from train_blind, not one of method {model.method!r}.")

    def start(self, key: PRNGKeyArray, model: Model, specification: Specification) -> AdaptationState:
        """The policy."""
        return self.initial(key, model)

    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """The policy, greedily."""
        return replace(state, actor=Greedy(self.network(state)))

    def after_episode(self, key: PRNGKeyArray, state: AdaptationState) -> tuple[AdaptationState, Info]:
        """Nothing is learned."""
        state = phases.store_episode(state)
        return replace(state, episode=state.episode + 1), {}

    def network(self, state: AdaptationState) -> QNetwork:
        """The policy."""
        assert state.model.policy is not None
        return state.model.policy


METHODS: dict[str, type[BuiltInMethod]] = {
    method.name: method for method in (Embedded, Linear, Average, Scratch, ModelFree, Blind, Amortised, Refined)
}
"""The built-in methods by name."""


def find_method(text: str, setting: Setting, purpose: str) -> RunnableMethod:
    """A built-in method by name, or `module:Class` of the user's own, otherwise one clear sentence."""
    if ":" not in text:
        return METHODS[known_name(f"method of {purpose}", text, [*METHODS, "module:Class"])](setting)
    module, _, name = text.partition(":")
    found = getattr(user_module(module), name, None)
    if not (isinstance(found, type) and issubclass(found, AbstractMethod)):
        raise ValueError(f"{text!r} is not a method: name a class of hipmdp.AbstractMethod.")
    try:
        method = found()
    except TypeError as error:
        raise ValueError(f"{text!r} cannot be made without arguments: {error}.") from None
    _check_name(method, text)
    return runnable(method, setting)


def runnable(method: AbstractMethod, setting: Setting) -> RunnableMethod:
    """A method of the user's own as `learn_policy` runs it; one that is built upon ours takes the setting."""
    if isinstance(method, BuiltInMethod):
        return method if method.setting.family is not None else type(method)(setting)
    _check_name(method, type(method).__name__)
    return OwnMethod(method)


def _check_name(method: AbstractMethod, text: str) -> None:
    """The name of a method of the user's own can stand in tables and file names."""
    name = getattr(method, "name", None)
    if not isinstance(name, str) or not name.isidentifier() or name in METHODS:
        raise ValueError(f"The method {text!r} needs a name of its own, such as name = 'nearest', got {name!r}.")
