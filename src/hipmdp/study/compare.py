"""`compare`: run a study, or what is left of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp._files import check_claim, claim_directory, output_directory, read_json
from hipmdp._progress import Progress
from hipmdp.study.cells.record import VERSIONS
from hipmdp.study.on_ray import run_on_ray
from hipmdp.study.pack import packed_setups
from hipmdp.study.repair import check_whole
from hipmdp.study.repair import repair as repair_study
from hipmdp.study.scheduler import Scheduler, run_here, run_in_processes
from hipmdp.study.setup import Setup
from hipmdp.study.store import Outcome, Task, failure, remove_left, study_lock
from hipmdp.study.tasks import CellTask, StudyTask

DESCRIPTION_REMEDY = "; `hipmdp compare … --repair` writes it again from the cells"
"""What to do about a damaged description of a study."""


@dataclass(frozen=True)
class Executor:
    """Where a study runs: here, in `jobs` processes, or on a Ray cluster."""

    jobs: int = 1
    ray: bool = False
    address: str | None = None
    """Of the cluster; None: one of this machine alone."""
    cpus: int = 1
    """Cores of one Ray task."""
    shared: bool = False
    """Whether every node of the cluster sees the study's directory."""


def compare(
    goals: Sequence[StudyTask],
    out: str | Path,
    executor: Executor | None = None,
    quiet: bool = False,
    repair: bool = False,
) -> list[tuple[StudyTask, str]]:
    """Make all cells (and extras) that are not there yet, and what they need. Returns those that failed, and why.

    Killed at any moment and called again, it resumes. Several calls may work on one directory. A packed cell is done.
    A file that is there and damaged is an error; with `repair` it is set aside and made again.
    """
    executor = executor or Executor()
    for name, value in (("jobs", executor.jobs), ("cpus", executor.cpus)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    directory = output_directory(Path(out))
    _check_versions(directory, repair=repair)
    if repair:
        repair_study(directory, goals)
    for preset in dict.fromkeys(goal.setup.preset for goal in goals):
        claim_directory(directory / "study.json", {"preset": preset, **VERSIONS}, "study")
    with study_lock(directory, exclusive=False) as mine:
        if not mine:
            raise ValueError(f"{str(directory)!r} is being packed: start again when that has ended.")
        remove_left(directory)
        packed = packed_setups(directory)
        for setup in dict.fromkeys(goal.setup for goal in goals if isinstance(goal, CellTask)):
            _claim(directory, setup, packed)
        left = [goal for goal in goals if not (isinstance(goal, CellTask) and goal.name in packed)]
        check_whole(directory, left)
        _run(directory, left, executor, _Progress(left, len(goals), directory, quiet))
    return [(goal, failure(directory, goal)) for goal in left if not (directory / goal.path).exists()]


def _run(directory: Path, goals: Sequence[Task], executor: Executor, progress: "_Progress") -> None:
    if executor.ray:
        run_on_ray(directory, goals, progress, executor.address, executor.cpus, executor.shared)
    elif executor.jobs == 1:
        run_here(Scheduler(directory, goals, progress))
    else:
        run_in_processes(Scheduler(directory, goals, progress), executor.jobs)
    progress.line.close()


def _check_versions(directory: Path, *, repair: bool) -> None:
    """Cells of different random streams or settings are not comparable; a damaged description is left to `repair`."""
    path = directory / "study.json"
    if not path.exists():
        return
    try:
        stored = read_json(path, DESCRIPTION_REMEDY)
    except ValueError:
        if not repair:
            raise
        return
    made = {name: stored.get(name, 1) for name in VERSIONS}
    if made != VERSIONS:
        raise ValueError(
            f"{str(directory)!r} holds a study of {_versions(made)}, and this hipmdp has {_versions(VERSIONS)}: "
            "give another --out."
        )


def _versions(versions: dict[str, Any]) -> str:
    return f"version {versions['streams']} of the random streams and version {versions['settings']} of the settings"


def _claim(directory: Path, setup: Setup, packed: dict[tuple[Any, ...], dict[str, Any]]) -> None:
    """Cells of one family and variant share all settings, which stand beside them or in the packed file."""
    path = output_directory(directory / "cells" / setup.family_label) / f"{setup.variant.name}.json"
    for (family, _, variant, *_), description in packed.items():
        if (family, variant) == (setup.family_label, setup.variant.name):
            check_claim(path, description, setup.description(), "study")
            return
    claim_directory(path, setup.description(), "study", DESCRIPTION_REMEDY)


class _Progress:
    """Progress, counted in cells."""

    def __init__(self, goals: Sequence[Task], total: int, directory: Path, quiet: bool) -> None:
        self.line = Progress("compare, cell", total, quiet=quiet)
        self._goals, self._done = set(goals), total - len(goals)
        self.line.skip(self._done + sum((directory / goal.path).exists() for goal in goals))

    def __call__(self, task: Task, outcome: Outcome) -> None:
        self._done += task in self._goals
        self.line.show(self._done, f"({task.path.with_suffix('')} {outcome})")
