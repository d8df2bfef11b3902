"""Does a Q(s, w) that was trained longer do better in the first episode on the wide acrobot?

    python benchmarks/amortise_acrobot.py [--seed 0] [--lives 10]

Models and batches of the study (`hipmdp compare acrobot:sd=0.25 --methods amortised …`). First episodes as they are
lived, `lives` of them on each of the study's ten test instances (starts and the filter drawn anew), by the study's
Q(s, w), by one with three times as many imagined episodes, and by one that also has larger mini-batches.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, mean_and_interval, save

import hipmdp
from hipmdp.transfer.config import amortise_preset

NAME = "amortise_acrobot"
STUDY = Path(__file__).parent / "study"


def first_scores(model: Any, family: Any, lives: int) -> list[list[float]]:
    """A row per instance."""
    return [
        [
            instance.score(hipmdp.learn_policy(model, family, instance.theta, 1, life, quiet=True).learning_returns[0])
            for life in range(lives)
        ]
        for instance in family.instances("test")[:10]
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lives", type=int, default=10)
    asked = parser.parse_args()
    family = hipmdp.make("acrobot", sd=0.25)
    label = "acrobot-sd0.25-train32-150"
    batch = hipmdp.load_transitions(STUDY / "batches" / f"{label}-seed{asked.seed}.parquet")
    embedded = hipmdp.load(STUDY / "models" / f"{label}-embedded-seed{asked.seed}.hipmdp")
    usual = amortise_preset("default", family.specification)
    longer = replace(usual, episodes=3 * usual.episodes)
    ways = {
        "as in the study": None,
        "three times as many episodes": longer,
        "and mini-batches of 128": replace(longer, learner=replace(usual.learner, batch_size=128)),
    }
    for name, config in ways.items():
        begin = time.perf_counter()
        if config is None:
            model = hipmdp.load(STUDY / "models" / f"{label}-amortised-seed{asked.seed}.hipmdp")
        else:
            model = hipmdp.amortise(embedded, batch, asked.seed, config=config, family=family, quiet=True)
        seconds = time.perf_counter() - begin
        scores = first_scores(model, family, asked.lives)
        told = {"seed": asked.seed, "way": name, "seconds": seconds, "scores": scores}
        told |= mean_and_interval(np.mean(scores, axis=1))
        path = RESULTS / f"{NAME}.json"
        rows = json.loads(path.read_text())["rows"] if path.exists() else []
        rows = [row for row in rows if (row["seed"], row["way"]) != (asked.seed, name)]
        save(NAME, "python benchmarks/amortise_acrobot.py --seed 0, 1", [*rows, told])
        print(
            asked.seed, name, f"{told['mean']:.4f} [{told['low']:.4f}, {told['high']:.4f}], {seconds:.0f} s", flush=True
        )
