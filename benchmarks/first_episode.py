"""The first two episodes of the models that come with the package, as they were lived; nothing is trained.

    python benchmarks/first_episode.py [grid acrobot hiv] [--seeds 3]

All test instances; a seed draws starts and the filter's weights anew, the model is one (the study has one per seed).
"""

import argparse
import json
from typing import Any

import numpy as np
from common import RESULTS, save

import hipmdp
from hipmdp.families import FAMILIES
from hipmdp.study.statistics import estimate, interquartile_mean, mean


def measure(name: str, seeds: int) -> dict[str, Any]:
    family, model = hipmdp.make(name), hipmdp.load(name)
    instances = family.instances("test")
    table = np.zeros((seeds, len(instances), 2))
    for seed in range(seeds):
        for column, instance in enumerate(instances):
            run = hipmdp.learn_policy(model, family, instance.theta, 2, seed, method="amortised", quiet=True)
            table[seed, column] = [instance.score(value) for value in run.learning_returns]
    return {"scores": table.tolist()}


def row(name: str, told: dict[str, Any]) -> str:
    table = np.asarray(told["scores"])
    cells = [str(estimate(mean, table[..., episode])) for episode in (0, 1)]
    middle = [f"{interquartile_mean(table[..., episode]):.3f}" for episode in (0, 1)]
    return f"| {name} | {table.shape[0]} × {table.shape[1]} | " + " | ".join([*cells, *middle]) + " |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    path = RESULTS / "first_episode.json"
    results = json.loads(path.read_text())["rows"] if path.exists() else {}
    for name in asked.families:
        results[name] = measure(name, asked.seeds)
        save("first_episode", "python benchmarks/first_episode.py", results)
    print("| family | seeds × instances | episode 1 | episode 2 | IQM of 1 | of 2 |\n" + "|---" * 6 + "|")
    print("\n".join(row(name, told) for name, told in results.items()))
