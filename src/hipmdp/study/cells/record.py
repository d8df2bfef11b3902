"""The result of one cell: what happened in every episode, one greedy episode, and all that is needed to explain it."""

import dataclasses
import json
import platform
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from hipmdp._random import STREAMS_VERSION
from hipmdp._typed import typed
from hipmdp.adaptation.run import Run
from hipmdp.families.instance import Instance, theta_values
from hipmdp.families.specification import FamilyFacts
from hipmdp.pretraining.model import Model
from hipmdp.settings import SETTINGS_VERSION
from hipmdp.study.memory import peak_gb

KEY = ("family", "method", "variant", "instance", "seed")
"""What distinguishes a cell from the others of a study."""
METRICS = ("learning_returns", "returns", "success", "model_error", "seconds")
"""What is measured in every episode, by the names of `Run`'s fields."""
PACKAGES = ("hipmdp", "jax", "equinox", "optax", "numpy", "flashbax")
VERSIONS = {"streams": STREAMS_VERSION, "settings": SETTINGS_VERSION}
"""Versions of the random streams and of the settings: cells of different ones are not comparable."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """The two returns on an instance that give scores 0 and 1."""

    random: float
    """Mean undiscounted return of the uniformly random policy."""
    best_known: float
    """Best mean undiscounted return known."""

    def score(self, returns: np.ndarray) -> np.ndarray:
        """(R − R_random) / (R_best_known − R_random)."""
        return (returns - self.random) / (self.best_known - self.random)

    def log_score(self, returns: np.ndarray) -> np.ndarray:
        """The same of log10 returns: HIV's span powers of ten. NaN where random returns are below one."""
        if not self.random > 1:
            return np.full(len(returns), np.nan)
        low, high = np.log10(self.random), np.log10(self.best_known)
        return (np.log10(np.maximum(1.0, returns)) - low) / (high - low)


@dataclasses.dataclass(frozen=True, eq=False)
class CellRecord:
    """One cell."""

    key: dict[str, Any]
    """By the names of `KEY`."""
    metrics: dict[str, np.ndarray]
    """By the names of `METRICS`: one float64 per episode."""
    latents: list[np.ndarray | None]
    """w_b after each episode, float32; None for methods that have none."""
    states: np.ndarray
    """One greedy episode at the end: (steps + 1, state), float32."""
    actions: np.ndarray
    """Its actions: (steps,), int32."""
    metadata: dict[str, Any]
    """JSON-ready: facts of the family, reference returns, θ, settings, metrics of the model, versions, memory."""

    @property
    def name(self) -> tuple[Any, ...]:
        """The key's values, in the order of `KEY`."""
        return tuple(self.key[name] for name in KEY)

    @property
    def episodes(self) -> int:
        """How many real episodes there were."""
        return len(self.metrics["seconds"])

    @property
    def theta(self) -> dict[str, float]:
        """θ_b by name."""
        return self.metadata["theta"]

    @cached_property
    def family_facts(self) -> FamilyFacts:
        """What is known of the cell's family."""
        return FamilyFacts.from_dict(self.metadata["family"])

    @property
    def reference(self) -> Reference | None:
        """What returns are compared with; None where no best return is known."""
        found = self.metadata["reference"]
        return None if found is None else Reference(float(found["random"]), float(found["best_known"]))


def new_record(
    key: dict[str, Any], run: Run, *, family: FamilyFacts, instance: Instance, settings: dict[str, Any]
) -> CellRecord:
    """What is kept of a run; of the greedy evaluation episodes at its end the first."""
    greedy, length = run.evaluation.steps, int(np.sum(run.evaluation.valid[0]))
    states = np.concatenate([greedy.state[0, :1], greedy.next_state[0, :length]])
    reference = {"random": instance.random, "best_known": instance.best_known} if instance.is_scored else None
    metadata = {
        "family": dataclasses.asdict(family),
        "reference": reference,
        "theta": theta_values(run.theta),
        "settings": settings,
        "model_metrics": run.model.metrics if isinstance(run.model, Model) else {},
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()} | VERSIONS,
        "peak_gb": peak_gb(),
    }
    return CellRecord(
        key,
        {name: np.asarray(getattr(run, name), np.float64) for name in METRICS},
        [np.asarray(latent, np.float32) for latent in run.latents] or [None] * len(run.returns),
        np.asarray(states, np.float32),
        np.asarray(greedy.action[0, :length], np.int32),
        json.loads(json.dumps(metadata)),
    )


def check_record(record: CellRecord) -> None:
    """Raise `ValueError` where the parts of a record that was read do not fit together."""
    lengths = {len(record.latents), *(len(values) for values in record.metrics.values())}
    width, steps = len(record.family_facts.states), len(record.actions)
    typed(dict[str, float], record.theta, "theta", nan=True)
    for part in (record.metadata["settings"], record.metadata["settings"]["setup"], record.metadata["versions"]):
        typed(dict[str, Any], part, "metadata")
    complete = None not in record.name
    if not complete or lengths != {record.episodes} or record.states.shape != (steps + 1, width):
        raise ValueError("The parts of the record do not fit together.")
    if record.reference is not None and not record.reference.best_known > record.reference.random:
        raise ValueError("The reference returns do not fit together.")


def identical(first: CellRecord, second: CellRecord) -> bool:
    """Whether two records hold the same bits."""
    return _parts(first) == _parts(second)


def _parts(record: CellRecord) -> list[Any]:
    arrays = [*(record.metrics[name] for name in METRICS), *record.latents, record.states, record.actions]
    bits = [None if a is None else (a.dtype.str, a.shape, a.tobytes()) for a in arrays]
    # As text, where NaN equals itself.
    return [record.name, bits, json.dumps(record.metadata, sort_keys=True)]
