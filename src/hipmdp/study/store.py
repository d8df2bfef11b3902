"""A study's directory: pieces are written once and whole; who works on one holds its lock.

A lock belongs to a process and falls with it, so nothing is left behind by a kill. Without locks (not POSIX, or a file
system that has none) two processes may do the same work twice, and write the same file.
"""

import importlib.util
import json
import shutil
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from hipmdp.data.files import output_directory, whole_file
from hipmdp.study.pieces import Piece

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None


class Outcome(StrEnum):
    """What came of one attempt at a piece."""

    DONE = "done"
    FAILED = "failed"
    BUSY = "busy"
    """Another process works on it."""


def perform(directory: Path, piece: Piece, cores: int) -> Outcome:
    """Make a piece, unless it is there. An error is kept beside it, and is not the end of the study."""
    target = directory / piece.path
    work = directory / "work" / "-".join(piece.path.with_suffix("").parts)
    if target.exists():
        # Left by a kill after the piece was written.
        shutil.rmtree(work, ignore_errors=True)
        return Outcome.DONE
    output_directory(target.parent)
    with _locked(target.with_name(f".{target.name}.lock")) as mine:
        if not mine:
            return Outcome.BUSY
        if target.exists():
            return Outcome.DONE
        try:
            inputs = [directory / need.path for need in piece.needs]
            with whole_file(target) as temporary:
                piece.make(inputs, temporary, work, cores)
        except Exception as error:
            record_failure(directory, piece, str(error) or type(error).__name__, traceback.format_exc())
            # A kill or Ctrl-C leaves what was done, to go on from; an error does not, as it might come from there.
            shutil.rmtree(work, ignore_errors=True)
            return Outcome.FAILED
        error_path(directory, piece).unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)
    return Outcome.DONE


def error_path(directory: Path, piece: Piece) -> Path:
    """Where the last error of a piece stands."""
    return (directory / piece.path).with_suffix(".error.json")


def record_failure(directory: Path, piece: Piece, error: str, details: str = "") -> None:
    """Keep an error."""
    path = error_path(directory, piece)
    output_directory(path.parent)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps({"error": error, "details": details}, indent=1) + "\n")


def failure(directory: Path, piece: Piece) -> str:
    """The last error of a piece, in one line."""
    path = error_path(directory, piece)
    return json.loads(path.read_text())["error"].splitlines()[0] if path.exists() else "no reason was kept"


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold a lock for the block; False: somebody else has it."""
    if fcntl is None:
        yield True
        return
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            # A file system without locks.
            yield True
            return
        yield True
        # Nobody may hold a lock on a file that is no longer there: who waits opens it anew, and finds the piece done.
        path.unlink(missing_ok=True)
