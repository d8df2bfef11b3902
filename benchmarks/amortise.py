"""What helps Q(s, w) on HIV: branches, spread of members, more updates, curiosity. One table.

    python benchmarks/amortise.py [--variants plain cut …] [--seeds 0 1]

The model is the study's (seed 1, `hipmdp compare hiv --methods embedded --first-seed 1`). Policies are judged by the
first episode on the real patients test:10 to test:19, of which the study uses none. Results that are there are kept,
also those of what was dropped since (cutting where functions disagree, members of least certainty).
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from common import RESULTS, save

import hipmdp
from hipmdp.control.policies import BeliefActor, repeat_theta
from hipmdp.dynamics.belief import new_filter
from hipmdp.families.protocol import BaseFamily
from hipmdp.pretraining.amortise import amortise
from hipmdp.pretraining.model import Model
from hipmdp.settings.presets import amortise_preset

STUDY = Path(__file__).parent / "study"
NAME, PATIENTS = "hiv-train32-150", range(10, 20)
CURIOSITIES = (0.0, 0.1, 0.3, 1.0)
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "first settings: 4,000 episodes, mini-batches of 50, members within 0.5": (
        {"episodes": 4000, "pools": 20, "member_spread": 0.5, "perception_error": 0.2},
        {"batch_size": 50},
    ),
    "branch from visited states": ({}, {"restart_share": 0.5}),
    "members near training latents": ({"member_spread": 0.25}, {}),
    "members at training latents": ({"member_spread": 0.0, "perception_error": 0.1}, {}),
    "twice the episodes": ({"episodes": 12_000, "pools": 60}, {}),
    "twice the updates": ({}, {"minibatches": 4}),
}
"""Settings of `AmortiseConfig` and of its learner."""


def first_scores(model: Model, family: BaseFamily, information_weight: float, seed: int) -> list[float]:
    assert model.dynamics is not None
    assert model.latent_policy is not None
    told = new_filter(model.dynamics, jax.random.key(seed))
    actor = BeliefActor(told, model.latent_policy, jnp.asarray(information_weight, jnp.float32))
    scores = []
    for number in PATIENTS:
        patient = family.instances("test")[number]
        lived, _ = family.rollout_actors(actor, told.start, jax.random.key(seed)[None], repeat_theta(patient.theta, 1))
        scores.append(patient.score(float(np.sum(np.asarray(lived.steps.reward, np.float64)))))
    return scores


def measure(variant: str, seed: int) -> dict[str, Any]:
    family = hipmdp.make("hiv")
    model = hipmdp.load(STUDY / "models" / f"{NAME}-embedded-seed1.hipmdp")
    batch = hipmdp.load_transitions(STUDY / "batches" / f"{NAME}-seed1.parquet")
    own, dqn = VARIANTS[variant]
    config = dataclasses.replace(amortise_preset("default", family.specification), **own)
    config = dataclasses.replace(config, dqn=dataclasses.replace(config.dqn, **dqn))
    begin = time.perf_counter()
    learned = amortise(model, batch, seed, config=config, family=family)
    seconds = time.perf_counter() - begin
    scores = {str(c): first_scores(learned, family, c, seed) for c in CURIOSITIES}
    return {"variant": variant, "seed": seed, "seconds": seconds, "scores": scores}


def kept() -> list[dict[str, Any]]:
    path = RESULTS / "amortise.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| variant | seeds | " + " | ".join(f"curiosity {c:g}" for c in CURIOSITIES) + " | seconds |"]
    lines.append("|---" * (len(CURIOSITIES) + 3) + "|")
    for variant in dict.fromkeys(row["variant"] for row in rows):
        mine = [row for row in rows if row["variant"] == variant]
        means = [np.mean([row["scores"][str(c)] for row in mine]) for c in CURIOSITIES]
        seconds = np.mean([row["seconds"] for row in mine])
        lines.append(f"| {variant} | {len(mine)} | " + " | ".join(f"{m:.3f}" for m in means) + f" | {seconds:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    asked = parser.parse_args()
    for seed in asked.seeds:
        for variant in asked.variants:
            if not any(row["variant"] == variant and row["seed"] == seed for row in kept()):
                told = measure(variant, seed)
                # Read again: another process may have measured something meanwhile.
                save("amortise", "python benchmarks/amortise.py", [*kept(), told])
    print(table(kept()))
