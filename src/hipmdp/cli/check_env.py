"""`hipmdp check-env module:name`: is your environment one that hipmdp can learn?"""

import sys
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp._errors import check_seed, whole
from hipmdp.cli.output import say
from hipmdp.families import make
from hipmdp.families.check_family import MOST, check_family


def check_env(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FAMILY")],
    seed: int = 0,
    steps: int = 200,
) -> None:
    """Run a few episodes of your own family, and say what is wrong with it, in words.

    One line for each check (! passes, but deserves a second thought); exit code 0 when all pass, 1 when one fails, 2
    when the family cannot be loaded.

    Example: hipmdp check-env cartpole:family

    Args:
        name: module:name of your own family (an AbstractFamily, or from gymnasium_family), or a built-in one.
        seed: Seed of the instances, starts and actions.
        steps: Steps of an episode that are checked.
    """
    check_seed(seed)
    whole("--steps", steps, 1, MOST)
    console = Console()
    checks = check_family(make(name), seed, steps)
    for check in checks:
        sign = "✗" if not check.passed else "!" if check.warns else "✓"
        say(console, f"{sign} {check.name}: {check.sentence}")
    failed = sum(not check.passed for check in checks)
    if failed:
        sys.stderr.write(f"hipmdp: {failed} of {len(checks)} checks failed for {name}.\n")
        sys.exit(1)
