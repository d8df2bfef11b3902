"""The best policy we can find on the true dynamics of one instance: a long DDQN, every stage of it evaluated."""

import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import greedy_episodes, repeat_theta
from hipmdp.control.presets import DEFAULT
from hipmdp.control.train import new_learner, train
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.rollout import Episode, Policy, mean_return, rollouts, success_rate
from hipmdp.families.scripted import SCRIPTED, Schedule, constant_policy, random_policy

BASELINE_EPISODES = 200
"""Episodes behind the mean return of the random policy and of each constant action."""


@dataclass(frozen=True)
class SearchConfig:
    """How long and with what settings to search."""

    learner: DDQNConfig
    episodes: int
    """Episodes of one search."""
    ticks: int
    """Ticks between evaluations."""


# Faster decay of ε and lanes: what finds good policies soonest when real episodes cost nothing.
SEARCH: dict[str, SearchConfig] = {
    "grid": SearchConfig(replace(DEFAULT["grid"], lanes=4), 800, 50),
    "acrobot": SearchConfig(
        replace(DEFAULT["acrobot"], lanes=10, hidden=(128, 128), epsilon_decay=0.98, epsilon_floor=0.02), 600, 40
    ),
    "hiv": SearchConfig(
        replace(DEFAULT["hiv"], lanes=10, minibatches=2, epsilon_decay=0.99, epsilon_floor=0.02), 450, 50
    ),
}


def evaluation_keys(family: AbstractFamily) -> Any:
    """The same starts for every evaluation of every policy, so that returns compare like with like."""
    return jax.random.split(jax.random.key(20170618), family.evaluation_episodes)


def _record(family: AbstractFamily, greedy: Episode, **source: Any) -> dict[str, Any]:
    record = {
        "return": mean_return(greedy),
        "success": success_rate(family, greedy),
        **source,
    }
    if family.fixed_start:
        # One deterministic episode: its actions prove the return.
        record["actions"] = "".join(str(int(a)) for a in np.asarray(greedy.actions[0]))
    return record


def search(family: AbstractFamily, theta: Theta, seed: int, config: SearchConfig | None = None) -> dict[str, Any]:
    """The best greedy policy met in one long DDQN run: its return, success, and (fixed start) its actions.

    `healing` is the best one among those that succeed in every episode, or None.
    """
    config = config or SEARCH[family.name]
    begin = time.perf_counter()
    keys = evaluation_keys(family)
    lanes = repeat_theta(theta, len(keys))
    contexts = repeat_theta(theta, 1)
    state = new_learner(family.specification, config.learner, config.episodes, jax.random.key(seed))
    best: dict[str, Any] | None = None
    succeeding: dict[str, Any] | None = None
    for chunk in train(config.learner, family, contexts, state, config.episodes, config.ticks):
        episodes = greedy_episodes(family, chunk.state.online, lanes, keys)
        found = _record(
            family, episodes, method="ddqn", seed=seed, episode=int(chunk.state.started), episodes=config.episodes
        )
        if best is None or found["return"] > best["return"]:
            best = found
        if found["success"] == 1 and (succeeding is None or found["return"] > succeeding["return"]):
            succeeding = found
    return {"best": best, "succeeding": succeeding, "seconds": round(time.perf_counter() - begin, 1)}


def baselines(family: AbstractFamily, theta: Theta) -> dict[str, Any]:
    """Mean returns of the random policy, each constant action and the family's scripted rule."""
    keys = jax.random.split(jax.random.key(1706), BASELINE_EPISODES)
    lanes = repeat_theta(theta, BASELINE_EPISODES)

    def value(policy: Policy, count: int = BASELINE_EPISODES) -> float:
        part = jax.tree.map(lambda leaf: leaf[:count], lanes)
        return mean_return(rollouts(family, policy, keys[:count], part))

    few = 1 if family.fixed_start else BASELINE_EPISODES
    constants = [value(constant_policy(a), few) for a in range(family.specification.action_count)]
    label, rule = SCRIPTED[family.name]
    return {
        "random": value(random_policy(family)),
        "constants": constants,
        "constant": max(constants),
        "scripted": value(rule, few),
        "scripted_rule": label,
    }


def replay_actions(family: AbstractFamily, theta: Theta, actions: str) -> float:
    """The return of a stored schedule on a family with a fixed start: anybody can check a best known return."""
    schedule = Schedule(jnp.asarray([int(a) for a in actions], jnp.int32))
    return mean_return(rollouts(family, schedule, jax.random.split(jax.random.key(0), 1), repeat_theta(theta, 1)))
