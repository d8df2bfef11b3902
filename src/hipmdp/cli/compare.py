"""`hipmdp compare FAMILY …`: the methods side by side on new instances."""

import sys
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp._errors import LARGEST_SEED, MOST_SEEDS, check_jobs, known_name, whole
from hipmdp._outputs import try_outputs
from hipmdp._tables import plain
from hipmdp.adaptation.methods import METHODS
from hipmdp.cli.output import say
from hipmdp.study.ablations import ablated
from hipmdp.study.compare import Executor
from hipmdp.study.compare import compare as run_compare
from hipmdp.study.paper_figures.extras import extra_tasks
from hipmdp.study.results import read_results
from hipmdp.study.setup import check_count, parse_instances, parse_setup
from hipmdp.study.summary import summary_table, write_summary
from hipmdp.study.tasks import CellTask, plan


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
    repair: bool = False,
) -> None:
    """Run a study: every method on every instance with every seed, and each such cell is one file in --out.

    Killed at any moment and started again, it resumes. Cells can be added later: more seeds, instances, methods,
    families; `hipmdp pack` makes one file of many. A cell that fails is recorded and the others run; the exit code is
    then 1.

    Example: hipmdp compare grid acrobot:sd=0.25 hiv --instances 10 --seeds 3 --jobs 2 --out study

    Example: hipmdp compare hiv --methods embedded --ablations latent_size training --instances 5 --out ablations

    Example: hipmdp compare hiv --seeds 10 --executor ray --address auto --shared --out /shared/study

    Args:
        families: grid, compass, acrobot, hiv; options after a colon: acrobot:sd=0.25 is the wide family. Your own:
            module:name.
        methods: Which ones, by default all.
        instances: test (all of that set), 10 (the first ten of test, or all of a family that has fewer), or labels
            (test:3,test:4).
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
        repair: Make files again that are damaged. Without it, they are named and nothing is removed.
    """
    known_name("executor", executor, ("local", "ray"))
    if executor == "local" and (address is not None or shared):
        raise ValueError("--address and --shared are for --executor ray.")
    if executor == "ray" and jobs != 1:
        raise ValueError(
            "--jobs is for this machine; with --executor ray the cluster decides, and --cpus says how large."
        )
    if not families and not extras:
        raise ValueError("Name at least one family: grid, compass, acrobot, hiv, or module:name of your own.")
    if families and not methods:
        raise ValueError(f"--methods names no method: give at least one of {', '.join(METHODS)}, or leave it out.")
    whole("--seeds", seeds, 1, MOST_SEEDS)
    whole("--first-seed", first_seed, 0, LARGEST_SEED - MOST_SEEDS)
    check_jobs(jobs)
    check_jobs(cpus, "cpus")
    try_outputs([out])
    setups = [parse_setup(f, training, training_episodes, episodes, preset=preset, reward=reward) for f in families]
    labels = {setup.family_label: parse_instances(setup.make(), instances) for setup in setups}
    check_count(instances, labels)
    varied = [variant for setup in setups for variant in ablated(setup, list(ablations))]
    numbers = list(range(first_seed, first_seed + seeds))
    goals = [*plan(varied, list(dict.fromkeys(methods)), labels, numbers), *extra_tasks(list(extras), numbers, preset)]
    failed = run_compare(goals, out, Executor(jobs, executor == "ray", address, cpus, shared), repair=repair)
    broken = {task for task, _ in failed}
    lines = [f"hipmdp: {task.path.with_suffix('')} failed: {plain(reason)}" for task, reason in failed]
    if failed:
        lines.append(f"hipmdp: {len(failed)} of {len(goals)} cells failed; the same command tries them again.")
    try:
        if any(isinstance(goal, CellTask) and goal not in broken for goal in goals):
            _show(out)
    finally:
        # Also where the disk is too full for the summary.
        sys.stderr.writelines(f"{line}\n" for line in lines)
    if failed:
        sys.exit(1)


def _show(out: Path) -> None:
    """What the cells that are there say together."""
    console, results = Console(), read_results(out)
    for name in results.names("family"):
        console.print(summary_table(results, name))
    written = [*results.write(out), write_summary(results, out)]
    say(console, f"In {out}: {', '.join(path.name for path in written)}")
    say(console, f"Figures: hipmdp report {out}")
