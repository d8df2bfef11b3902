"""Living with a model that grows: what is learned from 𝒟, one episode with it, and whether it was right."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.control.evaluate import EpsilonGreedy, repeat_theta
from hipmdp.control.network import QNetwork
from hipmdp.data.episodes import episodes_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, Filter, new_filter
from hipmdp.dynamics.pretrain import instance_rows
from hipmdp.dynamics.quality import quality
from hipmdp.dynamics.reward_head import fit_reward_head
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.play import play, play_lives
from hipmdp.families.scripted import random_policy
from hipmdp.transfer.adaptive import Adaptive
from hipmdp.transfer.amortise import amortise
from hipmdp.transfer.config import AmortiseConfig, amortise_preset
from hipmdp.transfer.growing import Choice, GrowthConfig, Room, bare, fit_family, growth_preset, tiled
from hipmdp.transfer.imagination import Conditioned, Context, Imagination, Perceived, data_limits
from hipmdp.transfer.model import Model
from hipmdp.transfer.pretrain import pretrain
from hipmdp.transfer.rewards import AbstractReward, GivenReward, LearnedReward
from hipmdp.transfer.simulate import look

STARTS = 64
"""First states that imagination knows; fewer are repeated, so that arrays keep their shapes."""
LOOKS = 16
"""Imagined episodes that a real one is compared with."""
FILTER, LOOKING = 1, 2
"""Key streams beside that of the episode itself."""


@dataclass(frozen=True)
class OnlineConfig:
    """How instances are met one after the other."""

    growth: GrowthConfig
    """Which models are tried."""
    amortise: AmortiseConfig
    """How Q(s, w) is learned; the model is young, so less of it than after a large batch."""
    curiosity: float = 0.1
    """Weight of the expected information about w_b (`Adaptive`)."""
    epsilon: float = 0.2
    """Share of random actions in the episode after one that was misjudged; where the model is lost, all are random."""
    young: int = 3
    """So explore all episodes after an instance's first one while fewer instances than this are known."""
    misjudged_factor: float = 2.0
    """A model whose error on an episode is more than this times its held-back error misjudges the system."""
    worse: float = 0.1
    """So does one with which an episode goes worse than three quarters of the imagined ones, by this share of their
    median."""
    refits: int = 2
    """How often everything is learned anew while one instance lasts, before its last episode."""
    reach: float = 0.5
    """How far beyond the range of the data, as a share of it, imagination goes. What was lived so far need not hold the
    goal: that T̂ goes on as it did is worth a try, and the real system corrects it."""
    grown: float = 1.5
    """When 𝒟 is this many times what it was, the size is chosen anew, and after an instance everything is learned anew.
    An instance that was not misjudged is no reason to."""


EPISODES = {"acrobot": 300}
"""Imagined episodes of a policy, fewer than for one that is learned once for good. On acrobot they are long."""
PLAIN_EPISODES, POOLS = 600, 10
LAST_EPSILON = 0.015
"""ε falls to this over the imagined episodes."""


def online_preset(family: AbstractFamily) -> OnlineConfig:
    """The settings for a family."""
    own = amortise_preset("default", family.specification)
    episodes = EPISODES.get(family.name, PLAIN_EPISODES)
    # No restarts from states met before: they would bring along the w of another member (measured: Q never settles).
    learner = replace(own.learner, epsilon_decay=LAST_EPSILON ** (1 / episodes), restart_share=0.0)
    own = replace(own, episodes=episodes, pools=POOLS, learner=learner)
    return OnlineConfig(growth_preset(family.specification), own)


class Judgement(NamedTuple):
    """What an episode says about the model it was lived with."""

    error: float
    """Mean L2 error of T̂, standardised; NaN without a model."""
    wrong: bool
    """The model misjudged the system."""
    lost: bool
    """So wrong that the episode went worse than any imagined one: what was lived with it (against a wall, say) teaches
    little, and the next episode is better random."""


class Exploring(eqx.Module):
    """An actor some of whose actions are random."""

    actor: Adaptive
    epsilon: Float[Array, ""]

    def act(
        self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""], memory: Belief
    ) -> Int[Array, ""]:
        """The actor's action, or any."""
        own_key, explore_key, uniform_key = jax.random.split(key, 3)
        count = self.actor.filter.dynamics.specification.action_count
        random = jax.random.randint(uniform_key, (), 0, count, jnp.int32)
        chosen = self.actor.act(own_key, state, time, memory)
        return jnp.where(jax.random.uniform(explore_key) < self.epsilon, random, chosen)

    def observe(
        self, memory: Belief, state: Float[Array, " state"], action: Int[Array, ""], next_state: Float[Array, " state"]
    ) -> Belief:
        """What the actor believes after one transition."""
        return self.actor.observe(memory, state, action, next_state)


def learn_family(
    family: AbstractFamily, batch: Transitions, choice: Choice, config: OnlineConfig, room: Room, seed: int
) -> Model:
    """T̂ of the chosen size, fitted to all of 𝒟, the reward where R does not say it, and Q(s, w)."""
    dynamics = fit_family(batch, choice.size, config.growth, room, seed)
    plain = pretrain(batch, "model_free", seed)
    low, high, spec = np.asarray(plain.low), np.asarray(plain.high), family.specification
    slack = config.reach * (high - low)
    low, high = np.maximum(low - slack, spec.state_low), np.minimum(high + slack, spec.state_high)
    head = None
    if not _is_given(family):
        latents = dynamics.latents[instance_rows(batch, batch.instances)]
        head = fit_reward_head(batch, dynamics.scaling, latents, seed)
    model = replace(
        plain, method="embedded", dynamics=tiled(dynamics, room.instances), reward_head=head,
        low=tuple(map(float, low)), high=tuple(map(float, high)), report={"held_out_error": choice.error},
    )  # fmt: skip
    learned = amortise(model, _firsts(batch), seed, config=config.amortise, family=family, quiet=True)
    return learned.with_dynamics(dynamics)


