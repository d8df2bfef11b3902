"""`hipmdp …` on the command line: results on stdout or in `--out`, progress on stderr."""

import sys
import warnings
from typing import Any

import tyro

from hipmdp.cli.adapt import adapt
from hipmdp.cli.check_env import check_env
from hipmdp.cli.collect import collect
from hipmdp.cli.compare import compare
from hipmdp.cli.demo import demo
from hipmdp.cli.info import info
from hipmdp.cli.instances import instances
from hipmdp.cli.pretrain import pretrain
from hipmdp.cli.report import report

COMMANDS: dict[str, Any] = {
    "demo": demo,
    "instances": instances,
    "check-env": check_env,
    "collect": collect,
    "pretrain": pretrain,
    "adapt": adapt,
    "compare": compare,
    "report": report,
    "info": info,
}
DESCRIPTION = """Control many systems that are similar but not the same.

Each command has --help with examples. Bad input gives one sentence and exit code 2; --debug shows the traceback."""


def main(arguments: list[str] | None = None) -> None:
    """Run one command (by default, what stands in `sys.argv`). Bad input gives one sentence and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if not words:
        words = ["--help"]
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="hipmdp", description=DESCRIPTION, args=words)
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


def _warn(message: Warning | str, category: type[Warning], *where: Any) -> None:
    """One line, without the place in the source that only its authors care about."""
    sys.stderr.write(f"hipmdp: warning: {message}\n")


def _stop(sentence: str, code: int) -> None:
    sys.stderr.write(f"hipmdp: {' '.join(sentence.split())}\n")
    sys.exit(code)
