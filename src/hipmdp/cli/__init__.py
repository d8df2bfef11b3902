"""`hipmdp …` on the command line: results on stdout or in `--out`, progress on stderr."""

import importlib
import sys
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import tyro

COMMANDS = ("demo", "instances", "check-env", "collect", "pretrain", "adapt", "online", "compare", "report", "info")
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
            if words[0] in COMMANDS:
                tyro.cli(command(words[0]), prog=f"hipmdp {words[0]}", args=words[1:])
            else:
                every = {name: command(name) for name in COMMANDS}
                tyro.extras.subcommand_cli_from_dict(every, prog="hipmdp", description=DESCRIPTION, args=words)
    except ValueError as error:
        if debug:
            raise
        _stop(str(error), 2)
    except KeyboardInterrupt:
        _stop("interrupted.", 130)
    except BrokenPipeError:
        # Whoever was reading has seen enough.
        sys.stderr.close()
        sys.exit(141)
    except Exception as error:
        if debug:
            raise
        _stop(f"unexpected {type(error).__name__}: {error} (--debug shows where; please report it).", 1)


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line, without the place in the source that only its authors care about."""
    sys.stderr.write(f"hipmdp: warning: {' '.join(str(message).split())}\n")


def _stop(sentence: str, code: int) -> None:
    sys.stderr.write(f"hipmdp: {' '.join(sentence.split())}\n")
    sys.exit(code)
