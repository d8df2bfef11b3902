"""Files are written whole or not at all, are on the disk before they count, and notice when a bit of them flips.

A file is written under a temporary name that nobody can guess, `.NAME.<16 hex digits>.tmp.SUFFIX`, and renamed. While
it is written its process holds a lock on it, which falls with the process: a temporary file without a lock was left by
a kill, and is removed at the next start.
"""

import errno
import hashlib
import importlib
import importlib.util
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

LONGEST_NAME = 200
"""Bytes of a file name that is made from a stored name."""
DIGEST = "sha256"
"""The entry of a JSON file that holds the digest of the others."""
REMOVE = "; remove it, and the same command makes it again"
"""What to do about a damaged file that is made from others."""
CLAIM_REMEDY = "; remove it if the directory holds work of this same command"
"""What to do about a damaged description of the work in a directory."""
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp(\..*)?", re.DOTALL)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""What a disk says that takes no more."""
_open_here: set[Path] = set()
"""Temporary names that this process is writing to."""


class DiskError(ValueError):
    """A file cannot be written: the disk is full or read-only. What was done before is still there."""


def reason(error: OSError) -> str:
    """What the system says, without the number."""
    return os.strerror(error.errno) if error.errno else str(error)


# Names.


def output_directory(path: Path) -> Path:
    """`path` as a directory that exists, otherwise a `ValueError`."""
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"Cannot write to {str(path)!r}: {reason(error)}.") from None
    for folder in missing:
        _flush_directory(folder.parent)
    return path


def file_name(text: str) -> str:
    """A stored name, if it can be the name of one file or folder inside a directory; otherwise a `ValueError`."""
    plain = text.isprintable() and not set(text) & set("/\\:") and text not in ("", ".", "..")
    if not plain or len(text.encode("utf-8", "replace")) > LONGEST_NAME:
        raise ValueError(f"A stored name cannot be the name of a file: {text[:LONGEST_NAME]!r}.")
    return text


def check_writable(path: Path) -> None:
    """Raise `ValueError` if the file `path` could not be written; what is there stays as it is."""
    _check_target(path)
    temporary, descriptor = _new_temporary(path)
    temporary.unlink(missing_ok=True)
    os.close(descriptor)


# Writing.


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` (same suffix), which becomes `path` only if the block succeeds.

    A full disk is a `DiskError` that names the file. Inside the block, a temporary file is itself written in place.
    """
    if path in _open_here:
        yield path
        return
    _check_target(path)
    remove_leftovers(path.parent, of=path)
    temporary, descriptor = _new_temporary(path)
    _open_here.add(temporary)
    try:
        yield temporary
        os.fsync(descriptor)
        os.replace(temporary, path)
        _flush_directory(path.parent)
    except OSError as error:
        # Others, which the block may have for any reason, stay as they are.
        if error.errno not in _FULL and error.filename not in (str(path), str(temporary)):
            raise
        raise DiskError(f"Cannot write {str(path)!r}: {reason(error)}.") from error
    finally:
        temporary.unlink(missing_ok=True)
        _open_here.discard(temporary)
        os.close(descriptor)


def _check_target(path: Path) -> None:
    try:
        if path.is_dir():
            raise ValueError(f"Cannot write {str(path)!r}: it is a directory.")
        if path.exists() and not path.is_file():
            raise ValueError(f"Cannot write {str(path)!r}: it is not a file.")
        if not path.parent.is_dir():
            raise ValueError(f"Cannot write {str(path)!r}: there is no directory {str(path.parent)!r}.")
    except OSError as error:
        raise ValueError(f"Cannot write {str(path)!r}: {reason(error)}.") from None


def _new_temporary(path: Path) -> tuple[Path, int]:
    """A new file beside `path`, never one that is there or that a link leads to; its lock is held by the descriptor."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    while True:
        temporary = path.with_name(f"{_start(path)}{secrets.token_hex(8)}.tmp{path.suffix}")
        try:
            descriptor = os.open(temporary, flags, 0o666)
        except FileExistsError:
            continue
        except OSError as error:
            raise ValueError(f"Cannot write {str(path)!r}: {reason(error)}.") from None
        if fcntl is None:
            return temporary, descriptor
        # Shared, so that a lock on the finished file, such as that of a study, is not in the way of others.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        # Before it was locked, another process took it for a left-over.
        os.close(descriptor)


def _start(path: Path) -> str:
    """How temporary names of `path` begin: cut, so that they are not too long where `path` is not."""
    return f".{path.stem[:50]}."


def _flush_directory(path: Path) -> None:
    """A name is on the disk when its directory is. Some systems cannot open or flush directories."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(directory: Path, *, of: Path | None = None, below: bool = False) -> None:
    """Remove temporary files (`of` one file; `below` the directory too) that killed processes left behind."""
    if fcntl is None or not directory.is_dir():
        return
    start = "." if of is None else _start(of)
    for folder, _, names in os.walk(directory):
        for name in names:
            if name.startswith(start) and _TEMPORARY.fullmatch(name):
                remove_unlocked(Path(folder, name))
        if not below:
            return


def remove_unlocked(path: Path) -> None:
    """Remove a file, unless a process holds a lock on it."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        try:
            # Where there are no locks nobody knows, and the file stays.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


# JSON.


def save_json(path: Path, content: dict[str, Any], indent: int | None = None) -> None:
    """Write a JSON file with a digest of its content, whole or not at all; `read_json` reads it."""
    with atomic_write(path) as temporary:
        temporary.write_text(json_with_digest(content, indent) + "\n", encoding="utf-8")


def read_json(path: Path, remedy: str = "") -> dict[str, Any]:
    """The content of a file that `save_json` wrote; anything else is a `ValueError` that names it, and the `remedy`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"Cannot read {str(path)!r}: {reason(error)}.") from None
    except ValueError:
        raise ValueError(f"{str(path)!r} is damaged: it is not text{remedy}.") from None
    return checked_json(text, str(path), remedy)


def json_with_digest(content: dict[str, Any], indent: int | None = None) -> str:
    """`content` as JSON with its digest as the last entry."""
    plain = json.loads(json.dumps(content))
    return json.dumps({**plain, DIGEST: _json_digest(plain)}, indent=indent)


def checked_json(text: str, where: str, remedy: str = "") -> dict[str, Any]:
    """The inverse of `json_with_digest`; text that does not fit its digest is a `ValueError`."""
    try:
        content = json.loads(text)
        if not isinstance(content, dict) or content.pop(DIGEST, None) != _json_digest(content):
            raise ValueError
    except (ValueError, RecursionError):
        raise ValueError(f"{where!r} is damaged: its content does not fit its digest{remedy}.") from None
    return content


def _json_digest(content: dict[str, Any]) -> str:
    """Of the values, however they are written."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


# Directories that belong to one piece of work.


def claim_directory(path: Path, description: dict[str, Any], what: str, remedy: str = CLAIM_REMEDY) -> None:
    """A directory belongs to one piece of work, described in the file `path`: refuse to mix another into it."""
    remove_leftovers(path.parent)
    if path.exists():
        check_claim(path, read_json(path, remedy), description, what)
        return
    save_json(path, description)


def check_claim(path: Path, stored: Any, description: dict[str, Any], what: str) -> None:
    """Raise `ValueError` if what is stored of the work in a directory is not `description`."""
    first, second = (json.dumps(value, sort_keys=True) for value in (stored, description))
    if first != second:
        raise ValueError(f"{str(path.parent)!r} holds another {what}: give another --out, or its own settings.")
