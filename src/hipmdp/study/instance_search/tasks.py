"""Searches as tasks: each (draw, seed) is one small file, made by the same processes as the cells of a study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipmdp._files import read_json, save_json
from hipmdp._progress import Progress
from hipmdp.families import make
from hipmdp.study.instance_search.search import baselines, search
from hipmdp.study.instance_search.searches import read_searches, search_name
from hipmdp.study.scheduler import Scheduler, run_in_processes
from hipmdp.study.store import Outcome, Task, failure, remove_left


@dataclass(frozen=True)
class SearchTask(Task):
    """One search on one draw; seed −1: the returns of simple policies."""

    family: str
    options: tuple[tuple[str, Any], ...]
    draw: int
    theta: tuple[tuple[str, float], ...]
    """θ by name."""
    seed: int

    @property
    def path(self) -> Path:
        """draw0003-seed0.json."""
        return Path(f"{search_name(self.draw, self.seed)}.json")

    @property
    def needs(self) -> tuple[Task, ...]:
        """Nothing."""
        return ()

    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Search."""
        family = make(self.family, **dict(self.options))
        theta = family.theta(dict(self.theta))
        result = baselines(family, theta) if self.seed < 0 else search(family, theta, self.seed)
        save_json(out, {"draw": self.draw, "seed": self.seed, "theta": dict(self.theta), **result})

    def check(self, path: Path) -> None:
        """By its digest."""
        read_json(path)


def run_searches(tasks: list[SearchTask], work: Path, jobs: int) -> None:
    """Run those searches that are not stored yet, in `jobs` processes; one that fails is a `ValueError`."""
    remove_left(work)
    stored = read_searches(work).found
    missing = [task for task in tasks if task.path.stem not in stored]
    if not missing:
        return
    progress, done = Progress("instances, search", len(missing)), set()

    def report(task: Task, outcome: Outcome) -> None:
        done.add(task)
        progress.show(len(done), f"({task.path.stem} {outcome})")

    run_in_processes(Scheduler(work, missing, report), jobs)
    progress.close()
    for task in missing:
        if not (work / task.path).exists():
            raise ValueError(f"The search {task.path.stem} failed: {failure(work, task)}")
