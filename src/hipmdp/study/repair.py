"""Damaged files of a study: which they are, and how `compare --repair` makes room for them to be made again."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hipmdp._files import read_json, save_json
from hipmdp.study.cells.files import cell_paths, packed_paths, read_records
from hipmdp.study.cells.record import VERSIONS, CellRecord
from hipmdp.study.scheduler import dependencies
from hipmdp.study.store import Task, study_lock


def check_whole(directory: Path, goals: Iterable[Task]) -> None:
    """Raise `ValueError` if a file that the goals would take for done is damaged."""
    found = damaged(directory, goals)
    if found:
        first, *others = found.values()
        more = f" (and {len(others)} more)" if others else ""
        raise ValueError(f"{first.rstrip('.')}{more}: the same command with --repair makes what is damaged again.")


def damaged(directory: Path, goals: Iterable[Task]) -> dict[Task, str]:
    """The tasks whose file is there and not whole, each with what is wrong with it."""
    found = {}
    for task in dependencies(directory, goals):
        path = directory / task.path
        if path.exists():
            try:
                task.check(path)
            except ValueError as error:
                found[task] = str(error)
    return found


def repair(directory: Path, goals: Iterable[Task]) -> list[Path]:
    """Set aside, as NAME.damaged, what is damaged of the goals and of what they need; returns the paths.

    So are packed files, which may hold cells that are not among the goals. Descriptions of settings are written again
    from the cells, which hold them too.
    """
    goals = list(goals)
    with study_lock(directory, exclusive=True) as alone:
        if not alone:
            raise ValueError(f"Another process works on {str(directory)!r}: repair it when that has ended.")
        gone = [path for path in packed_paths(directory) if not _readable(path)]
        for path in gone:
            _set_aside(path)
        # What a damaged file was made from is looked at once that file is gone.
        while found := damaged(directory, goals):
            for task in found:
                _set_aside(directory / task.path)
                gone.append(directory / task.path)
        return gone + _repair_descriptions(directory)


def _set_aside(path: Path) -> None:
    os.replace(path, path.with_name(f"{path.name}.damaged"))


def _repair_descriptions(directory: Path) -> list[Path]:
    paths = [directory / "study.json", *(directory / "cells").glob("*/*.json")]
    broken = [path for path in paths if path.exists() and not _is_description(path)]
    records = (
        [r for path in [*packed_paths(directory), *cell_paths(directory)] for r in _readable(path)] if broken else []
    )
    for path in broken:
        _set_aside(path)
        kept = [content for record in records if (content := _description(path, directory, record)) is not None]
        if kept:
            save_json(path, kept[0])
    return broken


def _description(path: Path, directory: Path, record: CellRecord) -> dict[str, Any] | None:
    """What a cell says that the description at `path` held."""
    setup = record.metadata["settings"]["setup"]
    if path.parent == directory:
        return {"preset": setup["preset"], **{name: record.metadata["versions"].get(name) for name in VERSIONS}}
    mine = (record.key["family"], record.key["variant"]) == (path.parent.name, path.stem)
    return setup if mine else None


def _readable(path: Path) -> list[CellRecord]:
    try:
        return read_records(path)
    except ValueError:
        return []


def _is_description(path: Path) -> bool:
    try:
        read_json(path)
    except ValueError:
        return False
    return True
