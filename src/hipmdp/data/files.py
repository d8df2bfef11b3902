"""Files are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def output_directory(path: Path) -> Path:
    """`path` as a directory that exists, otherwise a `ValueError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"Cannot write to {str(path)!r}: {error.strerror}.") from None
    return path


def claim(path: Path, description: str, what: str) -> None:
    """A directory belongs to one piece of work, described in the file `path`: refuse to mix another into it."""
    if path.exists():
        if path.read_text() != description:
            raise ValueError(f"{str(path.parent)!r} holds another {what}: give another --out, or its own settings.")
        return
    with whole_file(path) as temporary:
        temporary.write_text(description)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` (same suffix) that becomes `path` only if the block succeeds."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
