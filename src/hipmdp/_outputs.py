"""Outputs are tried before the work: what cannot be written is said in the first second."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hipmdp._files import check_writable, reason


def try_outputs(directories: Sequence[Path | None] = (), files: Sequence[Path | None] = ()) -> None:
    """Raise a `ValueError` unless all of these can be written; nothing is left behind, and files that exist stay.

    Directories, and the folders above them, are made where they are missing; a file's folder must exist or be among
    them. A path that is None is not asked for.
    """
    taken = {os.path.abspath(path) for path in directories if path is not None}
    for file in (os.path.abspath(path) for path in files if path is not None):
        if file in taken:
            raise ValueError(f"Each output needs a path of its own, but {file!r} is named twice.")
        taken.add(file)
    made: list[Path] = []
    try:
        for path in directories:
            if path is not None:
                _try_directory(path, made)
        for path in files:
            if path is not None:
                _try_file(path)
    finally:
        for folder in reversed(made):
            # Another process may have begun to use it.
            with suppress(OSError):
                folder.rmdir()


def _try_directory(path: Path, made: list[Path]) -> None:
    """Make the directory, noting in `made` what was missing, and write into it."""
    with _sentence(f"to {str(path)!r}"):
        for folder in (*reversed(path.parents), path):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        tempfile.TemporaryFile(dir=path).close()


def _try_file(path: Path) -> None:
    """Write what `atomic_write` would rename to `path`, and do not rename it."""
    with _sentence(repr(str(path))):
        check_writable(path)


@contextmanager
def _sentence(what: str) -> Iterator[None]:
    """Any failure to write, as one sentence with the path."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"Cannot write {what}: {reason(error)}.") from None
    except ValueError as error:
        if str(error).startswith("Cannot write"):
            raise
        # A path with a null character, for which the system has no number.
        raise ValueError(f"Cannot write {what}: {error}") from None
