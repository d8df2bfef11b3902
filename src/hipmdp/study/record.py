"""The result of one cell: a Parquet file with one row per episode, and what is needed to know how it came about."""

import dataclasses
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hipmdp.families.rollout import Episode
from hipmdp.study.memory import peak_gb
from hipmdp.transfer.run import Run

KEY = b"hipmdp.cell"
SCHEMA = 1
"""Raised when a file of this version could not be read by an earlier one."""
PACKAGES = ("hipmdp", "jax", "equinox", "optax", "numpy", "flashbax")
NUMBERS = ("learning_return", "greedy_return", "success", "model_error", "seconds")
"""What is measured in every episode; see `Run`."""


@dataclasses.dataclass(frozen=True)
class Record:
    """What a cell's file holds."""

    facts: dict[str, Any]
    """Family, method, variant, instance, seed."""
    numbers: dict[str, np.ndarray]
    """By the names of `NUMBERS`, one value per episode."""
    latents: list[np.ndarray | None]
    states: np.ndarray
    """One greedy episode at the end: (steps + 1, state)."""
    actions: np.ndarray
    about: dict[str, Any]
    """θ, settings, versions, time, memory."""


def write_record(path: Path, facts: dict[str, Any], run: Run, greedy: Episode, settings: dict[str, Any]) -> None:
    """Write what happened in a cell; the first of the `greedy` episodes at its end is kept to be looked at."""
    count = len(run.returns)
    steps = int(np.sum(greedy.valid[0]))
    states = np.concatenate([greedy.states[0, :1], greedy.next_states[0, :steps]])
    values = (run.learning_returns, run.returns, run.success, run.model_error, run.seconds)
    latents = [np.asarray(latent, np.float32).tolist() for latent in run.latents] or [None] * count
    columns: dict[str, Any] = {name: [value] * count for name, value in facts.items()}
    columns["episode"] = np.arange(count, dtype=np.int32)
    columns |= dict(zip(NUMBERS, (np.asarray(v, np.float64) for v in values), strict=True))
    columns["latent"] = pa.array(latents, pa.list_(pa.float32()))
    about = {
        "schema": SCHEMA,
        "facts": facts,
        "theta": {name: float(value) for name, value in run.theta._asdict().items()},
        "settings": settings,
        "report": run.model.report,
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "states": np.asarray(states, np.float32).tolist(),
        "actions": np.asarray(greedy.actions[0, :steps]).tolist(),
        "peak_gb": peak_gb(),
    }
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(about).encode()})
    pq.write_table(table, path, compression="zstd")


def read_record(path: Path) -> Record:
    """Read what `write_record` wrote; anything else is a `ValueError`."""
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[KEY])
        if about["schema"] > SCHEMA:
            raise ValueError
        numbers = {name: table.column(name).to_numpy() for name in NUMBERS}
        latents = [None if row is None else np.asarray(row) for row in table.column("latent").to_pylist()]
        states, actions = np.asarray(about.pop("states")), np.asarray(about.pop("actions"), np.int32)
        return Record(about.pop("facts"), numbers, latents, states, actions, about)
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{str(path)!r} is not a cell of a study that this hipmdp can read.") from None
