"""How large a network, how many latents, how far may W move? Chosen on training patients that the model has not seen.

    python benchmarks/hiv_capacity.py

Variants that are stored are not run again.

Models are fitted to the first 24 patients of train32 (150 episodes each). Each of the other 8 is recognised from one
episode of random treatment, then predicted on every seventh transition of its own last 50 episodes of DDQN, which
treat well: RMSE in standardised units, over all rows and over those with E > 1e4 (where a patient heals).
"""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from common import RESULTS, cached_batch, save

import hipmdp
from hipmdp.control.policies import repeat_theta
from hipmdp.data.experience import episodes_to_transitions
from hipmdp.dynamics.infer import infer_latent, tune_model
from hipmdp.dynamics.model import predict
from hipmdp.dynamics.standardise import state_changes
from hipmdp.families.scripted import random_policy
from hipmdp.settings.presets import DEFAULT

SLOW = {"weight_draws": 10, "learning_rate": 2e-3, "rounds": 20_000}
VARIANTS: dict[str, dict[str, Any]] = {
    "32-32, 5 latents, 10 draws": {"hidden": (32, 32), "latent_size": 5, **SLOW},
    "64-64, 5 latents": {"latent_size": 5},
    "64-64, 8 latents": {"latent_size": 8},
    "64-64, 12 latents": {},
    "128-128, 8 latents": {"hidden": (128, 128), "latent_size": 8},
}
WIDENINGS = (10.0, 100.0, 1000.0)
SEEN = 24


def errors(dynamics: Any, rows: Any, latent: Any) -> tuple[float, float]:
    """RMSE over all rows, and over those in which the patient is healing or healed (NaN if there are none)."""
    predicted = np.asarray(predict(dynamics, rows.state, rows.action, latent, key=jax.random.key(0)).mean)
    squares = ((predicted - state_changes(rows)) / np.asarray(dynamics.scaling.change_scale)) ** 2
    healing = rows.state[:, 5] > 4
    return float(np.sqrt(squares.mean())), float(np.sqrt(squares[healing].mean())) if healing.any() else float("nan")


def main() -> None:
    family = hipmdp.make("hiv")
    batch = cached_batch("hiv", {}, "train32", 150, 0)
    training, patients = batch.select(batch.instance < SEEN), family.instances("train32")
    stored = RESULTS / "hiv_capacity.json"
    results: list[dict[str, Any]] = json.loads(stored.read_text())["rows"] if stored.exists() else []
    done = {row["variant"] for row in results}
    for label, change in VARIANTS.items():
        if label in done:
            continue
        name = label.replace(", ", "-").replace(" ", "")
        path = Path(__file__).parent / "batches" / f"hiv-capacity-{name}.hipmdp"
        begin = time.perf_counter()
        if not path.exists():
            hipmdp.pretrain(training, config=replace(DEFAULT["hiv"].dynamics, **change), quiet=True).save(path)
        seconds = time.perf_counter() - begin
        model = hipmdp.load(path)
        dynamics = model.need_dynamics("hiv_capacity")
        row: dict[str, Any] = {"variant": label, "seconds": seconds, **model.metrics}
        for widening in (0.0, *WIDENINGS):
            found = []
            for i in range(SEEN, 32):
                theta = patients[i].theta
                keys = jax.random.split(jax.random.key(1000 + i), 1)
                lived = family.rollouts(random_policy(family), keys, repeat_theta(theta, 1))
                episode = episodes_to_transitions(family, lived, theta)
                own = batch.of_instance(i)
                own = own.select(np.flatnonzero(own.episode >= 100)[::7])
                if widening == 0:
                    fitted, latent = dynamics, infer_latent(dynamics, episode, key=jax.random.key(1)).value
                else:
                    config = replace(dynamics.config, tune_widening=widening, tune_rounds=500)
                    fitted, latent = tune_model(replace(dynamics, config=config), episode, key=jax.random.key(1))
                found.append(errors(fitted, own, latent))
            mean = np.nanmean(np.asarray(found), axis=0)
            key = "latent alone" if widening == 0 else f"tuned, widening {widening:g}"
            row[key] = {"rmse": float(mean[0]), "rmse_healing": float(mean[1])}
        results.append(row)
        told = "  ".join(f"{k} {v['rmse']:.3f}/{v['rmse_healing']:.3f}" for k, v in row.items() if isinstance(v, dict))
        print(f"{label:28}{told}", flush=True)
        save("hiv_capacity", "python benchmarks/hiv_capacity.py", results)


if __name__ == "__main__":
    main()
