"""What is missing after one random episode on HIV? The same procedure, with another first episode.

    python benchmarks/hiv_exploration.py [--instances 10] [--seed 1]

Algorithm 1 (`embedded`) after one episode on each test patient: T̂ is tuned to the episode and a policy is learned in
imagination, from nothing. Only the episode differs: random treatment, as in the paper, or the one lived by Q(s, w).
Scores in reality, and what the same policy was worth in imagination: how far its contexts, members that the episode
still allows, are from each other and from the truth.
"""

import argparse
import dataclasses
from typing import Any

import jax
import numpy as np
from common import mean_and_interval, save

import hipmdp
from hipmdp.transfer.algorithm import Algorithm
from hipmdp.transfer.config import preset
from hipmdp.transfer.meeting import Phase
from hipmdp.transfer.simulate import look

LOOKS = 16
"""Imagined episodes, one per context."""


def meet(model: Any, family: Any, instance: Any, episode: Any, seed: int) -> dict[str, float]:
    """Algorithm 1 from its tuning on, after `episode`."""
    config = dataclasses.replace(preset("default", family.specification), retunings=0)
    algorithm = Algorithm(model, family, instance.theta, 1, seed, config, "given", "learned", lambda meeting: None)
    meeting = algorithm.begin()
    meeting.lived, meeting.phase = meeting.lived.extended(episode), Phase.TUNE
    while meeting.phase is not Phase.EVALUATE:
        algorithm.advance(meeting)
    network, imagination = meeting.student.best, algorithm.imagination(meeting)
    imagined = look(*imagination, network, jax.random.split(jax.random.key(seed), LOOKS))
    algorithm.advance(meeting)
    scores = [instance.score(value) for value in imagined]
    return {
        "score": instance.score(meeting.records["returns"][0]),
        "imagined": float(np.mean(scores)),
        "imagined_low": min(scores),
        "imagined_high": max(scores),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    family, model = hipmdp.make("hiv"), hipmdp.load("hiv")
    rows = []
    for instance in family.instances("test")[: asked.instances]:
        told: dict[str, Any] = {"instance": instance.label}
        for name, method in (("random", "model_free"), ("amortised", "amortised")):
            who = model if method == "amortised" else dataclasses.replace(model, method=method)
            lived = hipmdp.learn_policy(who, family, instance.theta, 1, asked.seed, quiet=True).transitions
            told[name] = meet(model.used_as("embedded"), family, instance, lived, asked.seed)
        rows.append(told)
        print(told, flush=True)
        save("hiv_exploration", "python benchmarks/hiv_exploration.py", rows)
    for name in ("random", "amortised"):
        scores = mean_and_interval([row[name]["score"] for row in rows])
        spread = np.median([row[name]["imagined_high"] / row[name]["imagined_low"] for row in rows])
        gap = np.median([abs(np.log2(row[name]["imagined"] / max(row[name]["score"], 1e-3))) for row in rows])
        print(f"{name}: {scores}, imagined high / low {spread:.1f}, imagined / real: a factor of {2**gap:.2f}")
