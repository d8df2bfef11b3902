"""Is a log learned as well in other units? `python benchmarks/scales.py`, 5 minutes on one core.

A fleet of carts with hidden mass and friction, its states (and rewards) multiplied and shifted. Each variant is
pre-trained; its held-out error and the error of its learned reward, as a share of the reward's spread, are compared
with those of the log as it is. What cannot be learned must be refused.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import save

import hipmdp

COLUMNS = hipmdp.LogColumns(state=("x", "v"), action="push", instance="machine", episode="run", reward="gain")
CONFIG = hipmdp.DynamicsConfig(hidden=(32, 32), latent_size=2, rounds=3000, batch_size=128, held_out_share=0.1)
MACHINES, RUNS, MOMENTS, NOISE = 12, 10, 26, 0.02
REWARD_NOISE = 0.2
"""Logged rewards are measured, too; without noise, what is compared is how far each fit happened to get."""
SEEDS = 3
Units = Callable[[np.ndarray], np.ndarray]


def times(factor: float, plus: float = 0.0) -> Units:
    """(x + plus) · factor."""
    return lambda values: (values + plus) * factor


VARIANTS: dict[str, tuple[Units, Units]] = {
    "as it is": (times(1), times(1)),
    "x + 1e9": (times(1, 1e9), times(1)),
    "x - 1e9": (times(1, -1e9), times(1)),
    "x + 1e4": (times(1, 1e4), times(1)),
    "1e-12 x": (times(1e-12), times(1e-12)),
    "1e-30 x": (times(1e-30), times(1e-30)),
    "1e30 x": (times(1e30), times(1e30)),
    "1e-30 (x + 1e9)": (times(1e-30, 1e9), times(1e-12)),
    "1e30 (x + 1e9)": (times(1e30, 1e9), times(1e6)),
    "1e-40 x": (times(1e-40), times(1)),
    "1e38 x": (times(1e38), times(1)),
    "1e-40 gain": (times(1), times(1e-40)),
    "1e38 gain": (times(1), times(1e38)),
}


def fleet(seed: int, slow: float = 1.0) -> dict[str, np.ndarray]:
    """Random pushes on carts; `slow` makes all changes smaller beside the spread of the states."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(MACHINES):
        mass, friction = generator.uniform(0.5, 2.0), generator.uniform(0.1, 1.0)
        for run in range(RUNS):
            x, v = generator.uniform(-1, 1), generator.uniform(-1, 1)
            for _ in range(MOMENTS):
                push = int(generator.integers(3))
                after = v + slow * (0.2 * (push - 1 - friction * v) / mass + NOISE * generator.normal())
                rows.append((number, run, x, v, push, 0.5 * v - x**2 + REWARD_NOISE * generator.normal()))
                x, v = x + slow * 0.2 * after, after
    names = ("machine", "run", "x", "v", "push", "gain")
    return {name: np.asarray(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def scaled(table: dict[str, np.ndarray], state: Units, reward: Units, folder: Path, like: Any = None) -> Any:
    """The log in other units, as it is read."""
    other = table | {"x": state(table["x"]), "v": state(table["v"]), "gain": reward(table["gain"])}
    pq.write_table(pa.table(other), folder / "fleet.parquet")
    return hipmdp.read_logs(folder / "fleet.parquet", COLUMNS, like=like)


def reward_error(model: Any, log: Any) -> float:
    """RMSE of the learned reward of known machines, as a share of the rewards' spread, in natural units."""
    spec, head = model.specification, model.reward_head
    latents = jnp.asarray(model.dynamics.latents)[log.instance]
    states = [jnp.asarray(spec.from_origin(values)) for values in (log.state, log.next_state)]
    rewards, _ = jax.vmap(head)(states[0], jnp.asarray(log.action), states[1], latents)
    unit = float(log.reward.std())
    return float(np.sqrt(np.mean((np.asarray(rewards, np.float64) / unit - log.reward / unit) ** 2)))


def measured(table: dict[str, np.ndarray], state: Units, reward: Units) -> dict[str, Any]:
    """The mean over seeds: fits that differ in their last digit differ by 10 % in the end."""
    parts = [measured_once(table, state, reward, seed) for seed in range(SEEDS)]
    errors = ("held_out_error", "reward_error")
    return parts[0] | {name: float(np.mean([part[name] for part in parts])) for name in errors if name in parts[0]}


def measured_once(table: dict[str, np.ndarray], state: Units, reward: Units, seed: int) -> dict[str, Any]:
    """Both errors, or the sentence with which the log was refused."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            model = hipmdp.pretrain(scaled(table, state, reward, folder), seed=seed, config=CONFIG, quiet=True)
        except ValueError as error:
            return {"refused": str(error)}
        model.save(folder / "fleet.hipmdp")
        model = hipmdp.load(folder / "fleet.hipmdp")
        log = scaled(table, state, reward, folder, model.specification)
        return {
            "held_out_error": model.metrics["error_on_held_out_episodes"],
            "reward_error": reward_error(model, log),
            "origin": list(model.specification.origin),
        }


def compared(found: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """With the ratios to the log as it is."""
    if "refused" in found:
        return found
    ratios = {f"{name}_ratio": found[name] / base[name] for name in ("held_out_error", "reward_error")}
    return found | ratios


def main() -> None:
    table = fleet(0)
    results: dict[str, Any] = {}
    for name, (state, reward) in VARIANTS.items():
        found = measured(table, state, reward)
        results[name] = compared(found, results.get("as it is", found))
        print(name, results[name], flush=True)
    slow, base = fleet(0, slow=1e-3), None
    for name, state in (("slow", times(1)), ("slow + 1e6", times(1, 1e6)), ("1e-12 (slow + 1e6)", times(1e-12, 1e6))):
        found = measured(slow, state, times(1))
        base = base or found
        results[name] = compared(found, base)
        print(name, results[name], flush=True)
    save("scales", "python benchmarks/scales.py", results)


if __name__ == "__main__":
    main()
