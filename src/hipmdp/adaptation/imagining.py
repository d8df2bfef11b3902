"""What learns a policy inside the tuned T̂: the paper's Double DQN, or a PQN in rounds; the rest is the same.

A *candidate* is a policy that there is already, and that is
given up only for one with a higher imagined return.
"""

import abc
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.adaptation import phases, retuning
from hipmdp.adaptation.phases import OnChunk
from hipmdp.adaptation.remarks import Expected
from hipmdp.adaptation.state import AdaptationState, Phase
from hipmdp.control.exploration import epsilon
from hipmdp.control.policy_learner import (
    PolicyLearner,
    evaluate_imagined,
    new_policy_learner,
    with_empty_replay,
    with_network,
)
from hipmdp.control.q_network import QNetwork
from hipmdp.control.rounds import RoundsLearner, imagined_return, learn_in_rounds, new_rounds_learner
from hipmdp.imagination.build import Imagined
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.pqn import PQNConfig


@dataclass(frozen=True)
class AbstractImagining(abc.ABC):
    """How a policy is learned after a tuning."""

    config: AdaptationConfig
    keeps_network: bool
    """Whether the learner always goes on from the policy there is."""

    @abc.abstractmethod
    def initial(self, key: PRNGKeyArray, model: Model, capacity: int) -> PolicyLearner | RoundsLearner:
        """A learner that has imagined nothing; a replay has room for `capacity` steps."""

    @abc.abstractmethod
    def chance(self, state: AdaptationState) -> Float[Array, ""]:
        """ε of real episodes."""

    @abc.abstractmethod
    def imagines_on(self, state: AdaptationState) -> bool:
        """Whether imagination goes on after an episode after which T̂ was not tuned."""

    @abc.abstractmethod
    def tuned(self, key: PRNGKeyArray, state: AdaptationState, candidate: QNetwork | None) -> AdaptationState:
        """The state with a learner that is ready to learn in a T̂ that was just tuned."""

    @abc.abstractmethod
    def learned(
        self, key: PRNGKeyArray, state: AdaptationState, imagined: Imagined, *, has_policy: bool, on_chunk: OnChunk
    ) -> AdaptationState:
        """The state with what was learned in imagination, in its next phase."""

    @abc.abstractmethod
    def so_far(self, state: AdaptationState, episodes: int) -> tuple[int, int]:
        """How much of imagination is done, and how much there will be, of so many real episodes."""


class ByDQN(AbstractImagining):
    """N_f imagined episodes after a tuning, and some more after every other episode (paper)."""

    def initial(self, key: PRNGKeyArray, model: Model, capacity: int) -> PolicyLearner:
        """An untrained DQN, or one that goes on from Q(·, w) at the prior's mean."""
        dqn_key = stream(key, "adaptation/dqn", 0)
        if self.keeps_network:
            policy = family_network(model)
            return new_policy_learner(policy, self.config.dqn, capacity, dqn_key, unit=model.policy_unit)
        network = model.new_network(self.config.dqn, stream(key, "adaptation/network", 0))
        return new_policy_learner(network, self.config.dqn, capacity, dqn_key)

    def chance(self, state: AdaptationState) -> Float[Array, ""]:
        """Imagination's."""
        return epsilon(self.config.dqn, _dqn(state).dqn.started)

    def imagines_on(self, state: AdaptationState) -> bool:
        """In the first episodes."""
        return retuning.keeps_imagining(self.config, state.episode)

    def tuned(self, key: PRNGKeyArray, state: AdaptationState, candidate: QNetwork | None) -> AdaptationState:
        """What was imagined before is worth nothing in the tuned model; the policy may still be."""
        learner = _dqn(state)
        if state.tunings == 0 and candidate is not None:
            learner = with_network(learner, candidate) if self.keeps_network else learner._replace(best=candidate)
        if state.tunings > 0 and self.config.clear_replay_on_retune:
            learner = with_empty_replay(learner)
        learner = learner._replace(best_return=jnp.asarray(-jnp.inf, jnp.float32))
        return replace(state, learner=learner, imagined_target=state.imagined_target + self.config.imagined_episodes)

    def learned(
        self, key: PRNGKeyArray, state: AdaptationState, imagined: Imagined, *, has_policy: bool, on_chunk: OnChunk
    ) -> AdaptationState:
        """Imagined episodes up to the target; once more by a new DQN if the present one found nothing better."""
        config = self.config
        if has_policy:
            may_restart = config.clear_replay_on_retune and not self.keeps_network and state.tunings > 1
            state = phases.value_policy(state, imagined, config.validation_episodes, may_restart=may_restart)
        state = phases.begin_noted(state)
        state = phases.imagine(state, imagined, config, validation=config.validation_episodes, on_chunk=on_chunk)
        state = phases.end_noted(state)
        if not phases.found_nothing_better(state):
            return phases.next_phase(state, Phase.INTERACT, return_to_beat=None)
        state = phases.restart_learner(key, state, config).noted(restarted=True)
        return replace(state, return_to_beat=None, imagined_target=config.imagined_episodes + config.dqn.lanes)

    def so_far(self, state: AdaptationState, episodes: int) -> tuple[int, int]:
        """Imagined episodes."""
        return retuning.imagined_so_far(self.config, state, episodes)


