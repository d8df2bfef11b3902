"""Algorithm 1 of the paper for methods with a T̂: tune it to the instance, learn a policy inside it.

A class says what differs between such methods; the order of things is the same for all.
"""

import functools
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.adaptation import phases, retuning
from hipmdp.adaptation.belief_control import belief_actor, belief_policy, member_policy
from hipmdp.adaptation.built_in import BuiltInMethod
from hipmdp.adaptation.imagining import AbstractImagining, ByDQN, ByPQN
from hipmdp.adaptation.method import Info
from hipmdp.adaptation.remarks import surprise, uninformative
from hipmdp.adaptation.run import Run
from hipmdp.adaptation.state import AdaptationState, Phase
from hipmdp.adaptation.update import update_from_batch
from hipmdp.control.policies import BeliefPolicy, EpsilonGreedy, Greedy
from hipmdp.control.q_network import QNetwork
from hipmdp.control.selection import by_evidence
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import new_filter
from hipmdp.dynamics.reward_head import fit_reward_head
from hipmdp.families.specification import Specification
from hipmdp.imagination.build import (
    Imagined,
    Surroundings,
    doubt,
    imagine_environment,
    imagine_instance,
    starts_of_instance,
)
from hipmdp.imagination.reward import check_reward, instance_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import FIRST_EPISODES
from hipmdp.settings.dynamics import LatentRole


