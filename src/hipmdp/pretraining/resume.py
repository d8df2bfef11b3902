"""A model that is made in a directory: checkpoints on the way, the model at the end, and only one piece of work."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hipmdp._files import claim_directory, output_directory
from hipmdp._progress import interruptible
from hipmdp._random import STREAMS_VERSION
from hipmdp.data.work import Work
from hipmdp.pretraining.model import Model, load
from hipmdp.settings import SETTINGS_VERSION


def resumable_model(
    out: str | Path | None, what: str, description: dict[str, Any], learn: Callable[[Work], Model]
) -> Model:
    """The model that `learn` makes, in the directory `out`; without one, nothing is kept.

    `description` is what decides the model: a directory of another one is refused.
    """
    if out is None:
        return learn(Work())
    directory = output_directory(Path(out))
    versions = {"streams": STREAMS_VERSION, "settings": SETTINGS_VERSION, "version": version("hipmdp")}
    claim_directory(directory / f"{what}.json", {**description, **versions}, "model")
    path = directory / "model.hipmdp"
    if path.exists():
        # An earlier call was killed after it had written the model.
        Work(directory).clear()
        return load(path)
    with interruptible() as interrupt:
        work = Work(directory, interrupt)
        model = learn(work)
        model.save(path)
        work.clear()
        if interrupt.pressed:
            raise KeyboardInterrupt
    return model


def clear_directory(directory: Path, what: str) -> None:
    """Remove what `resumable_model` left in its directory, and the directory if nothing else is in it."""
    Work(directory).clear()
    for name in (f"{what}.json", "model.hipmdp"):
        (directory / name).unlink(missing_ok=True)
    with suppress(OSError):
        directory.rmdir()


def model_digest(model: Model) -> str:
    """What identifies a model in the description of a piece of work."""
    plain: list[Any] = [model.method, model.specification.to_dict(), model.centre, model.scale, model.low, model.high]
    plain += [model.names, model.metrics, None if model.oracle is None else model.oracle._asdict()]
    config = None if model.dynamics is None else dataclasses.asdict(model.dynamics.config)
    digest = hashlib.sha256(json.dumps([*plain, config], sort_keys=True).encode())
    parts = (model.dynamics, model.policy, model.latent_policy, model.reward_head, model.support)
    for leaf in jax.tree.leaves(parts):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    return digest.hexdigest()
