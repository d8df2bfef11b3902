"""The phases of Algorithm 1: pure functions from a state to the next state, which carries the record of what was done.

An episode ends → its transitions join 𝒟_b → T̂ is tuned, if that is due → a policy is learned in imagination.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PRNGKeyArray

from hipmdp._random import stream
from hipmdp.adaptation.state import AdaptationState, Phase
from hipmdp.control.policy_learner import (
    PolicyLearner,
    evaluate_imagined,
    learn_in_imagination,
    with_new_network,
)
from hipmdp.control.q_network import QNetwork
from hipmdp.control.selection import by_real_return, is_better
from hipmdp.data.experience import steps_to_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief
from hipmdp.dynamics.infer import infer_latent, tune_model
from hipmdp.dynamics.model import Dynamics
from hipmdp.dynamics.quality import quality
from hipmdp.dynamics.smooth import smoothed
from hipmdp.imagination.build import Imagined
from hipmdp.pretraining.model import Model
from hipmdp.settings.adaptation import FIRST_EPISODES, AdaptationConfig

OnChunk = Callable[[AdaptationState], None]
"""Called at chunk edges with a state from which the same call goes on to the same bits."""


def store_episode(state: AdaptationState) -> AdaptationState:
    """The transitions of the episode that has just ended join 𝒟_b."""
    data = state.instance_data
    episode = steps_to_transitions(data.specification, state.steps, episode=state.episode, thetas=data.thetas)
    value = float(np.sum(episode.reward, dtype=np.float64))
    return replace(
        state,
        instance_data=data.extended(episode),
        learning_returns=(*state.learning_returns, value),
        steps=(),
        chances=(),
        actor=None,
        info={},
    )


def last_episode(state: AdaptationState) -> Transitions:
    """The episode of 𝒟_b that has just ended."""
    data = state.instance_data
    return data.select(data.episode == state.episode)


def model_error(key: PRNGKeyArray, state: AdaptationState) -> float:
    """Error of T̂ on the last episode, which it has not been tuned on; NaN without a T̂."""
    if state.dynamics is None or state.latent is None:
        return float("nan")
    return quality(state.dynamics, last_episode(state), state.latent, key=stream(key, "adaptation/model_error")).error


def smoothed_belief(state: AdaptationState) -> Belief | None:
    """The belief after all of 𝒟_b, where there is one."""
    return None if state.filter is None else smoothed(state.filter, state.instance_data)


def variance_left(state: AdaptationState) -> float:
    """The variance of w_b under the belief, as a share of that before the first episode."""
    assert state.belief is not None
    assert state.filter is not None
    now, before = (float(np.sum(np.asarray(b.spread, np.float64) ** 2)) for b in (state.belief, state.filter.start))
    return now / before


def tune(
    key: PRNGKeyArray,
    state: AdaptationState,
    family: Dynamics,
    *,
    fixed_latent: bool,
    accurate_below: float,
    on_chunk: OnChunk,
) -> AdaptationState:
    """Fit w_b and W to 𝒟_b; w_b alone where that leaves an error below `accurate_below`.

    w_b begins as the most probable one of the belief, where there is one.

    Every tuning starts from the pre-trained W: its posterior is the prior, and no episode counts twice.
    """
    latent, data = state.latent if fixed_latent else None, state.instance_data
    if latent is None and state.belief is not None:
        latent = state.belief.best
    if accurate_below > 0:
        if latent is None:
            latent = infer_latent(family, data, key=stream(key, "adaptation/infer")).value
        error = quality(family, data, latent, key=stream(key, "adaptation/model_error", 1)).error
        state = state.noted(error_after_inference=error)
        if error <= accurate_below:
            return replace(state, dynamics=family, latent=latent)
    tuned = tune_model(
        family,
        data,
        key=stream(key, "adaptation/tune"),
        latent=latent,
        fixed=fixed_latent,
        on_chunk=lambda done, fit: on_chunk(state),
    )
    return replace(state, dynamics=tuned.dynamics, latent=tuned.latent)


def restart_learner(key: PRNGKeyArray, state: AdaptationState, config: AdaptationConfig) -> AdaptationState:
    """An untrained DQN takes the place of the present one; the best policy is kept."""
    number = len(state.previous_policies) + 1
    network = state.model.new_network(config.dqn, stream(key, "adaptation/network", number))
    learner = with_new_network(state.policy_learner, network, config.dqn, stream(key, "adaptation/dqn", number))
    return replace(
        state, learner=learner, imagined_before=state.imagined_before + state.imagined_target, imagined_target=0
    )


def imagine(
    state: AdaptationState, imagined: Imagined, config: AdaptationConfig, *, validation: int, on_chunk: OnChunk
) -> AdaptationState:
    """Learn a policy in imagination, up to `imagined_target` episodes."""

    def with_learner(learner: PolicyLearner) -> None:
        on_chunk(replace(state, learner=learner))

    learner = learn_in_imagination(
        config.dqn,
        imagined.environment,
        imagined.contexts,
        learner=state.policy_learner,
        episodes=state.imagined_target,
        validation_keys=validation_keys(state, validation),
        on_chunk=with_learner,
    )
    return replace(state, learner=learner)


def begin_noted(state: AdaptationState) -> AdaptationState:
    """With a record of where imagination begins, unless it only goes on, after a restart of the DQN or from disk."""
    learner = state.policy_learner
    begin = {
        "imagined_before": state.imagined_before + int(learner.dqn.started),
        "replay_rows_before": int(learner.dqn.replay.size),
        "return_to_beat": state.return_to_beat,
    }
    return state.noted(**{**begin, **state.info})


def end_noted(state: AdaptationState) -> AdaptationState:
    """With a record of what was imagined since."""
    learner = state.policy_learner
    done = state.imagined_before + int(learner.dqn.started)
    imagined = done - int(state.info["imagined_before"])
    return state.noted(imagined_episodes=imagined, imagined_return=float(learner.best_return))


def value_policy(state: AdaptationState, imagined: Imagined, validation: int, *, may_restart: bool) -> AdaptationState:
    """The imagined return of the previous policy in the present model: it is given up only for a higher one."""
    if validation == 0 or not np.isneginf(float(state.policy_learner.best_return)):
        return state
    keys = validation_keys(state, validation)
    returns = evaluate_imagined(imagined.environment, imagined.contexts, state.network, keys)
    # As the learner stores it: what is compared later must not differ by rounding.
    value = float(np.float32(np.mean(returns)))
    learner = state.policy_learner._replace(best_return=jnp.asarray(value, jnp.float32))
    return replace(state, learner=learner, return_to_beat=value if may_restart else None)


def found_nothing_better(state: AdaptationState) -> bool:
    """Whether the DQN's best policy in the present model is still the previous one."""
    if state.return_to_beat is None:
        return False
    return not is_better(float(state.policy_learner.best_return), state.return_to_beat)


