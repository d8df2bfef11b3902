"""Write docs/command-line.md from what `hipmdp … --help` says: `python docs/write_command_line.py`."""

import contextlib
import io
import os
import textwrap
from pathlib import Path
from unittest import mock

from hipmdp import cli

PAGE = Path(__file__).with_name("command-line.md")
WIDTH = 100
HEAD = """\
---
hide: [toc]
---

<!-- Written by `python docs/write_command_line.py` from the live --help: do not edit. -->

# Command line

Progress goes to stderr, results to stdout or into `--out`. With `--debug` any command shows the traceback of an error.

Exit codes: 0 done, 1 something failed (a check, or cells of a study), 2 bad input (one sentence
says what), 130 interrupted.
"""


def help_of(*words: str) -> str:
    """What the command says about itself, at a fixed width and without colours."""
    said = io.StringIO()
    fixed = mock.patch.dict(os.environ, COLUMNS=str(WIDTH), NO_COLOR="1")
    with fixed, contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        cli.main([*words, "--help"])
    lines = []
    for line in said.getvalue().strip().splitlines():
        # Boxes fit the width; the sentences above them do not.
        lines += textwrap.wrap(line, WIDTH) if len(line) > WIDTH else [line.rstrip()]
    return "\n".join(lines)


def page() -> str:
    """The whole page."""
    parts = [HEAD, f"```text\n{help_of()}\n```\n"]
    parts += [f"## hipmdp {name}\n\n```text\n{help_of(name)}\n```\n" for name in cli.COMMANDS]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
