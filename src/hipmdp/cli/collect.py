"""`hipmdp collect FAMILY`: the batch 𝒟 as a Parquet file."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from hipmdp.data.parquet import save_transitions
from hipmdp.families import make
from hipmdp.transfer.collect import collect as run_collect


def collect(
    family: Annotated[str, tyro.conf.Positional],
    instances: str = "5",
    episodes: int = 500,
    seed: int = 0,
    preset: str = "default",
    out: Path | None = None,
    sd: float | None = None,
    jobs: int | None = None,
) -> None:
    """Learn to control each training instance with model-free DDQN, and keep everything it experienced.

    Can be interrupted (Ctrl-C) and started again: it goes on where it stopped, to the same bits.

    Example: hipmdp collect hiv --instances 5 --episodes 500 --out hiv-batch

    Example: hipmdp collect cartpole:family --instances 5 --episodes 150 --out cartpole-batch

    Args:
        family: grid, acrobot, hiv, or module:name of your own.
        instances: How many (the first of train32, or of train on grid), a set's name, or labels (test:3,test:4).
        episodes: Episodes for each instance.
        seed: Seed of everything that is drawn.
        preset: default, or paper (to the letter).
        out: Directory for batch.parquet and for what is needed to go on; by default FAMILY-batch.
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        jobs: Instances learned side by side; by default the number of cores.
    """
    directory = out or Path(f"{family.replace(':', '.')}-batch")
    options = {} if sd is None else {"sd": sd}
    batch = run_collect(make(family, **options), named_instances(instances), episodes, seed, preset, directory, jobs)
    path = directory / "batch.parquet"
    save_transitions(batch, path)
    table = Table(title=f"{len(batch)} transitions in {path}")
    for column in ("instance", "episodes", "transitions", "first 10 %", "last 10 %"):
        table.add_column(column, justify="right")
    returns = batch.episode_returns()
    for instance in batch.instances:
        mine = np.asarray([value for (i, _), value in sorted(returns.items()) if i == instance])
        tenth = max(1, len(mine) // 10)
        rows = int(np.sum(batch.instance == instance))
        table.add_row(
            str(instance), str(len(mine)), str(rows), f"{np.mean(mine[:tenth]):.4g}", f"{np.mean(mine[-tenth:]):.4g}"
        )
    table.caption = "mean returns of ε-greedy learning episodes"
    Console().print(table)


def named_instances(text: str) -> Any:
    """`5`, `train`, or `test:3,test:4`."""
    if text.isdigit():
        return int(text)
    return text.split(",") if "," in text else text
