"""Real episodes: the ones a method learns from, stepped from Python, and the greedy ones that only judge."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import stream
from hipmdp.adaptation.method import AbstractMethod
from hipmdp.control.policies import BeliefPolicy, Greedy, repeat_theta
from hipmdp.data.experience import steps_to_episode
from hipmdp.families.protocol import AbstractInteraction, BaseFamily, Theta
from hipmdp.families.rollout import Episode, Transition


def interact(
    method: AbstractMethod, state: Any, system: AbstractInteraction, horizon: int, key: PRNGKeyArray
) -> tuple[Any, tuple[Transition, ...]]:
    """One real episode: the method acts, and sees what happens."""
    reset_key, act_key, step_key = jax.random.split(key, 3)
    act_keys, step_keys = tuple(jax.random.split(act_key, horizon)), tuple(jax.random.split(step_key, horizon))
    observation, steps = system.reset(reset_key), []
    for act_key, step_key in zip(act_keys, step_keys, strict=True):
        action, state = method.act(act_key, state, observation)
        next_observation, reward, terminated, truncated = system.step(step_key, action)
        transition = _transition(observation, action, reward, next_observation, terminated)
        state = method.observe(state, transition)
        steps.append(transition)
        observation = next_observation
        if terminated or truncated:
            break
    return state, tuple(steps)


def evaluate(family: BaseFamily, policy: Callable[..., Any], theta: Theta, key: PRNGKeyArray) -> Episode:
    """Greedy episodes (20, or 1 where the start is fixed) in the real environment, from which nothing is learned.

    A built-in policy runs inside jit; any other is a function of one observation.
    """
    keys = jax.random.split(stream(key, "adaptation/evaluation"), family.evaluation_episodes)
    if isinstance(policy, (Greedy, BeliefPolicy)):
        return family.rollouts(policy, keys, repeat_theta(theta, len(keys)))
    with family.interaction(theta) as system:
        episodes = [_rollout(policy, system, family.horizon, key) for key in keys]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *(steps_to_episode(s, family.horizon) for s in episodes))


def is_same(policy: Callable[..., Any], other: Callable[..., Any] | None) -> bool:
    """Whether two built-in policies are the same: then one evaluation serves both."""
    if not isinstance(policy, (Greedy, BeliefPolicy)) or type(policy) is not type(other):
        return False
    return bool(eqx.tree_equal(policy, other))


def _rollout(
    policy: Callable[..., Any], system: AbstractInteraction, horizon: int, key: PRNGKeyArray
) -> tuple[Transition, ...]:
    # As `rollout` does: every method is judged on the same starts.
    loop_key, reset_key = jax.random.split(key)
    observation, steps = system.reset(reset_key), []
    for step_key in jax.random.split(loop_key, horizon):
        action = int(policy(observation))
        next_observation, reward, terminated, truncated = system.step(step_key, action)
        steps.append(_transition(observation, action, reward, next_observation, terminated))
        observation = next_observation
        if terminated or truncated:
            break
    return tuple(steps)


def _transition(state: np.ndarray, action: int, reward: float, next_state: np.ndarray, terminated: bool) -> Transition:
    """One real step, as NumPy values."""
    values: Any = (state, np.int32(action), np.float32(reward), next_state, np.bool_(terminated))
    return Transition(*values)
