"""The best policy we can find on the true dynamics of one instance: a long DDQN, every stage of it evaluated."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._random import root_key, stream
from hipmdp.control.policies import Greedy, greedy_episodes, repeat_theta
from hipmdp.control.q_network import QNetwork, copy_network
from hipmdp.control.selection import is_better
from hipmdp.control.train import new_dqn, train
from hipmdp.families.protocol import BaseFamily, Theta
from hipmdp.families.rollout import Policy, mean_return, success_rate
from hipmdp.families.scripted import Schedule, constant_policy, random_policy
from hipmdp.settings import recipe
from hipmdp.settings.instance_search import SearchConfig
from hipmdp.study.instance_search import value_iteration

BASELINE_EPISODES = 200
"""Episodes behind the mean return of the random policy and of each constant action."""


def final_keys(family: BaseFamily) -> Any:
    """The starts on which every stored return is measured: the searched policy's and those of simple policies."""
    return jax.random.split(_measured_key(), 1 if family.fixed_start else BASELINE_EPISODES)


def _measured_key() -> PRNGKeyArray:
    return stream(root_key(0), "study/measured")


def measured(family: BaseFamily, theta: Theta, policy: Policy) -> dict[str, Any]:
    """Return and success of a policy on the starts on which all stored returns are measured."""
    keys = final_keys(family)
    episodes = family.rollouts(policy, keys, repeat_theta(theta, len(keys)))
    record: dict[str, Any] = {"return": mean_return(episodes), "success": success_rate(family, episodes)}
    if family.fixed_start:
        # One deterministic episode: its actions prove the return.
        record["actions"] = "".join(str(int(a)) for a in np.asarray(episodes.steps.action[0]))
    return record


def search(family: BaseFamily, theta: Theta, seed: int, config: SearchConfig | None = None) -> dict[str, Any]:
    """The best greedy policy of one long DDQN run: its return, success, and (fixed start) its actions.

    Where states have so few dimensions that value iteration is possible, its policy is the one, whatever the seed.
    `succeeding` is the best one among those that succeeded in every episode in which they were tried, or None. Policies
    are chosen on 20 starts and then measured on 200 others, so that luck in choosing is not counted as skill.
    """
    begin = time.perf_counter()
    if config is None and value_iteration.is_possible(family):
        best = {**measured(family, theta, value_iteration.best_policy(family, theta)), "method": "value iteration"}
        succeeding = best if best["success"] == 1 else None
        return {"best": best, "succeeding": succeeding, "seconds": round(time.perf_counter() - begin, 1)}
    config = config or recipe.search(family.specification)
    keys = jax.random.split(stream(root_key(0), "study/search_validation"), family.evaluation_episodes)
    lanes = repeat_theta(theta, len(keys))
    state = new_dqn(family.specification, config.dqn, config.episodes, stream(root_key(seed), "study/search"))
    # name: (return when chosen, network, episode)
    chosen: dict[str, tuple[float, QNetwork, int]] = {}
    for chunk in train(config.dqn, family, repeat_theta(theta, 1), state, config.episodes, config.ticks):
        tried = greedy_episodes(family, chunk.state.online, lanes, keys)
        value, succeeds = mean_return(tried), success_rate(family, tried) == 1
        for name in ("best", "succeeding") if succeeds else ("best",):
            if name not in chosen or is_better(value, chosen[name][0]):
                chosen[name] = value, copy_network(chunk.state.online), int(chunk.state.started)
    found: dict[str, Any] = {"best": None, "succeeding": None}
    for name, (_, network, episode) in chosen.items():
        source = {"method": "ddqn", "seed": seed, "episode": episode, "episodes": config.episodes}
        found[name] = {**measured(family, theta, Greedy(network)), **source}
    return {**found, "seconds": round(time.perf_counter() - begin, 1)}


def baselines(family: BaseFamily, theta: Theta) -> dict[str, Any]:
    """Mean returns of the random policy, each constant action and the family's scripted rule."""

    def value(policy: Policy, keys: Any) -> float:
        return mean_return(family.rollouts(policy, keys, repeat_theta(theta, len(keys))))

    keys = final_keys(family)
    constants = [value(constant_policy(a), keys) for a in range(family.specification.action_count)]
    if family.scripted_rule is None:
        raise ValueError(f"{family.name} has no scripted rule to compare with: give it a scripted_rule.")
    label, rule = family.scripted_rule
    return {
        "random": value(random_policy(family), jax.random.split(_measured_key(), BASELINE_EPISODES)),
        "constants": constants,
        "constant": max(constants),
        "scripted": value(rule, keys),
        "scripted_rule": label,
    }


def replay_actions(family: BaseFamily, theta: Theta, actions: str) -> float:
    """The return of a stored schedule on a family with a fixed start: how to check a best known return."""
    schedule = Schedule(jnp.asarray([int(a) for a in actions], jnp.int32))
    return mean_return(family.rollouts(schedule, jax.random.split(_measured_key(), 1), repeat_theta(theta, 1)))
