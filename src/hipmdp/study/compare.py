"""`compare`: run a study, or what is left of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    cells: Sequence[CellPiece], out: str | Path, executor: Executor | None = None, quiet: bool = False
) -> list[tuple[CellPiece, str]]:
    """Make all cells that are not there yet, and what they need. Returns those that failed, each with its reason.

    Killed at any moment and called again, it goes on where it stopped. Several calls may work on one directory.
    """
    executor = executor or Executor()
    if executor.jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {executor.jobs}.")
    directory = output_directory(Path(out))
    for cell in cells:
        _claim(directory, cell)
    progress = _Report(len(cells), quiet)
    if executor.ray:
        run_on_ray(directory, cells, progress, executor.address, executor.cpus, executor.shared)
    elif executor.jobs == 1:
        run_here(Agenda(directory, cells, progress))
    else:
        run_in_processes(Agenda(directory, cells, progress), executor.jobs)
    progress.line.close()
    return [(cell, failure(directory, cell)) for cell in cells if not (directory / cell.path).exists()]


def _claim(directory: Path, cell: CellPiece) -> None:
    """Cells of one family and variant share all settings, which stand beside them."""
    setup, folder = cell.setup, directory / "cells" / cell.setup.family_label
    output_directory(folder)
    claim(directory / "study.json", json.dumps({"preset": setup.preset}), "study")
    claim(folder / f"{setup.variant.name}.json", json.dumps(asdict(setup)), "study")


class _Report:
    """Progress, counted in cells."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.line, self._done = Progress("compare, cell", total, quiet=quiet), 0

    def __call__(self, piece: Piece, outcome: Outcome) -> None:
        self._done += isinstance(piece, CellPiece)
        self.line.show(self._done, f"({piece.path.with_suffix('')} {outcome})")
