"""The numbers of runs as TensorBoard event files (needs `hipmdp[tensorboard]`)."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hipmdp._files import file_name, output_directory
from hipmdp.adaptation.run import Run
from hipmdp.study.results import Results


def need_tensorboard() -> None:
    """Raise `ValueError` where event files cannot be written."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise ValueError("TensorBoard files need the extra: pip install 'hipmdp[tensorboard]'.")


def write_run(run: Run, directory: Path) -> Path:
    """One run, episode by episode."""
    return _write(
        directory,
        {
            "learning_returns": run.learning_returns,
            "returns": run.returns,
            "success": run.success,
            "model_error": run.model_error,
            "seconds": run.seconds,
        },
    )


def write_results(results: Results, directory: Path) -> Path:
    """All cells of a study, each in a directory of its own: family/method/variant/instance-seed."""
    for record in results.records:
        cell = f"{record.key['instance'].replace(':', '')}-seed{record.key['seed']}"
        names = [*(record.key[part] for part in ("family", "method", "variant")), cell]
        folder = directory.joinpath(*map(file_name, names))
        _write(folder, {**record.metrics, "score": results.values(record, "score")})
    return directory


def _write(directory: Path, metrics: Mapping[str, Any]) -> Path:
    need_tensorboard()
    from tensorboardX import SummaryWriter

    # What an earlier call wrote would be drawn again beside the new curve.
    for old in output_directory(directory).glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(directory)) as writer:
        for name, values in metrics.items():
            for episode, value in enumerate(np.asarray(values, np.float64)):
                if np.isfinite(value):
                    writer.add_scalar(name, float(value), episode)
    return directory
