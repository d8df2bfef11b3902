"""`compare`: run a study, or what is left of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hipmdp.data.files import claim, output_directory
from hipmdp.study.execute import Agenda, run_here, run_in_processes
from hipmdp.study.on_ray import run_on_ray
from hipmdp.study.pieces import CellPiece, Piece
from hipmdp.study.store import Outcome, failure
from hipmdp.transfer.progress import Progress


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
    goals: Sequence[Piece], out: str | Path, executor: Executor | None = None, quiet: bool = False
) -> list[tuple[Piece, str]]:
    """Make all cells (and extras) that are not there yet, and what they need. Returns those that failed, and why.

    Killed at any moment and called again, it goes on where it stopped. Several calls may work on one directory.
    """
    executor = executor or Executor()
    for name, value in (("jobs", executor.jobs), ("cpus", executor.cpus)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    directory = output_directory(Path(out))
    for goal in goals:
        if isinstance(goal, CellPiece):
            _claim(directory, goal)
    progress = _Report(goals, directory, quiet)
    if executor.ray:
        run_on_ray(directory, goals, progress, executor.address, executor.cpus, executor.shared)
    elif executor.jobs == 1:
        run_here(Agenda(directory, goals, progress))
    else:
        run_in_processes(Agenda(directory, goals, progress), executor.jobs)
    progress.line.close()
    return [(goal, failure(directory, goal)) for goal in goals if not (directory / goal.path).exists()]


def _claim(directory: Path, cell: CellPiece) -> None:
    """Cells of one family and variant share all settings, which stand beside them."""
    setup, folder = cell.setup, directory / "cells" / cell.setup.family_label
    output_directory(folder)
    claim(directory / "study.json", json.dumps({"preset": setup.preset}), "study")
    claim(folder / f"{setup.variant.name}.json", json.dumps(setup.description()), "study")


class _Report:
    """Progress, counted in cells."""

    def __init__(self, goals: Sequence[Piece], directory: Path, quiet: bool) -> None:
        self.line, self._goals, self._done = Progress("compare, cell", len(goals), quiet=quiet), set(goals), 0
        self.line.skip(sum((directory / goal.path).exists() for goal in goals))

    def __call__(self, piece: Piece, outcome: Outcome) -> None:
        self._done += piece in self._goals
        self.line.show(self._done, f"({piece.path.with_suffix('')} {outcome})")
