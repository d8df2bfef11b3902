"""Tasks and the directory of their files: a file is written once and whole, by the process that holds its lock.

A lock belongs to a process and falls with it, so nothing is left behind by a kill. Without locks (not POSIX, or a file
system that has none) two processes may do the same work twice, and write the same file.
"""

import os
import shutil
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from hipmdp._files import (
    DiskError,
    atomic_write,
    fcntl,
    output_directory,
    read_json,
    remove_leftovers,
    remove_unlocked,
    save_json,
)

FOLDERS = ("batches", "models", "cells", "extras", "packed", "work")
"""What a study's directory is divided into."""


class Task(ABC):
    """One file of a directory, and what it is made from. Tasks are hashable, and can be sent to other processes."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """Where it lies in the directory."""

    @property
    @abstractmethod
    def needs(self) -> "tuple[Task, ...]":
        """The tasks whose files it is made from."""

    @abstractmethod
    def make(self, inputs: list[Path], out: Path, work: Path, cores: int) -> None:
        """Make it from the files of `needs`, into the file `out`. `work` is a directory to resume from."""

    @abstractmethod
    def check(self, path: Path) -> None:
        """Raise `ValueError` if the file `path` is not whole, or is not of this task."""


class Outcome(StrEnum):
    """What came of one attempt at a task."""

    DONE = "done"
    FAILED = "failed"
    BUSY = "busy"
    """Another process works on it."""


def run_task(directory: Path, task: Task, cores: int) -> Outcome:
    """Make the file of a task, unless it is there. An error is kept beside it, and does not end the study."""
    target = directory / task.path
    work = directory / "work" / "-".join(task.path.with_suffix("").parts)
    if target.exists():
        # Left by a kill after the file was written.
        shutil.rmtree(work, ignore_errors=True)
        return Outcome.DONE
    output_directory(target.parent)
    with _locked(target.with_name(f".{target.name}.lock")) as mine:
        if not mine:
            return Outcome.BUSY
        if target.exists():
            return Outcome.DONE
        try:
            inputs = [directory / need.path for need in task.needs]
            with atomic_write(target) as temporary:
                task.make(inputs, temporary, work, cores)
        except Exception as error:
            record_failure(directory, task, str(error) or type(error).__name__, traceback.format_exc())
            # A kill, Ctrl-C or a full disk leaves what was done, to resume from; an error does not, as it might come
            # from there.
            if not isinstance(error, DiskError):
                shutil.rmtree(work, ignore_errors=True)
            return Outcome.FAILED
        error_path(directory, task).unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)
    return Outcome.DONE


def error_path(directory: Path, task: Task) -> Path:
    """Where the last error of a task is kept."""
    return (directory / task.path).with_suffix(".error.json")


def record_failure(directory: Path, task: Task, error: str, details: str = "") -> None:
    """Keep an error; where not even that can be written, say both."""
    path = error_path(directory, task)
    try:
        output_directory(path.parent)
        save_json(path, {"error": error, "details": details}, indent=1)
    except (OSError, ValueError) as unwritten:
        first = (error.splitlines() or [""])[0]
        sys.stderr.write(f"hipmdp: {task.path.with_suffix('')} failed: {first} ({unwritten})\n")


def failure(directory: Path, task: Task) -> str:
    """The last error of a task, in one line."""
    path = error_path(directory, task)
    if not path.exists():
        return f"the reason could not be written to {str(path)!r}"
    try:
        return str(read_json(path)["error"]).splitlines()[0]
    except (ValueError, LookupError):
        return f"the reason cannot be read, as {str(path)!r} is damaged"


def remove_left(directory: Path) -> None:
    """Remove temporary files and locks of processes that were killed."""
    remove_leftovers(directory)
    for folder in FOLDERS:
        remove_leftovers(directory / folder, below=True)
        for path in (directory / folder).rglob(".*.lock"):
            remove_unlocked(path)


@contextmanager
def study_lock(directory: Path, *, exclusive: bool) -> Iterator[bool]:
    """Hold a study for the block: many processes may add to it, or one may pack it. False: others hold it.

    The lock is on study.json, which is written once and never replaced; without it no process adds cells.
    """
    path = directory / "study.json"
    if fcntl is None or not path.exists():
        yield True
        return
    with path.open("rb") as file:
        yield _flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold a lock for the block; False: another process has it."""
    if fcntl is None:
        yield True
        return
    try:
        opened = open(path, "w", opener=_never_a_link)  # noqa: SIM115
    except OSError as error:
        raise ValueError(f"Cannot write to {str(path.parent)!r}: {error.strerror}.") from None
    with opened as file:
        # Another process may have removed it before it was locked: the next one that comes makes a new one.
        mine = _flock(file, fcntl.LOCK_EX) and os.fstat(file.fileno()).st_nlink > 0
        yield mine
        if mine:
            # A process that waits opens it again, and finds the task done.
            path.unlink(missing_ok=True)


def _never_a_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _flock(file: Any, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks.
        return True
    return True
