"""`hipmdp collect FAMILY`: the batch 𝒟 as a Parquet file."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from hipmdp._errors import check_episodes, check_jobs, check_seed, known_name
from hipmdp._outputs import try_outputs
from hipmdp._tables import plain_table
from hipmdp.data.logs.parquet import save_transitions
from hipmdp.families import make
from hipmdp.pretraining.collect import collect as run_collect
from hipmdp.settings.presets import PRESETS
from hipmdp.study.setup import LONGEST_NUMBER


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
    """Learn to control each training instance with model-free DDQN, and keep all transitions.

    Can be interrupted (Ctrl-C) and started again: it resumes, to the same bits. Ctrl-C waits for the steps under way
    and keeps them; pressed twice, it ends at once, and what came after the last checkpoint is lost.

    Example: hipmdp collect hiv --instances 5 --episodes 500 --out hiv-batch

    Example: hipmdp collect cartpole:family --instances 5 --episodes 150 --out cartpole-batch

    Args:
        family: grid, compass, acrobot, hiv, or module:name of your own.
        instances: How many (the first of train32, or of train on grid), a set's name, or labels (test:3,test:4).
        episodes: Episodes for each instance.
        seed: Seed of everything that is drawn.
        preset: default, or paper (to the letter).
        out: Directory for batch.parquet and for what is needed to resume; by default FAMILY-batch.
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        jobs: Instances learned side by side; by default the number of cores.
    """
    check_seed(seed)
    check_jobs(jobs)
    known_name("preset", preset, PRESETS)
    member = make(family, **({} if sd is None else {"sd": sd}))
    check_episodes(episodes, member.horizon)
    directory = out or Path(f"{family.replace(':', '.')}-batch")
    path = directory / "batch.parquet"
    try_outputs([directory], [path])
    batch = run_collect(member, named_instances(instances), episodes, seed, preset, directory, jobs)
    save_transitions(batch, path)
    rows, returns = [], batch.episode_returns()
    for instance in batch.instances:
        mine = np.asarray([value for (i, _), value in sorted(returns.items()) if i == instance])
        tenth = max(1, len(mine) // 10)
        count = int(np.sum(batch.instance == instance))
        rows.append(
            [str(instance), str(len(mine)), str(count), f"{np.mean(mine[:tenth]):.4g}", f"{np.mean(mine[-tenth:]):.4g}"]
        )
    table = plain_table(
        f"{len(batch)} transitions in {path}",
        ["instance", "episodes", "transitions", "first 10 %", "last 10 %"],
        rows,
        caption="mean returns of ε-greedy learning episodes",
    )
    Console().print(table)


def named_instances(text: str) -> Any:
    """`5`, `train`, or `test:3,test:4`."""
    if text.removeprefix("-").isdecimal():
        return int(text[:LONGEST_NUMBER])
    return text.split(",") if "," in text else text