def validation_keys(state: AdaptationState, count: int) -> Key[Array, " validation"]:
    """Keys of the greedy imagined episodes by which policies are compared: the same until T̂ is tuned again."""
    assert state.imagination_key is not None
    return jax.random.split(stream(state.imagination_key, "adaptation/validation"), count)


def select_policy(state: AdaptationState, config: AdaptationConfig) -> int:
    """Number of the policy for the next episode: of the last tuning; in long runs of an earlier, clearly better one."""
    if not config.revert_to_better_policy or len(state.policy_index) <= FIRST_EPISODES:
        return state.tunings
    return by_real_return(state.policy_index, state.learning_returns, state.tunings)


def policy_number(state: AdaptationState, number: int) -> QNetwork:
    """The best policy after that many tunings."""
    return state.network if number == state.tunings else state.previous_policies[number - 1]


def next_phase(state: AdaptationState, phase: Phase, **changes: Any) -> AdaptationState:
    """The state at the beginning of `phase`."""
    return replace(state, phase=phase, **changes)


def prior_latent(model: Model, theta: Any, key: PRNGKeyArray) -> Float[Array, " latent"] | None:
    """w_b of an instance of which nothing is known: drawn from the prior, or θ's own where θ is the latent."""
    if model.dynamics is None:
        return None
    if model.oracle is not None:
        return model.oracle.latent(theta)
    prior = model.dynamics.latent_prior
    return prior.mean + jnp.sqrt(prior.variance) * jax.random.normal(key, prior.mean.shape, jnp.float32)
