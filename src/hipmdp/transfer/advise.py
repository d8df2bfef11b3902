"""`advise`: a policy for one system from logs alone, and what it says about the state the system is in now."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from hipmdp.control.evaluate import Greedy
from hipmdp.control.network import QNetwork
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.infer import latent_covariance, tune_model
from hipmdp.dynamics.model import Dynamics
from hipmdp.families.rollout import rollout
from hipmdp.transfer.config import TransferConfig
from hipmdp.transfer.config import preset as transfer_preset
from hipmdp.transfer.imagination import Context, Imagination, data_limits, draw_contexts
from hipmdp.transfer.model import Model
from hipmdp.transfer.rewards import AbstractReward, FunctionReward, LearnedReward
from hipmdp.transfer.simulate import Student, new_student, simulate_episodes
from hipmdp.transfer.support import Support

NETWORK, LEARNER, WEIGHTS, LOOKING, VALUING = range(3_000_001, 3_000_006)
"""Key streams."""
STARTS = 256
"""Logged states from which imagined episodes start."""
FUTURES = 64
"""Imagined futures behind the value of an action."""


@dataclass(frozen=True)
class Advice:
    """What to do now, and why."""

    action: int
    """The recommended one."""
    values: np.ndarray
    """[a]: mean discounted return of a now and the policy afterwards, in imagination."""
    low: np.ndarray
    """[a]: 2.5 % of the imagined futures are worse."""
    high: np.ndarray
    """[a]: 2.5 % are better."""
    distances: np.ndarray
    """[a]: from the state to the nearest logged one in which a was taken, in spreads of the states."""
    reach: float
    """Where a distance is larger than this, nobody has tried that action near that state."""
    network: QNetwork
    """The policy: argmax_a Q(s, a)."""
    dynamics: Dynamics
    """T̂, tuned to the system."""
    latent: Float[Array, " latent"]

    @property
    def supported(self) -> np.ndarray:
        """[a]: whether a was taken near the state."""
        return self.distances <= self.reach


def advise(
    model: Model,
    transitions: Transitions,
    state: Any = None,
    reward: Callable[..., Any] | None = None,
    seed: int = 0,
    config: TransferConfig | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Advice:
    """Tune T̂ to the system of `transitions`, learn a policy inside it, and ask it about `state` (by default the last).

    `reward(state, action, next_state)` is written in JAX, and may return (reward, terminated); without it, the reward
    that `pretrain` learned from the logs is used. `report` gets imagined episodes done and in all.
    """
    dynamics = model.need_dynamics("advise")
    dynamics.check(transitions)
    config = config or transfer_preset("default", model.specification)
    now = np.asarray(transitions.next_state[-1] if state is None else state, np.float32)
    if now.shape != (model.specification.state_size,) or not np.isfinite(now).all():
        raise ValueError(f"The state must be {model.specification.state_size} finite numbers, got {state!r}.")
    rewards: AbstractReward
    if reward is not None:
        rewards = FunctionReward(reward, model.specification)
    elif model.reward_head is not None:
        rewards = LearnedReward(model.reward_head)
    else:
        raise ValueError("A policy needs a reward: a column of the logs, or a function (--reward module:function).")
    tuned, latent = tune_model(dynamics, transitions, seed)
    environment = _imagination(model, tuned, transitions, rewards, now, seed)
    contexts = _contexts(model, tuned, latent, transitions, config, config.latent_temperature, seed)
    learner = replace(config.learner, reward_scale=_reward_scale(rewards, transitions, latent))
    student = _learned(model, replace(config, learner=learner), environment, contexts, seed, report)
    # The policy was made to bear more doubt about w_b than there is; what it is worth is asked of what the data allow.
    futures = _contexts(
        model, tuned, latent, transitions, replace(config, weight_draws=FUTURES, mean_weights=False), 1.0, seed
    )
    keys = jax.random.split(_key(seed, VALUING), FUTURES)
    from_now = eqx.tree_at(lambda e: e.starts, environment, jnp.asarray(now)[None])
    returns = _returns(from_now, futures, student.best, keys, model.specification.discount)
    low, high = np.quantile(np.asarray(returns, np.float64), (0.025, 0.975), axis=0)
    support = Support.sample(transitions, seed)
    if model.support is not None:
        support = model.support.joined(support)
    scale = np.asarray(model.scale)
    values = np.asarray(returns, np.float64).mean(axis=0)
    gaps = support.distances(now, scale, model.specification.action_count)
    return Advice(int(values.argmax()), values, low, high, gaps, support.reach(scale), student.best, tuned, latent)


def _key(seed: int, stream: int) -> PRNGKeyArray:
    return jax.random.fold_in(jax.random.key(seed), stream)


def _imagination(
    model: Model, dynamics: Dynamics, transitions: Transitions, reward: AbstractReward, now: np.ndarray, seed: int
) -> Imagination:
    """Episodes start where the system has been, every other one where it is now."""
    rows = np.random.default_rng(seed).choice(len(transitions), STARTS // 2)
    starts = np.concatenate([transitions.state[rows], np.broadcast_to(now, (STARTS // 2, len(now)))])
    both = np.concatenate([transitions.state, transitions.next_state])
    limits = data_limits(np.minimum(model.low, both.min(axis=0)), np.maximum(model.high, both.max(axis=0)))
    return Imagination(dynamics, reward, jnp.asarray(starts), limits)


def _contexts(
    model: Model,
    dynamics: Dynamics,
    latent: Float[Array, " latent"],
    transitions: Transitions,
    config: TransferConfig,
    temperature: float,
    seed: int,
) -> Context:
    """Functions and latents that the data allow, or more at a higher temperature."""
    covariance = None
    if model.has_latent and temperature > 0:
        covariance = latent_covariance(dynamics, transitions, latent, temperature)
    key = _key(seed, WEIGHTS)
    return draw_contexts(dynamics, latent, key, config.weight_draws, config.mean_weights, covariance)


def _reward_scale(reward: AbstractReward, transitions: Transitions, latent: Float[Array, " latent"]) -> float:
    """One over the spread of the rewards that the log would have earned: the learner wants them of order one."""
    columns = (jnp.asarray(c) for c in (transitions.state, transitions.action, transitions.next_state))
    values, _ = jax.vmap(lambda s, a, n: reward(s, a, n, latent))(*columns)
    spread = float(np.std(np.asarray(values, np.float64)))
    if not np.isfinite(spread):
        raise ValueError("The reward is not finite in some logged transition.")
    return 1 / max(spread, 1e-6)


def _learned(
    model: Model,
    config: TransferConfig,
    environment: Imagination,
    contexts: Context,
    seed: int,
    report: Callable[[int, int], None],
) -> Student:
    learner, total = config.learner, config.imagined_episodes
    network = model.new_network(learner, _key(seed, NETWORK))
    capacity = (total + learner.lanes) * environment.horizon
    student = new_student(network, learner, capacity, _key(seed, LEARNER))
    looks = jax.random.split(_key(seed, LOOKING), config.look_episodes)

    def told(student: Student) -> None:
        report(min(int(student.learner.started), total), total)

    return simulate_episodes(learner, environment, contexts, student, total, looks, told)


class FirstThenGreedy(eqx.Module):
    """One action now, argmax_a Q(s, a) afterwards."""

    first: Int[Array, ""]
    network: QNetwork

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The action at a step of the episode."""
        return jnp.where(time == 0, self.first, Greedy(self.network)(key, state, time))


@eqx.filter_jit
def _returns(
    environment: Imagination,
    contexts: Context,
    network: QNetwork,
    keys: Key[Array, " futures"],
    discount: float,
) -> Float[Array, "futures actions"]:
    """Discounted imagined returns of each first action and the greedy policy after it, a context per future."""
    factors = discount ** jnp.arange(environment.horizon, dtype=jnp.float32)

    def one(key: PRNGKeyArray, context: Context, first: Int[Array, ""]) -> Float[Array, ""]:
        return rollout(environment, FirstThenGreedy(first, network), key, context).rewards @ factors

    actions = jnp.arange(environment.dynamics.specification.action_count, dtype=jnp.int32)
    over_actions = jax.vmap(one, in_axes=(None, None, 0))
    return jax.vmap(over_actions, in_axes=(0, 0, None))(keys, contexts, actions)