@dataclass
class Met:
    """The instance under way."""

    family: AbstractFamily
    theta: Theta
    number: int
    """Its id in 𝒟."""
    config: OnlineConfig
    model: Model | None
    own: Float[Array, " latent"] | None = None
    """Its w_b, once the model was fitted with it."""
    filter: Filter | None = None
    belief: Belief | None = None
    chance: float = 0.0
    """Share of random actions in the next episode."""

    @property
    def latent(self) -> Float[Array, " latent"]:
        """W_b as far as it is known: fitted, believed, or that of the only instance there is."""
        assert self.model is not None
        known = self.model.need_dynamics("online").latents[0]
        return self.own if self.own is not None else known if self.belief is None else self.belief.best

    def live(self, episode: int, key: PRNGKeyArray) -> Transitions:
        """One episode: random where nothing is known, by Q(·, w_b) where w_b was fitted, otherwise under the belief."""
        keys, thetas = key[None], repeat_theta(self.theta, 1)
        chance = jnp.asarray(self.chance, jnp.float32)
        if self.model is None or self.chance == 1:
            lived = play(self.family, random_policy(self.family), keys, thetas)
        elif self.own is not None or self.model.need_dynamics("online").latents.shape[0] < 2:
            # T̂ of one instance has learned nothing about w: there is nothing to infer.
            lived = play(self.family, EpsilonGreedy(_policy(self.model).at(self.latent), chance), keys, thetas)
        else:
            if self.filter is None:
                told = new_filter(self.model.need_dynamics("online"), jax.random.fold_in(key, FILTER))
                self.filter = eqx.tree_at(lambda f: f.dynamics, told, bare(told.dynamics))
            curiosity = jnp.asarray(self.config.curiosity, jnp.float32)
            actor = Exploring(Adaptive(self.filter, _policy(self.model), curiosity), chance)
            lived, beliefs = play_lives(self.family, actor, self.belief or self.filter.start, keys, thetas)
            self.belief = jax.tree.map(lambda leaf: leaf[0], beliefs)
        return episodes_to_transitions(self.family, lived, self.theta, episode).renumbered(self.number)

    def judge(self, episode: Transitions, batch: Transitions, key: PRNGKeyArray) -> Judgement:
        """Compare the episode with what was predicted, and its return with what was imagined."""
        if self.model is None:
            return Judgement(float("nan"), True, False)
        family = self.model.need_dynamics("online")
        error = quality(bare(family), episode, self.latent).l2
        if self.chance == 1:
            # It was random because the model was lost.
            return Judgement(error, True, False)
        here, known = (self._imagined(batch, key, latents) for latents in (self.latent[None], family.latents))
        value = float(np.sum(episode.reward, dtype=np.float64))
        wrong = error > self.config.misjudged_factor * self.model.report["held_out_error"]
        worse = value < self._least(here)
        # Q was not learned for this w_b: even in imagination it does worse than on any known instance.
        unprepared = float(np.median(here)) < self._least(known) and value < self._least(known)
        return Judgement(error, wrong or worse or unprepared, wrong and worse and value < float(np.min(here)))

    def _imagined(self, batch: Transitions, key: PRNGKeyArray, latents: Float[Array, "some latent"]) -> np.ndarray:
        """Returns of the policy in imagination, on `LOOKS` members with these latents in turn."""
        assert self.model is not None
        dynamics = bare(self.model.need_dynamics("online"))
        limits = data_limits(np.asarray(self.model.low), np.asarray(self.model.high))
        starts = jnp.asarray(_firsts(batch).state)
        imagination = Conditioned(Imagination(dynamics, _reward(self.model, self.family), starts, limits))
        weights = dynamics.draw_weights(key, LOOKS)[:, None]
        own = latents[jnp.arange(LOOKS, dtype=jnp.int32) % latents.shape[0]]
        return look(
            imagination, Perceived(Context(weights, own), own), _policy(self.model), jax.random.split(key, LOOKS)
        )

    def _least(self, imagined: np.ndarray) -> float:
        """Below this an episode went worse than was imagined."""
        return float(np.quantile(imagined, 0.25) - self.config.worse * abs(np.median(imagined)))

    def become(self, model: Model) -> None:
        """Go on with a model that was fitted with this instance as its newest."""
        self.model, self.own, self.filter, self.belief = model, model.need_dynamics("online").latents[-1], None, None


def _policy(model: Model) -> QNetwork:
    assert model.policy is not None
    return model.policy


def _firsts(batch: Transitions) -> Transitions:
    """First rows of episodes, the latest ones, always as many."""
    first = np.flatnonzero(batch.time == 0)[::-1]
    return batch.select(first[np.arange(STARTS) % len(first)])


def _is_given(family: AbstractFamily) -> bool:
    return family.knows_reward and not family.reward_needs_theta


def _reward(model: Model, family: AbstractFamily) -> AbstractReward:
    """R where it needs no θ, otherwise what was learned from the rewards that were paid."""
    if _is_given(family):
        return GivenReward(family, None)
    assert model.reward_head is not None
    return LearnedReward(model.reward_head)
