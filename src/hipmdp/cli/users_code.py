"""Errors that come out of a user's own code: a family, a method or a reward by `module:name`."""

import sys
import sysconfig
import traceback
from pathlib import Path

_OWN = Path(__file__).resolve().parents[1]
_INSTALLED = tuple(
    Path(path).resolve()
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(name))
)


def where_users_code_failed(error: BaseException) -> str | None:
    """A sentence with the file, the line and the error, if a user's code has called what failed; otherwise None.

    An error that hipmdp raises itself keeps its own words, whoever has called hipmdp.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [_kind(frame.filename) for frame in frames]
    # Whose code is innermost, leaving installed packages out: they do what they are asked to.
    known = [(frame, place) for frame, place in zip(frames, places, strict=True) if place is not None]
    if not known or known[-1][1] == "hipmdp":
        return None
    frame = known[-1][0]
    where = f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}"
    return (
        f"Your own code raised {type(error).__name__}: {str(error) or 'no reason given'} ({where}; --debug shows all)."
    )


def _kind(filename: str) -> str | None:
    """hipmdp's own file, a user's ("user"), or neither."""
    path = Path(filename)
    if not path.is_absolute() or not path.exists():
        return None
    path = path.resolve()
    if path.is_relative_to(_OWN):
        return "hipmdp"
    if any(path.is_relative_to(folder) for folder in _INSTALLED) or path.is_relative_to(Path(sys.prefix).resolve()):
        return None
    return None if path.name == "hipmdp" else "user"
