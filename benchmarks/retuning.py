"""Which DQN should learn in a model that has just been tuned again: the present one, or a new one?

    python benchmarks/retuning.py [--methods linear average scratch embedded] [--instances 3] [--seed 0]

Algorithm 1 on HIV up to the second tuning of T̂, once per method and patient. From there on the same N_f imagined
episodes in the same model, by a DQN that keeps its network (with ε as it was, or exploring again from 1) and by one
that knows nothing; none keeps the old replay. For each: the best imagined return on the way and what that policy scores
in reality; beside them what the policy of the first tuning is worth in the new model.
"""

import argparse
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import cached_batch, cached_model, save

import hipmdp
from hipmdp._random import root_key, stream
from hipmdp.adaptation.evaluate import evaluate, interact
from hipmdp.adaptation.method import Setting
from hipmdp.adaptation.methods import METHODS
from hipmdp.adaptation.phases import restart_learner, validation_keys
from hipmdp.adaptation.state import AdaptationState
from hipmdp.control.policies import Greedy
from hipmdp.control.policy_learner import PolicyLearner, evaluate_imagined, learn_in_imagination, with_empty_replay
from hipmdp.families.rollout import mean_return
from hipmdp.settings.presets import adaptation_preset


def learners(method: Any, before: AdaptationState, after: AdaptationState, key: Any) -> dict[str, PolicyLearner]:
    """All of them before their first episode in the new model."""
    assert before.learner is not None
    worst = jnp.asarray(-jnp.inf, jnp.float32)
    keeps = with_empty_replay(before.learner)._replace(best_return=worst)
    explores = keeps._replace(dqn=keeps.dqn._replace(started=jnp.zeros((), jnp.int32)))
    new = restart_learner(key, after, method.config).learner
    assert new is not None
    return {"keeps network": keeps, "explores again": explores, "new": new._replace(best_return=worst)}


def second_tuning(method: Any, model: Any, key: Any) -> tuple[AdaptationState, AdaptationState]:
    """The state before and after T̂ was tuned a second time (if it was)."""
    family, theta = method.setting.family, method.setting.theta
    state = method.start(stream(key, "adaptation/start"), model, family.specification)
    with family.interaction(theta) as system:
        for number in range(2):
            episode_key = stream(key, "adaptation/episode", number)
            state, _ = interact(method, state, system, family.horizon, episode_key)
            after_key = stream(key, "adaptation/after_episode", number)
            if number == 0:
                state, _ = method.after_episode(after_key, state)
    before = method._episode_ended(after_key, state)
    return before, method._tune(after_key, before)


def measure(model: Any, family: Any, instance: Any, seed: int) -> dict[str, Any]:
    """One method, one patient."""
    # First episodes are random, so that T̂ has to be tuned again.
    config = dataclasses.replace(adaptation_preset("default", family.specification), imagined_warm_up=False)
    setting = Setting(adaptation=config, family=family, theta=instance.theta, episodes=2)
    method, key = METHODS[model.method](setting), root_key(seed)
    before, after = second_tuning(method, model, key)
    row: dict[str, Any] = {"method": model.method, "instance": instance.label, "tuned": after.tunings == 2}
    if not row["tuned"]:
        return row
    imagined: tuple[Any, Any] = method.imagined(after)  # type: ignore[attr-defined]
    keys = validation_keys(after, config.validation_episodes)

    def score(network: Any) -> float:
        return instance.score(mean_return(evaluate(family, Greedy(network), instance.theta, key)))

    first = float(np.mean(evaluate_imagined(*imagined, network=before.network, keys=keys)))
    row["first policy"] = {"imagined": instance.score(first), "score": score(before.network)}
    for name, learner in learners(method, before, after, stream(key, "adaptation/after_episode", 1)).items():
        episodes = int(learner.dqn.started) + config.imagined_episodes
        trained = learn_in_imagination(
            config.dqn, *imagined, learner=learner, episodes=episodes, validation_keys=jax.random.clone(keys)
        )
        row[name] = {"imagined": instance.score(float(trained.best_return)), "score": score(trained.best)}
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Mean score of each DQN's policy, and where it replaces the first only if its imagined return is higher.

    In use: the one that keeps its network, and only where it finds nothing better, the new one.
    """
    tuned = [row for row in rows if row["tuned"]]
    means = {}
    for name in ("keeps network", "explores again", "new"):
        kept = [max(row["first policy"], row[name], key=lambda policy: policy["imagined"]) for row in tuned]
        means[name] = tuple(float(np.mean([p["score"] for p in own])) for own in ([row[name] for row in tuned], kept))
    used = []
    for row in tuned:
        found = row["keeps network"]["imagined"] > row["first policy"]["imagined"]
        tries = [row["keeps network"]] if found else [row["first policy"], row["new"]]
        used.append(max(tries, key=lambda policy: policy["imagined"]))
    means["in use"] = (float(np.mean([policy["score"] for policy in used])),)
    return means


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", nargs="+", default=["linear", "average", "scratch", "embedded"])
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    family, batch = hipmdp.make("hiv"), cached_batch("hiv", {}, "train32", 150, given.seed)
    rows = []
    for method in given.methods:
        model = cached_model(batch, "hiv-train32-150", method, given.seed)
        for instance in family.instances("test")[: given.instances]:
            rows.append(measure(model, family, instance, given.seed))
            print(rows[-1], flush=True)
    command = f"python benchmarks/retuning.py --instances {given.instances} --seed {given.seed}"
    print(summary(rows))
    save("retuning", f"{command} --methods {' '.join(given.methods)}", rows)
