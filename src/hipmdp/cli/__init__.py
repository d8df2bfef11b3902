"""`hipmdp …` on the command line: results on stdout or in `--out`, progress on stderr."""

import contextlib
import functools
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import tyro

from hipmdp._errors import known_name
from hipmdp._files import reason
from hipmdp._progress import AbandonedError
from hipmdp._tables import plain
from hipmdp.cli.users_code import where_users_code_failed

COMMANDS = (
    "demo",
    "instances",
    "check-env",
    "collect",
    "pretrain",
    "adapt",
    "evaluate",
    "online",
    "compare",
    "pack",
    "report",
    "info",
)
"""Each is the function of the same name in the module of the same name."""
DESCRIPTION = """Control many systems that are similar but not the same.

Each command has --help with examples. Bad input gives one sentence and exit code 2; --debug shows the traceback."""


def command(name: str) -> Callable[..., Any]:
    """The function behind a command; only its own module is imported, as others bring plotting and more."""
    name = name.replace("-", "_")
    return getattr(importlib.import_module(f"hipmdp.cli.{name}"), name)


def main(arguments: list[str] | None = None) -> None:
    """Run one command (by default, what stands in `sys.argv`). Bad input gives one sentence and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"] or ["--help"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            _parsed(words)()
            sys.stdout.flush()
    except AbandonedError:
        # Threads may be inside XLA, which an interpreter that goes down would tear from under them.
        _say("interrupted.")
        os._exit(130)
    except KeyboardInterrupt:
        _stop("interrupted.", 130)
    except BrokenPipeError:
        # Whoever was reading has seen enough.
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if debug:
            raise
        _stop(*_told(error))


def _parsed(words: list[str]) -> Callable[[], Any]:
    """The call that the words stand for; words that make no sense are a `ValueError`."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            if words[0] in COMMANDS:
                return tyro.cli(_later(command(words[0])), prog=f"hipmdp {words[0]}", args=words[1:])
            if not words[0].startswith("-"):
                known_name("command", words[0], COMMANDS)
            every = {name: _later(command(name)) for name in COMMANDS}
            return tyro.extras.subcommand_cli_from_dict(every, prog="hipmdp", description=DESCRIPTION, args=words)
    except SystemExit as error:
        if error.code in (0, None):
            raise
        name = f"hipmdp {words[0]}" if words[0] in COMMANDS else "hipmdp"
        raise ValueError(f"{_first_part(errors.getvalue())} ({name} --help shows what is possible.)") from None


def _later(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same arguments and help, but the call is left to the caller: words are read before anything is done."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Callable[[], Any]:
        return functools.partial(function, *args, **kwargs)

    return call


def _first_part(box: str) -> str:
    """What is wrong, out of the box that tyro draws around it and around what could help."""
    lines = [line.strip("│ ") for line in box.splitlines()]
    inside = [line for line in lines if not line.startswith(("╭", "╰"))]
    parts: list[str] = []
    for line in inside:
        if line.startswith("──"):
            break
        parts.append(line)
    sentence = " ".join(" ".join(parts).split()).rstrip(".: ")
    return f"{sentence or 'These words make no sense'}."


def _told(error: Exception) -> tuple[str, int]:
    """One sentence, and the exit code."""
    found = where_users_code_failed(error)
    if found is not None:
        return found, 2
    if isinstance(error, ValueError):
        return str(error), 2
    if isinstance(error, OSError):
        named = f"{error.filename!r}: " if error.filename else ""
        return f"A file cannot be read or written: {named}{reason(error)}.", 2
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "The memory is full: give fewer episodes, instances or jobs.", 2
    text = f"unexpected {type(error).__name__}: {error} (--debug shows where; please report it)."
    return text, 1


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line, without the place in the source that only its authors care about."""
    _say(f"warning: {message}")


def _say(sentence: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"hipmdp: {plain(' '.join(sentence.split()))}\n")
    sys.stderr.flush()


def _stop(sentence: str, code: int) -> None:
    _say(sentence)
    sys.exit(code)
