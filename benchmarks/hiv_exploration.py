"""What should the first episode with a patient be? The same procedure after three of them.

    python benchmarks/hiv_exploration.py [--first 10] [--instances 10] [--seed 1]

Algorithm 1 (`embedded`) after one episode on each test patient: T̂ is tuned to the episode and a policy is learned in
imagination, from nothing. The episode is random treatment, as in the paper; controlled by a policy for the training
patients (`AdaptationConfig.imagined_warm_up`, in use); or by Q(s, w). Scores in reality, and what the same policy was
worth in imagination: how far its contexts, members that the episode still allows, are from each other and from the
truth. The study uses test:0 to test:9; these are the others.
"""

import argparse
import dataclasses
from typing import Any

import jax
import numpy as np
from common import mean_and_interval, save
from jaxtyping import PRNGKeyArray

import hipmdp
from hipmdp._random import root_key
from hipmdp.adaptation.latent_policy import Refined
from hipmdp.adaptation.method import Setting
from hipmdp.adaptation.methods import Embedded
from hipmdp.adaptation.phases import restart_learner
from hipmdp.adaptation.state import AdaptationState
from hipmdp.control.policy_learner import evaluate_imagined
from hipmdp.settings.presets import adaptation_preset

IMAGINED = 16
"""Imagined episodes, one per context."""
WAYS = ("random", "warm-up", "amortised")


class AmortisedFirst(Refined):
    """The first episode by Q(s, w); the policy after it from nothing."""

    explores = True

    def first_learner(self, key: PRNGKeyArray, state: AdaptationState) -> AdaptationState:
        """An untrained DQN."""
        return restart_learner(key, state, self.config)


def adapted(model: Any, family: Any, instance: Any, way: str, seed: int) -> dict[str, float]:
    """Algorithm 1 after one episode."""
    config = adaptation_preset("default", family.specification)
    config = dataclasses.replace(config, imagined_warm_up=way == "warm-up")
    setting = Setting(adaptation=config, family=family, theta=instance.theta, episodes=1)
    method = AmortisedFirst(setting) if way == "amortised" else Embedded(setting)
    run = hipmdp.learn_policy(model, family, instance.theta, 1, seed, method=method, quiet=True)
    assert run.imagination is not None
    assert run.network is not None
    keys = jax.random.split(root_key(seed), IMAGINED)
    scores = [instance.score(value) for value in evaluate_imagined(*run.imagination, network=run.network, keys=keys)]
    return {
        "first episode": instance.score(float(run.learning_returns[0])),
        "score": instance.score(float(run.returns[0])),
        "imagined": float(np.mean(scores)),
        "imagined_low": min(scores),
        "imagined_high": max(scores),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=10)
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    family, model = hipmdp.make("hiv"), hipmdp.load("hiv")
    command = f"python benchmarks/hiv_exploration.py --first {given.first} --seed {given.seed}"
    rows: list[dict[str, Any]] = []
    for instance in family.instances("test")[given.first :][: given.instances]:
        ways = {way: adapted(model, family, instance, way, given.seed) for way in WAYS}
        rows.append({"instance": instance.label, **ways})
        print(rows[-1], flush=True)
        save("hiv_exploration", command, rows)
    for name in WAYS:
        first, scores = (mean_and_interval([row[name][key] for row in rows]) for key in ("first episode", "score"))
        spread = np.median([row[name]["imagined_high"] / row[name]["imagined_low"] for row in rows])
        gap = np.median([abs(np.log2(row[name]["imagined"] / max(row[name]["score"], 1e-3))) for row in rows])
        print(f"{name}: first episode {first}, then {scores}")
        print(f"  imagined high / low {spread:.1f}, imagined / real: a factor of {2**gap:.2f}")
