"""`advise`: a policy for one system from logs alone, and what it says about the state the system is in now."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from hipmdp._random import root_key, stream
from hipmdp.adaptation.guarding import check_limits
from hipmdp.adaptation.imagining import learn_by_rounds
from hipmdp.control.caution import weighted_cvar
from hipmdp.control.guarded import GuardedGreedy
from hipmdp.control.policies import Greedy
from hipmdp.control.policy import Policy
from hipmdp.control.policy_learner import learn_in_imagination, new_policy_learner
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.control.rounds import RoundsLearner, imagined_return, new_rounds_learner
from hipmdp.data.transitions import Transitions
from hipmdp.families.rollout import Policy as Rule
from hipmdp.families.rollout import rollout
from hipmdp.from_logs.advice import Advice
from hipmdp.from_logs.limits import guarded_action, log_guard
from hipmdp.from_logs.rewards import rewards_of
from hipmdp.from_logs.support import log_support
from hipmdp.from_logs.system import known_system
from hipmdp.imagination.build import Imagined, Surroundings, from_state, imagine_instance, starts_of_log
from hipmdp.imagination.reward import log_reward
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.limits import RISK, WITHIN, Limits, check_caution, limits_of
from hipmdp.settings.presets import adaptation_preset
from hipmdp.settings.recipe import SQUASH, with_little_exploration

FUTURES = 64
"""Imagined futures behind the value of an action."""


def advise(
    model: Model,
    transitions: Transitions,
    state: Any = None,
    reward: Callable[..., Any] | None = None,
    seed: int = 0,
    config: AdaptationConfig | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    caution: float = 0.0,
    limits: Limits | Iterable[str] = (),
    risk: float = RISK,
    within: int = WITHIN,
) -> Advice:
    """Tune T̂ to the system of `transitions`, learn a policy inside it, and ask it about `state` (by default the last).

    `reward(state, action, next_state)` is written in JAX, and may return (reward, terminated); without it, the reward
    that `pretrain` learned from the logs is used. `on_progress` gets how much of imagination is done, and how much
    there may be.

    `caution` in [0, 1) recommends by the mean over the worst share 1 − caution of the imagined futures. With `limits`
    on states, such as ("pressure<=6",), an action whose predicted chance of breaking one in any of the next `within`
    states is above `risk` is not recommended, unless all are such: then the safest is. `Advice.policy` keeps them too.
    """
    caution, limit = check_caution(caution), limits_of(limits, risk, within)
    check_limits(model, limit, transitions)
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
    system = known_system(model, transitions, config, key=key)
    tuned, latent = system.dynamics, system.latent
    starts = starts_of_log(transitions, now, key=stream(key, "logs/starts"))
    around = Surroundings(rewards, starts, np.asarray(model.low), np.asarray(model.high))

    deviations = system.deviations(transitions, key=key)

    def imagined(config: AdaptationConfig, name: str) -> Imagined:
        return imagine_instance(
            tuned, latent, transitions, around, config=config, deviations=deviations, key=stream(key, name)
        )

    config = replace(config, dqn=replace(config.dqn, reward_scale=None, squash=SQUASH))
    rewards_of(transitions, rewards, latent, key=stream(key, "logs/reward"))
    learning = imagined(config, "logs/contexts")
    first = model.latent_policy if reward is None else None
    known = None if first is None else copy_network(first.at(latent if model.has_latent else jnp.zeros_like(latent)))
    learned_by = config if known is None else with_little_exploration(config)
    network = _learned(model, learned_by, learning, known, key=key, on_progress=on_progress)
    futures = imagined(replace(config, weight_draws=FUTURES, mean_weights=False), "logs/futures")
    keys = jax.random.split(stream(key, "logs/futures", 1), FUTURES)
    imagined_returns = _returns(from_state(futures, now), network, keys, model.specification.discount)
    returns = np.asarray(imagined_returns, np.float64)
    low, high = np.quantile(returns, (0.025, 0.975), axis=0)
    values = returns.mean(axis=0)
    cautious = weighted_cvar(returns, np.ones(len(returns)), caution) if caution else values
    chances, allowed = np.zeros(len(values)), np.ones(len(values), bool)
    action, place = int(cautious.argmax()), specification.from_origin(now)
    policy: Rule = Greedy(network)
    if limit is not None:
        guard = log_guard(system, transitions, around, network, limit, key=key)
        action, chances, allowed = guarded_action(guard, place, cautious, key=stream(key, "logs/limits_steps"))
        policy = GuardedGreedy(network, guard)
    support = log_support(model, transitions, key=stream(key, "logs/support"))
    spread = np.asarray(model.scale)
    return Advice(
        action=action,
        values=values,
        low=low,
        high=high,
        cautious=cautious,
        chances=chances,
        allowed=allowed,
        distances=support.distances(place, spread, specification.action_count),
        reach=support.reach(spread),
        policy=Policy(specification, policy),
        network=network,
        dynamics=tuned,
        latent=latent,
        caution=caution,
        limits=limit,
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
