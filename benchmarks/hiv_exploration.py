"""What should the first episode with a patient be? The same procedure after three of them.

    python benchmarks/hiv_exploration.py [--first 10] [--instances 10] [--seed 1]

Algorithm 1 (`embedded`) after one episode on each test patient: T̂ is tuned to the episode and a policy is learned in
imagination, from nothing. The episode is random treatment, as in the paper; rehearsed (`TransferConfig.rehearsal`, in
use: lived by a policy for the training patients); or lived by Q(s, w). Scores in reality, and what
the same policy was worth in imagination: how far its contexts, members that the episode still allows, are from each
other and from the truth. The study uses test:0 to test:9; these are the others.
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
WAYS = ("random", "rehearsed", "amortised")


def meet(model: Any, family: Any, instance: Any, way: str, seed: int) -> dict[str, float]:
    """Algorithm 1 after one episode."""
    config = dataclasses.replace(preset("default", family.specification), rehearsal=way == "rehearsed")
    embedded = model.used_as("embedded")
    algorithm = Algorithm(embedded, family, instance.theta, 1, seed, config, "given", "learned", lambda meeting: None)
    meeting = algorithm.begin()
    if way == "amortised":
        lived = hipmdp.learn_policy(model, family, instance.theta, 1, seed, quiet=True)
        meeting.lived, meeting.phase = meeting.lived.extended(lived.transitions), Phase.TUNE
    while meeting.phase is not Phase.EVALUATE:
        algorithm.advance(meeting)
    network, imagination = meeting.student.best, algorithm.imagination(meeting)
    imagined = look(*imagination, network, jax.random.split(jax.random.key(seed), LOOKS))
    algorithm.advance(meeting)
    scores = [instance.score(value) for value in imagined]
    return {
        "lived": instance.score(float(np.sum(meeting.lived.reward, dtype=np.float64))),
        "score": instance.score(meeting.records["returns"][0]),
        "imagined": float(np.mean(scores)),
        "imagined_low": min(scores),
        "imagined_high": max(scores),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=10)
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    family, model = hipmdp.make("hiv"), hipmdp.load("hiv")
    command = f"python benchmarks/hiv_exploration.py --first {asked.first} --seed {asked.seed}"
    rows: list[dict[str, Any]] = []
    for instance in family.instances("test")[asked.first :][: asked.instances]:
        ways = {way: meet(model, family, instance, way, asked.seed) for way in WAYS}
        rows.append({"instance": instance.label, **ways})
        print(rows[-1], flush=True)
        save("hiv_exploration", command, rows)
    for name in WAYS:
        lived, scores = (mean_and_interval([row[name][key] for row in rows]) for key in ("lived", "score"))
        spread = np.median([row[name]["imagined_high"] / row[name]["imagined_low"] for row in rows])
        gap = np.median([abs(np.log2(row[name]["imagined"] / max(row[name]["score"], 1e-3))) for row in rows])
        print(f"{name}: lived {lived}, then {scores}")
        print(f"  imagined high / low {spread:.1f}, imagined / real: a factor of {2**gap:.2f}")
