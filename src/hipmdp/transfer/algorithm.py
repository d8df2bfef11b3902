"""Algorithm 1: live an episode, tune T̂, imagine, and again.

Keys are folded from the seed by stream and episode, and what changes lives in a `Meeting`: a run that was stopped and
restored goes on to the same bits.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from hipmdp.control.evaluate import EpsilonGreedy
from hipmdp.control.learner import epsilon
from hipmdp.control.network import QNetwork
from hipmdp.control.train import copied
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, Filter, new_filter
from hipmdp.dynamics.infer import tune_model
from hipmdp.dynamics.quality import quality
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.rollout import Environment, mean_return, success_rate
from hipmdp.transfer.adaptive import Adaptive
from hipmdp.transfer.config import FIRST_EPISODES, TransferConfig
from hipmdp.transfer.episodes import adaptive_episode, evaluate, followed_episode, model_free_episode
from hipmdp.transfer.lived import best_lived
from hipmdp.transfer.meeting import Meeting, Phase, no_rows
from hipmdp.transfer.methods import METHODS, Method
from hipmdp.transfer.model import Model
from hipmdp.transfer.simulate import Student, begun_anew, emptied, look, new_student, simulate_episodes, warm_started
from hipmdp.transfer.worlds import Worlds

NETWORK, LEARNER, LATENT, LIVING, FILTER, WEIGHTS, LOOKING, _, STARTING = range(2_000_010, 2_000_019)
"""Key streams; the eighth is `episodes.EVALUATION`."""


@dataclass(frozen=True)
class Algorithm:
    """The fixed part of a run: whom we meet, with what, and how."""

    model: Model
    family: AbstractFamily
    theta: Theta
    """For the real environment and for diagnosis; imagination is told no more of it than its reward is."""
    episodes: int
    seed: int
    config: TransferConfig
    reward: str
    dynamics: str
    """"learned", or "true": imagine in the real environment (diagnosis)."""
    report: Callable[[Meeting], None]
    """Called at chunk edges."""

    @property
    def method(self) -> Method:
        """How the instance is met."""
        return METHODS[self.model.method]

    @property
    def imagines(self) -> bool:
        """Whether the policy is learned in imagination."""
        return self.dynamics == "true" or (self.method.role is not None and self.method.imagines)

    @cached_property
    def filter(self) -> Filter:
        """How the belief about w_b follows what is seen."""
        return new_filter(self.model.need_dynamics("a belief"), self.key(FILTER))

    @property
    def rehearses(self) -> bool:
        """Whether a policy for the family's known members is learned before the first real episode."""
        brings_policy, learned = self.method.amortised, self.imagines and self.dynamics == "learned"
        return self.config.rehearsal and learned and self.method.pretrained and not brings_policy

    @cached_property
    def worlds(self) -> Worlds:
        """What can be imagined."""
        start_key = self.key(STARTING)
        return Worlds(self.model, self.family, self.theta, self.seed, self.config, self.reward, start_key)

    @property
    def conditioned(self) -> QNetwork:
        """Q(s, w)."""
        assert self.model.policy is not None
        return self.model.policy

    def key(self, stream: int, number: int = 0) -> PRNGKeyArray:
        """A key of its own for every purpose."""
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), stream), number)

    def begin(self) -> Meeting:
        """Draw w_b ~ P_W and an untrained policy."""
        config, learner = self.config, self.config.learner
        capacity = (config.most_imagined(self.episodes) if self.imagines else self.episodes) * self.family.horizon
        dynamics, belief = self.model.dynamics, None
        latent = None if dynamics is None else self.model.first_latent(self.theta, self.key(LATENT))
        if self.method.amortised:
            belief, capacity = self.filter.start, capacity if self.imagines else 1
            latent = belief.best
            network = self.conditioned.at(latent)
        else:
            network = self.model.new_network(learner, self.key(NETWORK))
        student = new_student(network, learner, capacity, self.key(LEARNER))
        theta = {k: float(v) for k, v in self.theta._asdict().items()}
        meeting = Meeting(student, dynamics, latent, no_rows(self.family.specification, {0: theta}), belief)
        if self.rehearses:
            meeting.phase, meeting.imagined = Phase.REHEARSE, self.config.imagined_episodes
        return meeting

    def advance(self, meeting: Meeting) -> None:
        """Do what comes next."""
        begin = time.perf_counter()
        {
            Phase.REHEARSE: self._rehearse,
            Phase.LIVE: self._live,
            Phase.TUNE: self._tune,
            Phase.IMAGINE: self._imagine,
            Phase.EVALUATE: self._evaluate,
        }[meeting.phase](meeting, begin)

    def _rehearse(self, meeting: Meeting, begin: float) -> None:
        """N_f imagined episodes with the family's known members: a policy for the first real one."""
        world = self.worlds.of_family(self.key(WEIGHTS), meeting.lived)
        count = jax.tree.leaves(world[1])[0].shape[0]
        keys = jax.random.split(self.key(LOOKING), count if self.config.look_episodes else 0)
        self._simulate(meeting, world, keys, begin)
        meeting.phase = Phase.LIVE

    def _live(self, meeting: Meeting, begin: float) -> None:
        """One real episode, into 𝒟_b."""
        belief, number, key = None, self._followed(meeting), self.key(LIVING, meeting.episode)
        who = self.family, self.theta
        if self.method.amortised and (meeting.episode == 0 or not self.imagines):
            assert meeting.belief is not None
            actor = Adaptive(self.filter, self.conditioned, jnp.asarray(self.config.curiosity, jnp.float32))
            episode, belief = adaptive_episode(*who, actor, meeting.belief, meeting.episode, key)
        elif self.imagines:
            policy = EpsilonGreedy(self.policy(meeting), self._chance(meeting))
            episode = followed_episode(*who, policy, meeting.episode, key)
        else:
            learner = self.config.learner
            episode, meeting.student = model_free_episode(*who, learner, meeting.student, meeting.episode)
        meeting.records["learning_returns"].append(float(np.sum(episode.reward, dtype=np.float64)))
        meeting.records["model_error"].append(self._error(meeting, episode))
        meeting.lived = meeting.lived.extended(episode)
        meeting.followed.append(number)
        if belief is not None:
            self._become(meeting, belief)
        meeting.seconds += time.perf_counter() - begin
        meeting.phase = Phase.TUNE if self.imagines else Phase.EVALUATE

    def _become(self, meeting: Meeting, belief: Belief) -> None:
        """What is believed now, and the policy Q(·, w) that goes with it."""
        meeting.belief, meeting.latent = belief, belief.best
        meeting.student = meeting.student._replace(best=copied(self.conditioned.at(belief.best)))
        if not self.imagines:
            meeting.latents.append(belief.best)

    def _chance(self, meeting: Meeting) -> Float[Array, ""]:
        """ε of the next real episode: as low as imagination has brought it, and 1 before it. Refined ones are greedy.

        So is a rehearsed first one: a policy for the whole family shows more of an instance than its mishaps do.
        """
        chance = epsilon(self.config.learner, meeting.student.learner.started)
        is_greedy = self.method.amortised or (self.rehearses and meeting.episode == 0)
        return jnp.zeros_like(chance) if is_greedy else chance

    def policy(self, meeting: Meeting) -> QNetwork:
        """What the next episode is lived by."""
        number = self._followed(meeting)
        return meeting.student.best if number == meeting.tunings else meeting.earlier[number - 1]

    def _followed(self, meeting: Meeting) -> int:
        """Whose policy that is: of the last tuning; in long runs of an earlier one if that has lived clearly better."""
        decides = self.imagines and self.config.life_decides and len(meeting.followed) > FIRST_EPISODES
        if not decides:
            return meeting.tunings
        return best_lived(meeting.followed, meeting.records["learning_returns"], meeting.tunings)

    def _error(self, meeting: Meeting, episode: Transitions) -> float:
        """Mean L2 error of T̂ on an episode that it has not been tuned on."""
        if meeting.dynamics is None or meeting.latent is None:
            return float("nan")
        return quality(meeting.dynamics, episode, meeting.latent, self.seed).l2

    def _tune(self, meeting: Meeting, begin: float) -> None:
        """When it is due: fit w_b and W to 𝒟_b, and imagine N_f episodes more. Otherwise a few, in the first ten.

        Later a policy stays what it is until the next tuning, so that life can judge it: in a model that has taught all
        it can, the search for what looks better finds the model's errors.

        Every tuning starts from the pre-trained W: its posterior is the prior, and no episode counts twice.
        """
        is_due = self._is_due(meeting)
        if is_due:
            if self.model.dynamics is not None and self.dynamics == "learned":
                oracle = self.model.oracle
                latent = None if oracle is None else meeting.latent
                meeting.dynamics, meeting.latent = tune_model(
                    self.model.dynamics, meeting.lived, self.seed + meeting.episode, latent, oracle is not None,
                    lambda done, state: self.report(meeting),
                )  # fmt: skip
            self._teach_on(meeting)
            meeting.tunings += 1
            meeting.imagined += self.config.imagined_episodes
        goes_on = is_due or self.config.goes_on(meeting.episode)
        if goes_on:
            meeting.imagined += self.config.learner.lanes
        if meeting.latent is not None:
            meeting.latents.append(meeting.latent)
        meeting.seconds += time.perf_counter() - begin
        meeting.phase = Phase.IMAGINE if goes_on else Phase.EVALUATE

    def _is_due(self, meeting: Meeting) -> bool:
        """After the first episode; up to the tenth where the error is above what pre-training leads one to expect
        (scratch: always above); later when there are twice as many."""
        if meeting.episode == 0:
            return True
        if self.dynamics == "true":
            return False
        if meeting.episode >= FIRST_EPISODES:
            return self.config.is_milestone(meeting.episode)
        expected = self.model.report.get("held_out_error", 0.0)
        wrong = meeting.records["model_error"][-1] > self.config.inaccurate_factor * expected
        return wrong and meeting.tunings <= self.config.retunings

    def _teach_on(self, meeting: Meeting) -> None:
        """What was imagined before is worth nothing in the tuned model; the policy may still be."""
        number = meeting.tunings
        if number > 0:
            meeting.earlier.append(meeting.student.best)
        if self.method.amortised and number == 0:
            assert meeting.latent is not None
            meeting.student = warm_started(meeting.student, self.conditioned.at(meeting.latent))
        elif self.rehearses and number == 0:
            # Who has learned to treat all alike is slow to learn to treat this one.
            self._teach_anew(meeting)
        elif self.config.forget:
            meeting.student = emptied(meeting.student)
        meeting.student = meeting.student._replace(best_return=jnp.asarray(-jnp.inf, jnp.float32))

    def _teach_anew(self, meeting: Meeting) -> None:
        """A student who knows nothing takes the place of the one there was; the policy stays."""
        learner, number = self.config.learner, len(meeting.earlier) + 1
        network = self.model.new_network(learner, self.key(NETWORK, number))
        meeting.student = begun_anew(meeting.student, network, learner, self.key(LEARNER, number))
        meeting.forgotten, meeting.imagined = meeting.forgotten + meeting.imagined, 0

    def _imagine(self, meeting: Meeting, begin: float) -> None:
        """Imagined episodes up to the number that is wanted; again by a new student if the old one found nothing."""
        world = self.imagination(meeting)
        keys = jax.random.split(self.key(LOOKING, meeting.tunings), self.config.look_episodes)
        has_policy = self.method.amortised or self.rehearses or meeting.tunings > 1
        if has_policy and len(keys) and np.isneginf(float(meeting.student.best_return)):
            # It is given up only for one that looks better.
            value = jnp.asarray(np.mean(look(*world, meeting.student.best, keys)), jnp.float32)
            meeting.student = meeting.student._replace(best_return=value)
            # Who brings Q(s, w) along has learned it in many models already; after a rehearsal the student is new.
            goes_on = self.config.forget and not self.method.amortised and meeting.tunings > 1
            meeting.to_beat = float(value) if goes_on else None
        self._simulate(meeting, world, keys, begin)
        if meeting.to_beat is not None and float(meeting.student.best_return) <= meeting.to_beat:
            self._teach_anew(meeting)
            meeting.imagined = self.config.imagined_episodes + self.config.learner.lanes
        else:
            meeting.phase = Phase.EVALUATE
        meeting.to_beat = None

    def _simulate(
        self, meeting: Meeting, world: tuple[Environment, Any], keys: Key[Array, " looks"], begin: float
    ) -> None:
        """Imagined episodes in `world` up to the number that is wanted."""
        spent = meeting.seconds

        def report(student: Student) -> None:
            meeting.student = student
            meeting.seconds = spent + time.perf_counter() - begin
            self.report(meeting)

        config, wanted = self.config.learner, meeting.imagined
        meeting.student = simulate_episodes(config, *world, meeting.student, wanted, keys, report)
        meeting.seconds = spent + time.perf_counter() - begin

    def imagination(self, meeting: Meeting) -> tuple[Environment, Any]:
        """What the policy is learned in, and its contexts."""
        if self.dynamics == "true":
            return self.worlds.true()
        assert meeting.dynamics is not None
        assert meeting.latent is not None
        key = self.key(WEIGHTS, meeting.tunings)
        return self.worlds.of_instance(meeting.dynamics, meeting.latent, meeting.lived, key)

    def _evaluate(self, meeting: Meeting, begin: float) -> None:
        """Greedy episodes in the real environment."""
        greedy = evaluate(self.family, self.policy(meeting), self.theta, self.seed)
        meeting.records["returns"].append(mean_return(greedy))
        meeting.records["success"].append(success_rate(self.family, greedy))
        meeting.records["seconds"].append(meeting.seconds)
        meeting.seconds, meeting.phase = 0.0, Phase.LIVE
        meeting.episode += 1
