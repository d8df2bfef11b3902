"""`hipmdp pretrain BATCH`: how the family behaves, as one model file."""

import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp.data.files import output_directory
from hipmdp.data.parquet import load_transitions
from hipmdp.transfer.pretrain import pretrain as run_pretrain


def pretrain(
    batch: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="BATCH")],
    method: str = "embedded",
    seed: int = 0,
    preset: str = "default",
    out: Path | None = None,
) -> None:
    """Learn how a family of systems behaves from the logs of some of them, with one latent for each.

    Example: hipmdp collect hiv --instances train32 --episodes 150; hipmdp pretrain hiv-batch/batch.parquet

    Args:
        batch: A Parquet file from `hipmdp collect`.
        method: embedded, linear, average, scratch or model_free.
        seed: Seed of everything that is drawn.
        preset: default, or paper (to the letter).
        out: The model file to write; by default FAMILY-METHOD.hipmdp.
    """
    transitions = load_transitions(batch)
    path = out or Path(f"{transitions.specification.family}-{method}.hipmdp")
    output_directory(path.parent)
    begin = time.perf_counter()
    model = run_pretrain(transitions, method, seed, preset)
    model.save(path)
    console = Console()
    console.print(
        f"{path}: {method} model of {transitions.specification.family}, from {len(transitions)} transitions of "
        f"{len(transitions.instances)} instances, in {time.perf_counter() - begin:.0f} s",
        highlight=False,
        soft_wrap=True,
    )
    for name, value in model.report.items():
        console.print(f"  {name.replace('_', ' ')}: {value:.3g}", highlight=False)
    console.print(f"Next: hipmdp adapt {path} --instance test:0", highlight=False, soft_wrap=True)
