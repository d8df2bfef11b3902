"""What all benchmarks share: where results go and how they are timed."""

import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hipmdp.settings.presets import dynamics_preset
from hipmdp.study.paper_figures.scaling import NETWORK
from hipmdp.study.statistics import estimate, interquartile_mean, mean

RESULTS, SEARCHES = Path(__file__).parent / "results", Path(__file__).parent / "searches"
_SLOW = {"weight_draws": 10, "learning_rate": 2e-3, "tune_widening": 1000.0, "tune_rounds": 3000}
PAPER_SIZED: dict[str, dict[str, Any]] = {
    "grid": asdict(NETWORK),
    "hiv": {"hidden": (32, 32), "alpha": 0.45, **_SLOW},
}
"""Fields of `DynamicsConfig` behind the measurements of prediction and uncertainty: the paper's networks and five
latents. Control is measured with the presets."""


def machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "machine": platform.machine(), "jax": jax.__version__}


def pin_to_one_core() -> None:
    """Speed is told per core; call before JAX starts its threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def best_seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest wall-clock time of `run` after one call that compiles it."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return min(times)


def cached_batch(name: str, options: dict[str, Any], instances: Any, episodes: int, seed: int) -> Any:
    """A batch that several benchmarks share, kept in `benchmarks/batches` (not in the repository)."""
    import hipmdp

    folder = Path(__file__).parent / "batches"
    folder.mkdir(exist_ok=True)
    label = "-".join(map(str, (name, *options.values(), instances, episodes, seed)))
    path = folder / f"{label}.parquet"
    if not path.exists():
        hipmdp.save_transitions(hipmdp.collect(hipmdp.make(name, **options), instances, episodes, seed), path)
    return hipmdp.load_transitions(path)


def cached_model(
    batch: Any,
    label: str,
    method: str,
    seed: int,
    latents: str = "learned",
    config: Any = None,
    *,
    family: Any = None,
    policy: Any = False,
) -> Any:
    """A pre-trained model that several benchmarks share, kept like the batches; its settings for tuning are today's."""
    from dataclasses import replace

    import hipmdp

    kind = "" if latents == "learned" else f"-{latents}"
    path = Path(__file__).parent / "batches" / f"{label}-{method}{kind}-{seed}.hipmdp"
    if not path.exists():
        options = {"seed": seed, "config": config, "latents": latents, "family": family, "policy": policy}
        hipmdp.pretrain(batch, method=method, quiet=True, **options).save(path)
    model = hipmdp.load(path)
    assert model.dynamics is not None
    fitted = model.dynamics.config
    config = config or dynamics_preset("default", batch.specification, len(batch.instances))
    sizes = {name: getattr(fitted, name) for name in ("role", "hidden", "correction", "latent_size")}
    config = replace(config, **sizes)
    return model.with_dynamics(replace(model.dynamics, config=config))


def mean_and_interval(values: Any) -> dict[str, float]:
    """Mean over the first axis with its 95 % bootstrap interval."""
    found = estimate(mean, np.asarray(values, np.float64)[:, None])
    return {"mean": found.value, "low": found.low, "high": found.high}


def iqm_and_interval(table: Any) -> dict[str, float]:
    """IQM of (seeds, instances) with its 95 % interval: seeds drawn anew in every instance (stratified bootstrap)."""
    found = estimate(interquartile_mean, np.asarray(table, np.float64))
    low, high = (found.value if np.isnan(v) else v for v in (found.low, found.high))  # One row has no spread.
    return {"iqm": found.value, "low": low, "high": high, "mean": float(np.mean(table))}


def keep_better(family: Any, instance: Any, record: dict[str, Any]) -> None:
    """A return above the best known one is stored beside the searches; `hipmdp instances` puts it into the set."""
    from hipmdp._files import output_directory, read_json, save_json
    from hipmdp.study.instance_search.freeze import default_path
    from hipmdp.study.instance_search.searches import read_searches

    if record["return"] <= instance.best_known:
        return
    path = default_path(family)
    name, position = instance.label.split(":")
    draw = read_json(path)["sets"][name][int(position)]["draw"]
    work, label = SEARCHES / path.stem, f"draw{draw:04d}-other-{record['method']}"
    stored = read_searches(work).found.get(label)
    if stored is not None and stored["return"] >= record["return"]:
        return
    save_json(output_directory(work) / f"{label}.json", record)


def save(name: str, command: str, rows: Any) -> None:
    """Keep the last measured result beside the benchmark, with the command that made it."""
    RESULTS.mkdir(exist_ok=True)
    payload = {"command": command, "date": time.strftime("%Y-%m-%d"), "machine": machine(), "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(payload, indent=1) + "\n")
