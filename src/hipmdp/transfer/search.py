"""The best policy we can find on the true dynamics of one instance: a long DDQN, every stage of it evaluated."""

import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp.control.config import DDQNConfig
from hipmdp.control.evaluate import greedy_episodes, repeat_theta
from hipmdp.control.network import QNetwork
from hipmdp.control.presets import DEFAULT
from hipmdp.control.train import copied, new_learner, train
from hipmdp.families.family import AbstractFamily, Theta
from hipmdp.families.rollout import Policy, mean_return, rollouts, success_rate
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


def final_keys(family: AbstractFamily) -> Any:
    """The starts on which every return that is stored was measured: the searched policy's and the simple ones'."""
    return jax.random.split(jax.random.key(1706), 1 if family.fixed_start else BASELINE_EPISODES)


def measured(family: AbstractFamily, theta: Theta, network: QNetwork) -> dict[str, Any]:
    """Return and success of a greedy policy on the starts on which all stored returns are measured."""
    keys = final_keys(family)
    episodes = greedy_episodes(family, network, repeat_theta(theta, len(keys)), keys)
    record: dict[str, Any] = {"return": mean_return(episodes), "success": success_rate(family, episodes)}
    if family.fixed_start:
        # One deterministic episode: its actions prove the return.
        record["actions"] = "".join(str(int(a)) for a in np.asarray(episodes.actions[0]))
    return record


def search(family: AbstractFamily, theta: Theta, seed: int, config: SearchConfig | None = None) -> dict[str, Any]:
    """The best greedy policy met in one long DDQN run: its return, success, and (fixed start) its actions.

    `succeeding` is the best one among those that succeeded in every episode in which they were tried, or None. Policies
    are chosen on 20 starts and then measured on 200 others, so that luck in choosing is not counted as skill.
    """
    config = config or SEARCH[family.name]
    begin = time.perf_counter()
    keys = jax.random.split(jax.random.key(20170618), family.evaluation_episodes)
    lanes = repeat_theta(theta, len(keys))
    state = new_learner(family.specification, config.learner, config.episodes, jax.random.key(seed))
    # name: (return when chosen, network, episode)
    chosen: dict[str, tuple[float, QNetwork, int]] = {}
    for chunk in train(config.learner, family, repeat_theta(theta, 1), state, config.episodes, config.ticks):
        tried = greedy_episodes(family, chunk.state.online, lanes, keys)
        value, succeeds = mean_return(tried), success_rate(family, tried) == 1
        for name in ("best", "succeeding") if succeeds else ("best",):
            if name not in chosen or value > chosen[name][0]:
                chosen[name] = value, copied(chunk.state.online), int(chunk.state.started)
    found: dict[str, Any] = {"best": None, "succeeding": None}
    for name, (_, network, episode) in chosen.items():
        source = {"method": "ddqn", "seed": seed, "episode": episode, "episodes": config.episodes}
        found[name] = {**measured(family, theta, network), **source}
    return {**found, "seconds": round(time.perf_counter() - begin, 1)}


def baselines(family: AbstractFamily, theta: Theta) -> dict[str, Any]:
    """Mean returns of the random policy, each constant action and the family's scripted rule."""

    def value(policy: Policy, keys: Any) -> float:
        return mean_return(rollouts(family, policy, keys, repeat_theta(theta, len(keys))))

    keys = final_keys(family)
    constants = [value(constant_policy(a), keys) for a in range(family.specification.action_count)]
    label, rule = SCRIPTED[family.name]
    return {
        "random": value(random_policy(family), jax.random.split(jax.random.key(1706), BASELINE_EPISODES)),
        "constants": constants,
        "constant": max(constants),
        "scripted": value(rule, keys),
        "scripted_rule": label,
    }


def replay_actions(family: AbstractFamily, theta: Theta, actions: str) -> float:
    """The return of a stored schedule on a family with a fixed start: anybody can check a best known return."""
    schedule = Schedule(jnp.asarray([int(a) for a in actions], jnp.int32))
    return mean_return(rollouts(family, schedule, jax.random.split(jax.random.key(0), 1), repeat_theta(theta, 1)))
