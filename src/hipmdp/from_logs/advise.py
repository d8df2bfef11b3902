"""`advise`: a policy for one system from logs alone, and what it says about the state the system is in now."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from hipmdp._random import root_key, stream
from hipmdp.adaptation.imagining import learn_by_rounds
from hipmdp.control.policies import Greedy
from hipmdp.control.policy import Policy
from hipmdp.control.policy_learner import learn_in_imagination, new_policy_learner
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.control.rounds import RoundsLearner, imagined_return, new_rounds_learner
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import Dynamics
from hipmdp.families.rollout import rollout
from hipmdp.from_logs.rewards import rewards_of
from hipmdp.from_logs.support import log_support
from hipmdp.from_logs.system import known_system
from hipmdp.imagination.build import Imagined, Surroundings, from_state, imagine_instance, starts_of_log
from hipmdp.imagination.reward import log_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.presets import adaptation_preset
from hipmdp.settings.recipe import SQUASH, with_little_exploration

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
    policy: Policy
    """argmax_a Q(s, a): called with a state it gives the action, with rows of states an array of actions."""
    network: QNetwork
    """Q(s, a), with s as `Specification.from_origin` gives it; `policy` takes states as they are."""
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
    config: AdaptationConfig | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Advice:
    """Tune T̂ to the system of `transitions`, learn a policy inside it, and ask it about `state` (by default the last).

    `reward(state, action, next_state)` is written in JAX, and may return (reward, terminated); without it, the reward
    that `pretrain` learned from the logs is used. `on_progress` gets how much of imagination is done, and how much
    there may be.
    """
    dynamics, key = model.need_dynamics("advise"), root_key(seed)
    dynamics.check(transitions)
    config = config or adaptation_preset("default", model.specification)
    now, specification = (
        np.asarray(transitions.next_state[-1] if state is None else state, np.float64),
        model.specification,
    )
    if now.shape != (model.specification.state_size,) or not np.isfinite(now).all():
        raise ValueError(f"The state must be {model.specification.state_size} finite numbers, got {state!r}.")
    rewards = log_reward(reward, model.reward_head, model.specification)
    known = known_system(model, transitions, replace(config, keep_accurate_weights=False), key=key)
    tuned, latent = known.dynamics, known.latent
    starts = starts_of_log(transitions, now, key=stream(key, "logs/starts"))
    around = Surroundings(rewards, starts, np.asarray(model.low), np.asarray(model.high))

    def imagined(config: AdaptationConfig, temperature: float | None, name: str) -> Imagined:
        deviations = known.deviations(transitions, temperature, key=key)
        return imagine_instance(
            tuned, latent, transitions, around, config=config, deviations=deviations, key=stream(key, name)
        )

    config = replace(config, dqn=replace(config.dqn, reward_scale=None, squash=SQUASH))
    rewards_of(transitions, rewards, latent, key=stream(key, "logs/reward"))
    learning = imagined(config, config.latent_temperature, "logs/contexts")
    policy = model.latent_policy if reward is None else None
    begun = None if policy is None else copy_network(policy.at(latent if model.has_latent else jnp.zeros_like(latent)))
    learned_by = config if begun is None else with_little_exploration(config)
    network = _learned(model, learned_by, learning, begun, key=key, on_progress=on_progress)
    # The policy may bear more doubt about w_b than there is; its value is asked of what the data allow.
    futures = imagined(replace(config, weight_draws=FUTURES, mean_weights=False), 1.0, "logs/futures")
    keys = jax.random.split(stream(key, "logs/futures", 1), FUTURES)
    imagined_returns = _returns(from_state(futures, now), network, keys, model.specification.discount)
    returns = np.asarray(imagined_returns, np.float64)
    low, high = np.quantile(returns, (0.025, 0.975), axis=0)
    support = log_support(model, transitions, key=stream(key, "logs/support"))
    spread, values = np.asarray(model.scale), returns.mean(axis=0)
    place = specification.from_origin(now)
    return Advice(
        action=int(values.argmax()),
        values=values,
        low=low,
        high=high,
        distances=support.distances(place, spread, specification.action_count),
        reach=support.reach(spread),
        policy=Policy(specification, Greedy(network)),
        network=network,
        dynamics=tuned,
        latent=latent,
    )


def _learned(
    model: Model,
    config: AdaptationConfig,
    imagined: Imagined,
    known: QNetwork | None,
    *,
    key: PRNGKeyArray,
    on_progress: Callable[[int, int], None],
) -> QNetwork:
    """The best policy that is learned in imagination, or `known`, the family's, where nothing better is found."""
    keys = jax.random.split(stream(key, "logs/validation"), config.validation_episodes)
    environment, contexts, _ = imagined
    dqn_key, network_key = stream(key, "logs/dqn"), stream(key, "logs/network")
    if config.pqn is not None:
        steps, total = config.pqn.steps, config.imagined_rounds * config.iterations * config.pqn.steps
        learner = new_rounds_learner(model.new_network(config.pqn, network_key), config.pqn, dqn_key)
        if known is not None:
            learner = new_rounds_learner(known, config.pqn, dqn_key, unit=model.policy_unit)
            value = imagined_return(environment, contexts, known, keys)
            learner = learner.valued(value, is_own=True)

        def on_chunk(learner: RoundsLearner) -> None:
            on_progress(int(learner.pqn.iteration) * steps, total)

        return learn_by_rounds(config, imagined, learner, keys=keys, on_chunk=on_chunk).best
    episodes = config.imagined_episodes
    capacity = (episodes + config.dqn.lanes) * model.specification.horizon
    return learn_in_imagination(
        config.dqn,
        environment,
        contexts,
        learner=new_policy_learner(model.new_network(config.dqn, network_key), config.dqn, capacity, dqn_key),
        episodes=episodes,
        validation_keys=keys,
        on_chunk=lambda learner: on_progress(min(int(learner.dqn.started), episodes), episodes),
    ).best


class FirstThenGreedy(eqx.Module):
    """One action now, argmax_a Q(s, a) afterwards."""

    first: Int[Array, ""]
    network: QNetwork

    def __call__(self, key: PRNGKeyArray, state: Float[Array, " state"], time: Int[Array, ""]) -> Int[Array, ""]:
        """The action at a step of the episode."""
        return jnp.where(time == 0, self.first, Greedy(self.network)(key, state, time))


@eqx.filter_jit
def _returns(
    imagined: Imagined, network: QNetwork, keys: Key[Array, " futures"], discount: float
) -> Float[Array, "futures actions"]:
    """Discounted imagined returns of each first action and the greedy policy after it, a context per future."""
    environment, contexts = imagined.environment, imagined.contexts
    factors = discount ** jnp.arange(environment.horizon, dtype=jnp.float32)

    def one(key: PRNGKeyArray, context: Any, first: Int[Array, ""]) -> Float[Array, ""]:
        return rollout(environment, FirstThenGreedy(first, network), key, context).steps.reward @ factors

    actions = jnp.arange(network.layers[-1].out_features, dtype=jnp.int32)
    over_actions = jax.vmap(one, in_axes=(None, None, 0))
    return jax.vmap(over_actions, in_axes=(0, 0, None))(keys, contexts, actions)
