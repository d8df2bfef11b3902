"""`hipmdp compare FAMILY …`: the methods side by side on new instances."""

import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp.families.checks import known_name
from hipmdp.study.ablations import ablated
from hipmdp.study.compare import Executor
from hipmdp.study.compare import compare as run_compare
from hipmdp.study.extras import extra_pieces
from hipmdp.study.pieces import CellPiece, plan
from hipmdp.study.results import read_results
from hipmdp.study.setup import parse_instances, parse_setup
from hipmdp.study.summary import summary_table, write_summary
from hipmdp.transfer.methods import METHODS


def compare(
    families: Annotated[tuple[str, ...], tyro.conf.Positional],
    methods: tuple[str, ...] = tuple(METHODS),
    instances: str = "test",
    seeds: int = 1,
    first_seed: int = 0,
    episodes: int = 10,
    training: str | None = None,
    training_episodes: int | None = None,
    preset: str = "default",
    reward: str = "given",
    ablations: tuple[str, ...] = (),
    extras: tuple[str, ...] = (),
    out: Path = Path("study"),
    jobs: int = 1,
    executor: str = "local",
    address: str | None = None,
    cpus: int = 1,
    shared: bool = False,
) -> None:
    """Run a study: every method meets every instance with every seed, and each such cell is one file in --out.

    Killed at any moment and started again, it goes on where it stopped. Cells can be added later: more seeds,
    instances, methods, families. A cell that fails is recorded and the others go on; the exit code is then 1.

    Example: hipmdp compare grid acrobot:sd=0.25 hiv --instances 10 --seeds 3 --jobs 2 --out study

    Example: hipmdp compare hiv --methods embedded --ablations latent_size training --instances 5 --out ablations

    Example: hipmdp compare hiv --seeds 10 --executor ray --address auto --shared --out /shared/study

    Args:
        families: grid, acrobot, hiv; options after a colon: acrobot:sd=0.25 is the wide family. Your own: module:name.
        methods: Which ones, by default all.
        instances: test (all of that set), 10 (the first ten of test), or labels (test:3,test:4).
        seeds: How many; each has its own batch and models.
        first_seed: The first of them.
        episodes: Real episodes on each instance.
        training: Training instances: a number or the name of a set; by default what docs/results.md used.
        training_episodes: Episodes on each of them.
        preset: default, or paper (to the letter).
        reward: Inside imagination: given, or learned from the logs.
        ablations: Vary one setting at a time as well: latent_size alpha weight_draws training imagination
            exploration.
        extras: Measure what figures 1 and 5 show as well: uncertainty scaling (needs hipmdp[gp], up to 25 minutes).
        out: Directory of the study.
        jobs: Processes side by side; 1 stays in this one.
        executor: local, or ray.
        address: Of the Ray cluster; by default one of this machine alone.
        cpus: Cores of one Ray task.
        shared: Every node of the Ray cluster sees --out; otherwise files travel through Ray.
    """
    known_name("executor", executor, ("local", "ray"))
    if executor == "local" and (address is not None or shared):
        raise ValueError("--address and --shared are for --executor ray.")
    if executor == "ray" and jobs != 1:
        raise ValueError(
            "--jobs is for this machine; with --executor ray the cluster decides, and --cpus says how large."
        )
    if not families and not extras:
        raise ValueError("Name at least one family: grid, acrobot, hiv, or module:name of your own.")
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}.")
    setups = [parse_setup(f, training, training_episodes, episodes, preset=preset, reward=reward) for f in families]
    labels = {setup.family_label: parse_instances(setup.make(), instances) for setup in setups}
    varied = [variant for setup in setups for variant in ablated(setup, list(ablations))]
    numbers = list(range(first_seed, first_seed + seeds))
    goals = [*plan(varied, list(methods), labels, numbers), *extra_pieces(list(extras), numbers, preset)]
    failed = run_compare(goals, out, Executor(jobs, executor == "ray", address, cpus, shared))
    if any((out / goal.path).exists() for goal in goals if isinstance(goal, CellPiece)):
        _show(out)
    if failed:
        lines = [f"hipmdp: {cell.path.with_suffix('')} failed: {reason}" for cell, reason in failed]
        lines.append(f"hipmdp: {len(failed)} of {len(goals)} cells failed; the same command tries them again.")
        sys.stderr.write("\n".join(lines) + "\n")
        sys.exit(1)


def _show(out: Path) -> None:
    """What the cells that are there say together."""
    console, results = Console(), read_results(out)
    for name in results.names("family"):
        console.print(summary_table(results, name))
    written = [*results.write(out), write_summary(results, out)]
    console.print(f"In {out}: {', '.join(path.name for path in written)}", highlight=False, soft_wrap=True)
    console.print(f"Figures: hipmdp report {out}", highlight=False, soft_wrap=True)
