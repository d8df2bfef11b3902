"""`hipmdp …` on the command line: results on stdout or in `--out`, progress on stderr."""

import sys
from typing import Any

import tyro

from hipmdp.cli.adapt import adapt
from hipmdp.cli.collect import collect
from hipmdp.cli.compare import compare
from hipmdp.cli.demo import demo
from hipmdp.cli.instances import instances
from hipmdp.cli.pretrain import pretrain
from hipmdp.cli.report import report

COMMANDS: dict[str, Any] = {
    "demo": demo,
    "instances": instances,
    "collect": collect,
    "pretrain": pretrain,
    "adapt": adapt,
    "compare": compare,
    "report": report,
}


def main() -> None:
    """Run one command. Bad input gives one sentence and exit code 2."""
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="hipmdp",
            description="Control many systems that are similar but not the same.",
        )
    except ValueError as error:
        print(f"hipmdp: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except KeyboardInterrupt:
        print("hipmdp: interrupted.", file=sys.stderr)  # noqa: T201
        sys.exit(130)
