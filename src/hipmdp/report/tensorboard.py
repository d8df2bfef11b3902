"""The numbers of runs as TensorBoard event files (needs `hipmdp[tensorboard]`)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hipmdp.data.files import output_directory
from hipmdp.study.record import NUMBERS
from hipmdp.study.results import Results
from hipmdp.transfer.run import Run


def write_run(run: Run, directory: Path) -> Path:
    """One run, episode by episode."""
    values = (run.learning_returns, run.returns, run.success, run.model_error, run.seconds)
    return _write(directory, dict(zip(NUMBERS, values, strict=True)))


def write_results(results: Results, directory: Path) -> Path:
    """All cells of a study, each in a directory of its own: family/method/variant/instance-seed."""
    for record in results.records:
        facts = record.facts
        name = f"{facts['instance'].replace(':', '')}-seed{facts['seed']}"
        place = directory / facts["family"] / facts["method"] / facts["variant"] / name
        _write(place, {**record.numbers, "score": results.scores(record)})
    return directory


def _write(directory: Path, numbers: Mapping[str, Any]) -> Path:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise ValueError("TensorBoard files need the extra: pip install 'hipmdp[tensorboard]'.") from None
    # What an earlier call wrote would be drawn again beside the new curve.
    for old in output_directory(directory).glob("events.out.tfevents.*"):
        old.unlink()
    with SummaryWriter(str(directory)) as writer:
        for name, values in numbers.items():
            for episode, value in enumerate(np.asarray(values, np.float64)):
                if np.isfinite(value):
                    writer.add_scalar(name, float(value), episode)
    return directory