class ByPQN(AbstractImagining):
    """Rounds of PQN after a tuning, as long as the imagined return rises; nothing between tunings."""

    @property
    def pqn(self) -> PQNConfig:
        """Settings of the learner."""
        assert self.config.pqn is not None
        return self.config.pqn

    def initial(self, key: PRNGKeyArray, model: Model, capacity: int) -> RoundsLearner:
        """Nothing is learned before the first tuning."""
        network = model.new_network(self.pqn, stream(key, "adaptation/network", 0))
        if self.keeps_network:
            network = family_network(model)
        return new_rounds_learner(network, self.pqn, stream(key, "adaptation/dqn", 0))

    def chance(self, state: AdaptationState) -> Float[Array, ""]:
        """Random before anything was learned; then none: a T̂ that is wrong shows itself on the way."""
        return jnp.asarray(1.0 if state.tunings == 0 else 0.0, jnp.float32)

    def imagines_on(self, state: AdaptationState) -> bool:
        """What T̂ has to teach was learned when it was tuned."""
        return False

    def tuned(self, key: PRNGKeyArray, state: AdaptationState, candidate: QNetwork | None) -> AdaptationState:
        """A new learner after every tuning: untrained, or from the candidate."""
        number, best = state.tunings, candidate if state.tunings == 0 else state.network
        pqn_key = stream(key, "adaptation/dqn", number)
        if self.keeps_network and best is not None:
            unit = state.model.policy_unit
            learner = new_rounds_learner(best, self.pqn, pqn_key, unit=unit)
        else:
            network = state.model.new_network(self.pqn, stream(key, "adaptation/network", number))
            learner = new_rounds_learner(network, self.pqn, pqn_key, best=best)
        return replace(state, learner=learner)

    def learned(
        self, key: PRNGKeyArray, state: AdaptationState, imagined: Imagined, *, has_policy: bool, on_chunk: OnChunk
    ) -> AdaptationState:
        """Rounds until the imagined return rises no more."""
        learner, keys = _rounds(state), phases.validation_keys(state, self.config.validation_episodes)
        environment, contexts, _ = imagined
        if has_policy and len(keys) > 0 and int(learner.pqn.iteration) == 0:
            value = imagined_return(environment, contexts, learner.best, keys)
            learner = learner.valued(value, is_own=self.keeps_network)
            state = state.noted(return_to_beat=float(value))

        def with_learner(learner: RoundsLearner) -> None:
            on_chunk(replace(state, learner=learner))

        learner = learn_by_rounds(self.config, imagined, learner, keys=keys, on_chunk=with_learner)
        expected = None
        if len(keys) > 0:
            returns = evaluate_imagined(environment, contexts, learner.best, jax.random.clone(keys))
            expected = Expected(float(learner.best_return), float(np.std(returns)))
        episodes = int(learner.pqn.episodes)
        before = state.imagined_before
        state = replace(state, learner=learner, imagined_before=before + episodes, expected=expected).noted(
            imagined_before=before,
            imagined_episodes=episodes,
            imagined_steps=int(learner.pqn.iteration) * self.pqn.steps,
            imagined_return=float(learner.best_return),
            imagined_spread=None if expected is None else expected.spread,
        )
        return phases.next_phase(state, Phase.INTERACT)

    def so_far(self, state: AdaptationState, episodes: int) -> tuple[int, int]:
        """Imagined steps; there may be fewer."""
        most = self.config.imagined_rounds * self.config.iterations
        before = most * max(0, state.tunings - 1)
        done = before + int(_rounds(state).pqn.iteration)
        return done * self.pqn.steps, (before + most) * self.pqn.steps


def learn_by_rounds(
    config: AdaptationConfig,
    imagined: Imagined,
    learner: RoundsLearner,
    *,
    keys: Key[Array, " validation"],
    on_chunk: Callable[[RoundsLearner], None],
) -> RoundsLearner:
    """Rounds of PQN in an imagined world, until the imagined return rises no more or it took `config.seconds`."""
    assert config.pqn is not None
    assert imagined.members is not None
    begun = time.monotonic()
    return learn_in_rounds(
        config.pqn,
        imagined.environment,
        imagined.contexts,
        imagined.members,
        learner,
        iterations=config.iterations,
        rounds=config.imagined_rounds,
        keys=keys,
        on_chunk=on_chunk,
        is_late=lambda: config.seconds is not None and time.monotonic() - begun > config.seconds,
    )


def family_network(model: Model) -> QNetwork:
    """Q(·, w) at the prior's mean."""
    return model.need_latent_policy("refined").at(model.need_dynamics("refined").latent_prior.mean)


def _dqn(state: AdaptationState) -> PolicyLearner:
    assert isinstance(state.learner, PolicyLearner)
    return state.learner


def _rounds(state: AdaptationState) -> RoundsLearner:
    assert isinstance(state.learner, RoundsLearner)
    return state.learner
