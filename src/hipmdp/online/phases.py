"""The two phases of an `online` run: an episode with the model so far, and learning the family anew where it is due.

Each maps a state to the next one and says what happened; nothing else changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.control.policies import BeliefActor, EpsilonGreedy, ExploringActor, repeat_theta
from hipmdp.control.policy_learner import evaluate_imagined
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.data.work import Work
from hipmdp.dynamics.belief import Belief, new_filter
from hipmdp.dynamics.fit_family import Capacity
from hipmdp.dynamics.model import instance_rows
from hipmdp.dynamics.quality import quality
from hipmdp.dynamics.reward_head import fit_reward_head
from hipmdp.dynamics.standardise import padded_size
from hipmdp.families.instance import Instance
from hipmdp.families.protocol import BaseFamily
from hipmdp.families.scripted import random_policy
from hipmdp.imagination.build import Surroundings, conditioned_environment, starts_of_batch
from hipmdp.imagination.contexts import ConditionedContext, Context
from hipmdp.imagination.reward import family_reward, is_shared
from hipmdp.online.model_size import Choice, choose_size, fit_size, padded_latents, single_latent
from hipmdp.online.state import OnlineState
from hipmdp.pretraining.amortise import learn_latent_policy
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.pretrain import standardised_model
from hipmdp.settings.online import OnlineConfig

Info = dict[str, Any]
"""What happened in a phase."""
IMAGINED = 16
"""Imagined episodes that a real one is compared with."""


@dataclass(frozen=True)
class OnlineTask:
    """What does not change during a run."""

    family: BaseFamily
    instances: Sequence[Instance]
    episodes: int
    """With each instance."""
    config: OnlineConfig
    key: PRNGKeyArray

    @property
    def capacity(self) -> Capacity:
        """What 𝒟 will hold at the end."""
        count = len(self.instances)
        return Capacity(max(2, count), padded_size(count * self.episodes * self.family.horizon))


class Judgement(NamedTuple):
    """What an episode says about the model it was controlled with."""

    error: float
    """Error of T̂ on it (RMSE per dimension, standardised); NaN without a model."""
    wrong: bool
    """The model misjudged the system."""
    lost: bool
    """So wrong that the episode went worse than any imagined one: such an episode (against a wall, say) teaches little,
    and the next one is better random."""


def learn_family(
    family: BaseFamily,
    batch: Transitions,
    choice: Choice,
    config: OnlineConfig,
    capacity: Capacity,
    *,
    key: PRNGKeyArray,
    work: Work | None = None,
) -> Model:
    """T̂ of the chosen size, fitted to all of 𝒟, the reward where R does not say it, and Q(s, w)."""
    work = work or Work()
    dynamics = fit_size(batch, choice.size, config.growth, capacity, key=key, work=work.file("fit"))
    plain = standardised_model(batch, "embedded", key=key, metadata={})
    low, high, spec = np.asarray(plain.low), np.asarray(plain.high), family.specification
    slack = config.range_margin * (high - low)
    low, high = np.maximum(low - slack, spec.state_low), np.minimum(high + slack, spec.state_high)
    head = None
    if not is_shared(family):
        latents = dynamics.latents[instance_rows(batch, batch.instances)]
        head = fit_reward_head(batch, dynamics.scaling, latents, key=stream(key, "pretrain/reward_head"))
    model = replace(
        plain,
        dynamics=padded_latents(dynamics, capacity.instances),
        reward_head=head,
        low=tuple(map(float, low)),
        high=tuple(map(float, high)),
        metrics={"error_on_held_out_episodes": choice.error},
    )
    amortise_key = stream(key, "online/amortise")
    learned = learn_latent_policy(model, batch, config.amortise, family=family, key=amortise_key, quiet=True, work=work)
    return replace(learned, method="amortised", dynamics=dynamics)


def interact(task: OnlineTask, state: OnlineState) -> tuple[OnlineState, Info]:
    """One episode with the instance under way, and what it says about the model."""
    number, index, config = state.number, state.episode, task.config
    episode, belief = _episode(task, state)
    batch = episode if state.batch is None else state.batch.extended(episode)
    state = replace(state, batch=batch, belief=belief)
    judgement = judge(task, state, episode, stream(task.key, "online/judge", number, index))
    value = float(np.sum(episode.reward, dtype=np.float64))
    explores = judgement.wrong or number < config.exploring_instances
    in_doubt = state.in_doubt or judgement.wrong
    last = index == task.episodes - 1
    # What is learned now would not be used in an episode that is random.
    at_once = judgement.wrong and not judgement.lost and state.fits < config.refits
    state = replace(
        state,
        returns=(*state.returns, value),
        model_error=(*state.model_error, judgement.error),
        misjudged=(*state.misjudged, judgement.wrong),
        epsilon=1.0 if judgement.lost else config.epsilon if explores else 0.0,
        in_doubt=in_doubt,
        is_due=at_once or (last and (in_doubt or _has_grown(batch, state.model, config))),
    )
    return state, {"return": value, **judgement._asdict()}


def learn(task: OnlineTask, state: OnlineState, work: Work | None = None) -> tuple[OnlineState, Info]:
    """Learn the family anew from all of 𝒟; with `work`, what was done before is not done again."""
    assert state.batch is not None
    number, index, config = state.number, state.episode - 1, task.config
    work, choice = work or Work(), state.choice
    if choice is None or len(state.batch) >= config.growth_factor * choice.rows:
        choice = _chosen(task, state.batch, stream(task.key, "online/size", number, index), work)
    fit_key = stream(task.key, "online/fit", number, index)
    model = learn_family(task.family, state.batch, choice, config, task.capacity, key=fit_key, work=work)
    return state.with_model(model, choice), {"size": choice.size}


def _chosen(task: OnlineTask, batch: Transitions, key: PRNGKeyArray, work: Work) -> Choice:
    """The size that held-out data ask for."""
    file = work.file("choice")
    kept = file.load(lambda meta: ())
    if kept is not None:
        return Choice.from_dict(kept[1])
    choice = choose_size(batch, task.config.growth, task.capacity, key=key, work=work.unkept())
    file.save((), choice._asdict())
    return choice


def _has_grown(batch: Transitions, model: Model | None, config: OnlineConfig) -> bool:
    """Whether there is much more in 𝒟 than the model was fitted to."""
    return model is None or len(batch) >= config.growth_factor * model.metadata["transitions"]


def _episode(task: OnlineTask, state: OnlineState) -> tuple[Transitions, Belief | None]:
    """One episode: random where nothing is known, by Q(·, w_b) where w_b was fitted, otherwise under the belief."""
    family, model, number, index = task.family, state.model, state.number, state.episode
    theta = task.instances[number].theta
    keys, thetas = stream(task.key, "online/episode", number, index)[None], repeat_theta(theta, 1)
    epsilon, belief = jnp.asarray(state.epsilon, jnp.float32), state.belief
    if model is None or state.epsilon == 1:
        steps = family.rollouts(random_policy(family), keys, thetas)
    elif state.is_fitted or model.need_dynamics("online").latents.shape[0] < 2:
        # T̂ of one instance has learned nothing about w: there is nothing to infer.
        policy = EpsilonGreedy(model.need_latent_policy("online").at(state.latent), epsilon)
        steps = family.rollouts(policy, keys, thetas)
    else:
        chosen = new_filter(model.need_dynamics("online"), stream(task.key, "online/filter", number))
        chosen = eqx.tree_at(lambda f: f.dynamics, chosen, single_latent(chosen.dynamics))
        weight = jnp.asarray(task.config.information_weight, jnp.float32)
        actor = BeliefActor(chosen, model.need_latent_policy("online"), weight)
        steps, beliefs = family.rollout_actors(ExploringActor(actor, epsilon), belief or chosen.start, keys, thetas)
        belief = jax.tree.map(lambda leaf: leaf[0], beliefs)
    return episodes_to_transitions(family, steps, theta, index).renumbered(number), belief


def judge(task: OnlineTask, state: OnlineState, episode: Transitions, key: PRNGKeyArray) -> Judgement:
    """Compare the last episode of 𝒟 with what was predicted, and its return with what was imagined."""
    if state.model is None:
        return Judgement(float("nan"), True, False)
    model, dynamics, config = state.model, state.model.need_dynamics("online"), task.config
    error_key, here_key, known_key = jax.random.split(key, 3)
    error = quality(single_latent(dynamics), episode, state.latent, key=error_key).error
    if state.epsilon == 1:
        # It was random because the model was lost.
        return Judgement(error, True, False)
    here = _imagined_returns(task, state, here_key, state.latent[None])
    known = _imagined_returns(task, state, known_key, dynamics.latents)
    value = float(np.sum(episode.reward, dtype=np.float64))
    wrong = error > config.misjudged_factor * model.expected_error
    worse = value < _least(here, config)
    # Q was not learned for this w_b: even in imagination it does worse than on any known instance.
    unprepared = float(np.median(here)) < _least(known, config) and value < _least(known, config)
    return Judgement(error, wrong or worse or unprepared, wrong and worse and value < float(np.min(here)))


def _imagined_returns(
    task: OnlineTask, state: OnlineState, key: PRNGKeyArray, latents: Float[Array, "some latent"]
) -> np.ndarray:
    """Returns of the policy in imagination, on members with these latents in turn."""
    model, batch = state.model, state.batch
    assert model is not None
    assert batch is not None
    dynamics = single_latent(model.need_dynamics("online"))
    start_key, weight_key, episode_key = jax.random.split(key, 3)
    around = Surroundings(
        family_reward(task.family, model.reward_head, task.family.name),
        starts_of_batch(batch, key=start_key),
        np.asarray(model.low),
        np.asarray(model.high),
    )
    weights = dynamics.draw_weights(weight_key, IMAGINED)[:, None]
    own = latents[jnp.arange(IMAGINED, dtype=jnp.int32) % latents.shape[0]]
    return evaluate_imagined(
        conditioned_environment(dynamics, around),
        ConditionedContext(Context(weights, own), own),
        model.need_latent_policy("online"),
        jax.random.split(episode_key, IMAGINED),
    )


def _least(imagined: np.ndarray, config: OnlineConfig) -> float:
    """Below this an episode went worse than was imagined."""
    return float(np.quantile(imagined, 0.25) - config.worse_share * abs(np.median(imagined)))
