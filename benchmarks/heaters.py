"""Policies from logs alone: water heaters (examples/water_heaters.py) of which `advise` has only a log.

    python benchmarks/heaters.py

A seed has logs of its own (60 known units, four days each), and all that is learned from them. Six unseen units, a log
of four days each: the true reward of ten days under the policy of `advise`; under a proportional controller whose gain
is the best on a known unit; under the thermostat that wrote the logs; under the best constant level of each unit; under
random levels; and `average`, the policy of `advise` in a model without latents. The days are the same for all. Rows are
written to results/heaters.json one by one; those that are there are not measured again.
"""

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, mean_and_interval, save

import hipmdp

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
heaters: Any = importlib.import_module("water_heaters")

SEEDS, UNITS = (0, 1), tuple(range(60, 66))
KNOWN = 60
COLUMNS = hipmdp.LogColumns(
    state=("temperature", "ambient"), action="level", instance="unit", episode="day", time="minute", reward="reward"
)
METHODS = ("embedded", "average")


def read(units: range | list[int], seed: int, **like: Any) -> hipmdp.Transitions:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "heaters.parquet"
        heaters.write_logs(path, units, seed=seed)
        return hipmdp.read_logs(path, COLUMNS, **like)


def references(number: int, gain: float, seed: int) -> dict[str, float]:
    """What needs no learning."""
    unit, levels = heaters.heater(number), range(len(heaters.LEVELS))
    rng, thermostat = np.random.default_rng(seed), heaters.thermostat(np.random.default_rng(seed))
    return {
        "proportional": heaters.score(unit, heaters.proportional(gain), seed=seed),
        "logged": heaters.score(unit, thermostat, seed=seed),
        "constant": max(heaters.score(unit, lambda state, a=a: a, seed=seed) for a in levels),
        "random": heaters.score(unit, lambda state: int(rng.integers(len(levels))), seed=seed),
    }


def kept() -> list[dict[str, Any]]:
    path = RESULTS / "heaters.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def main() -> None:
    for seed in SEEDS:
        if sum(row["seed"] == seed for row in kept()) == len(UNITS):
            continue
        batch = read(range(KNOWN), seed, actions=heaters.LEVELS)
        models = {method: hipmdp.pretrain(batch, method, seed=seed, quiet=True) for method in METHODS}
        # Tuned on a known unit, on other days than those it is measured on.
        gain = float(
            max(heaters.GAINS, key=lambda g: heaters.score(heaters.heater(0), heaters.proportional(g), seed=100))
        )
        for number in UNITS:
            if any((row["seed"], row["unit"]) == (seed, number) for row in kept()):
                continue
            log = read([number], seed, like=batch.specification)
            row: dict[str, Any] = {"seed": seed, "unit": number, "gain": gain, **references(number, gain, seed)}
            for method, model in models.items():
                begin = time.perf_counter()
                advice = hipmdp.advise(model, log, seed=seed)
                row[f"{method}_seconds"] = time.perf_counter() - begin
                row[method] = heaters.score(heaters.heater(number), advice.policy, seed=seed)
            save("heaters", "python benchmarks/heaters.py", [*kept(), row])
            print({k: round(v, 2) for k, v in row.items()}, file=sys.stderr, flush=True)
    rows = kept()
    for name in (*METHODS, "proportional", "logged", "constant", "random"):
        found = mean_and_interval([row[name] for row in rows])
        lost = mean_and_interval([row["embedded"] - row[name] for row in rows])
        print(
            f"{name:13}{found['mean']:8.2f}   embedded − it {lost['mean']:7.2f} [{lost['low']:.2f}, {lost['high']:.2f}]"
        )
    worst = max(rows, key=lambda row: row["embedded"] / row["proportional"])
    print(f"cost beside proportional: mean {np.mean([r['embedded'] / r['proportional'] for r in rows]):.2f}, "
          f"worst {worst['embedded'] / worst['proportional']:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