class AbstractModelBased(BuiltInMethod):
    """T̂, and a policy that is learned inside it."""

    imagines = True
    role: ClassVar[LatentRole]
    """How the latent enters T̂."""
    knows_family: ClassVar[bool] = True
    """Whether T̂ was pre-trained on the batch."""
    explores: ClassVar[bool] = True
    """Whether real episodes are ε-greedy; otherwise they are greedy."""
    keeps_network: ClassVar[bool] = False
    """Whether the learner goes on from the policy there is when T̂ is tuned."""

    # Before the first episode.

    @functools.cached_property
    def imagining(self) -> AbstractImagining:
        """What learns in imagination."""
        kind = ByDQN if self.config.pqn is None else ByPQN
        return kind(self.config, self.keeps_network)

    def initial(self, key: PRNGKeyArray, model: Model) -> AdaptationState:
        """w_b ~ P_W, or the prior belief where the model has a policy to act by, and a learner that knows nothing."""
        capacity = retuning.most_imagined(self.config, self.setting.episodes) * self.family.horizon
        learner = self.imagining.initial(key, model, capacity)
        state = AdaptationState(
            model,
            self.no_data(),
            learner,
            dynamics=model.dynamics,
            latent=phases.prior_latent(model, self.setting.theta, stream(key, "adaptation/latent")),
            starts=starts_of_instance(self.family, self.setting.theta, key=stream(key, "adaptation/starts")),
            imagination_key=stream(key, "adaptation/contexts"),
        )
        if not self.has_first_policy(model) or not model.has_latent:
            return state
        chosen = new_filter(model.need_dynamics(self.name), stream(key, "adaptation/filter"))
        return replace(state, latent=chosen.start.best, belief=chosen.start, filter=chosen)

    def start(self, key: PRNGKeyArray, model: Model, specification: Specification) -> AdaptationState:
        """The initial state."""
        return self.initial(key, model)

    def has_first_policy(self, model: Model) -> bool:
        """Whether the model's Q(s, w) controls the first episode; otherwise it is random."""
        in_model = self.setting.imagine_in == "model"
        return self.config.first_policy and model.latent_policy is not None and in_model

    def acts_under_belief(self, model: Model) -> bool:
        """The first episode, where Q(s, w) controls it."""
        return self.has_first_policy(model) and model.has_latent

    # A real episode.

    def with_actor(self, state: AdaptationState) -> AdaptationState:
        """Q(s, w) under the belief, or a policy that was learned for the instance, with the learner's ε."""
        number = self.select_policy(state)
        if number == 0 and self.has_first_policy(state.model):
            if state.filter is not None:
                return replace(state, actor=belief_actor(state, self.family, self.config))
            return replace(state, actor=Greedy(member_policy(state)))
        chance = self.imagining.chance(state)
        if not self.explores:
            chance = jnp.zeros_like(chance)
        return replace(state, actor=EpsilonGreedy(phases.policy_number(state, number), chance))

    # After it.

    def after_episode(self, key: PRNGKeyArray, state: AdaptationState) -> tuple[AdaptationState, Info]:
        """Tune T̂, if that is due; learn a policy in imagination. It goes on from any phase."""
        if state.phase is Phase.INTERACT:
            state = self._episode_ended(key, state)
        if state.phase is Phase.TUNE:
            state = self._tune(key, state)
        while state.phase is Phase.IMAGINE:
            state = self._imagine(key, state)
        return replace(state, episode=state.episode + 1), dict(state.info)

    def _episode_ended(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """The episode joins 𝒟_b; the error of T̂ on it is measured before T̂ is tuned."""
        number = self.select_policy(state)
        state = phases.store_episode(state)
        state = replace(state, policy_index=(*state.policy_index, number), belief=phases.smoothed_belief(state))
        known = state.expected if number == state.tunings and number > 0 else None
        remarks = surprise(state.learning_returns[-1], known)
        state = state.noted(surprised=bool(remarks))
        if state.episode == 0 and state.belief is not None:
            remarks = [*remarks, *uninformative(phases.variance_left(state))]
            state = replace(state, latent=state.belief.best)
        state = state.noted(
            policy=number,
            model_error=phases.model_error(key, state),
            remarks=remarks,
        )
        return phases.next_phase(state, Phase.TUNE)

    def _tune(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """T̂ is tuned, if that is due, and a policy is to be learned in it; otherwise imagination may go on a little."""
        due = self._is_due(state)
        if due:
            state = self._tuned(key, state)
        latent = None if state.latent is None or self.role is LatentRole.NONE else np.asarray(state.latent)
        state = state.noted(tuned=due, tunings=state.tunings, latent=latent, restarted=False)
        if not due and not self.imagining.imagines_on(state):
            return phases.next_phase(state, Phase.INTERACT)
        target = state.imagined_target + self.config.dqn.lanes
        return phases.next_phase(state, Phase.IMAGINE, imagined_target=target)

    def _tuned(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """T̂ fitted to 𝒟_b, and a learner that is ready to learn in it."""
        if self.setting.imagine_in == "model" and state.model.dynamics is not None:
            oracle = state.model.oracle is not None
            keeps = self.config.keep_accurate_weights and self.knows_family
            state = phases.tune(
                key,
                state,
                state.model.dynamics,
                fixed_latent=oracle,
                accurate_below=self.config.inaccurate_factor * state.model.expected_error if keeps else 0.0,
                on_chunk=self.setting.on_chunk,
            )
        if state.tunings > 0:
            state = replace(state, previous_policies=(*state.previous_policies, state.network))
        candidate = member_policy(state) if self.has_candidate(state) else None
        state = self.imagining.tuned(key, state, candidate)
        return replace(state, tunings=state.tunings + 1, imagination_key=stream(key, "adaptation/contexts"))

    def _is_due(self, state: AdaptationState) -> bool:
        """The true environment has nothing to be tuned."""
        if self.setting.imagine_in == "environment":
            return state.episode == 0
        return retuning.is_due(
            self.config,
            episode=state.episode,
            tunings=state.tunings,
            error=float(state.info["model_error"]),
            expected_error=state.model.expected_error,
            surprised=bool(state.info["surprised"]),
        )

    def has_candidate(self, state: AdaptationState) -> bool:
        """Whether the model brings a policy along that the learner could have found."""
        if not self.has_first_policy(state.model):
            return False
        shapes = [jax.tree.map(jnp.shape, network) for network in (member_policy(state), state.network)]
        return bool(eqx.tree_equal(*shapes))

    def _imagine(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """A policy is learned in imagination."""
        return self.imagining.learned(
            key,
            state,
            self.imagined(state),
            has_policy=state.tunings > 1 or self.has_candidate(state),
            on_chunk=self.setting.on_chunk,
        )

    def imagined(self, state: AdaptationState) -> Imagined:
        """What the policy is learned in."""
        if self.setting.imagine_in == "environment":
            return imagine_environment(self.family, self.setting.theta, self.config)
        assert state.dynamics is not None
        assert state.latent is not None
        assert state.imagination_key is not None
        deviations = None
        if state.model.has_latent and state.model.oracle is None:
            deviations = doubt(
                state.model.need_dynamics(self.name),
                state.dynamics,
                state.latent,
                state.instance_data,
                temperature=self.config.latent_temperature,
                key=stream(state.imagination_key, "adaptation/filter"),
                belief=state.belief,
            )
        return imagine_instance(
            state.dynamics,
            state.latent,
            state.instance_data,
            self._surroundings(state, state.latent),
            config=self.config,
            deviations=deviations,
            key=stream(state.imagination_key, "adaptation/contexts"),
        )

    def _surroundings(self, state: AdaptationState, latent: Float[Array, " latent"]) -> Surroundings:
        """Reward, start states and limits of imagination."""
        assert state.starts is not None
        model, head = state.model, state.model.reward_head
        if head is None and self.setting.reward == "learned" and not self.knows_family:
            # Scratch knows no rewards but those of this instance.
            assert state.dynamics is not None
            assert state.imagination_key is not None
            data = state.instance_data
            latents = jnp.broadcast_to(latent, (len(data), *latent.shape))
            head_key = stream(state.imagination_key, "adaptation/reward_head")
            head = fit_reward_head(data, state.dynamics.scaling, latents, key=head_key)
        reward = instance_reward(self.setting.reward, self.family, self.setting.theta, head)
        restarts = self.config.restart_known and self.knows_family
        visited = model.support.state if restarts and model.support is not None else None
        return Surroundings(reward, state.starts, np.asarray(model.low), np.asarray(model.high), visited)

    def network(self, state: AdaptationState) -> QNetwork:
        """Q(s) of the policy that controls the next episode; of the first one at the w_b so far."""
        number = self.select_policy(state)
        if number == 0 and self.has_first_policy(state.model):
            return member_policy(state)
        return phases.policy_number(state, number)

    def policy(self, state: AdaptationState) -> Greedy | BeliefPolicy:
        """The greedy policy so far."""
        if self.select_policy(state) == 0 and self.has_first_policy(state.model) and state.belief is not None:
            return belief_policy(state, self.family, self.config)
        return Greedy(self.network(state))

    def select_policy(self, state: AdaptationState) -> int:
        """Number of the policy for the next episode: that of the last tuning, unless another has earned clearly more.

        0 is the policy of the first episode.
        """
        number = phases.select_policy(state, self.config)
        if not self.has_first_policy(state.model) or number == 0 or len(state.policy_index) > FIRST_EPISODES:
            return number
        assert state.learner is not None
        imagined = float(state.learner.best_return)
        return by_evidence(state.policy_index, state.learning_returns, number, imagined)

    def imagined_so_far(self, state: AdaptationState, episodes: int) -> tuple[int, int]:
        """Imagination takes the time."""
        return self.imagining.so_far(state, episodes)

    def completed(self, run: Run, state: AdaptationState, *, batch: Transitions | None, key: PRNGKeyArray) -> Run:
        """With T̂ tuned to the instance; with a batch, the family's model updated from it and the new episodes."""
        run = super().completed(run, state, batch=batch, key=key)
        tuned = replace(run.model, method=self.uses_model_of, dynamics=state.dynamics)
        if batch is not None and self.knows_family:
            assert state.latent is not None
            update_key, rounds = stream(key, "adaptation/update"), self.config.update_rounds
            tuned = update_from_batch(run.model, batch, run.transitions, state.latent, rounds, key=update_key)
        return replace(run, model=tuned, imagination=self.imagined(state))

    def check(self, model: Any, batch: Transitions | None) -> None:
        """T̂ must be of this method's kind, and the reward there."""
        super().check(model, batch)
        dynamics = model.need_dynamics(self.name)
        if dynamics.config.role is not self.role or (dynamics.latents.shape[0] > 0) is not self.knows_family:
            raise ValueError(f"A model of method {model.method!r} cannot be used as {self.name!r}: pre-train one.")
        check_reward(self.setting.reward, self.family)
        if self.setting.reward == "learned" and self.knows_family and model.reward_head is None:
            raise ValueError('reward="learned" needs a model that `pretrain` gave a reward head: pre-train it again.')
        if self.setting.imagine_in == "environment":
            self.family.simulator('imagine_in="environment"')
