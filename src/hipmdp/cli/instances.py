"""`hipmdp instances FAMILY`: draw, search and freeze the instance sets of a family."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp.data.files import output_directory
from hipmdp.families import make
from hipmdp.transfer.best_known import (
    SIZES,
    assemble,
    default_path,
    is_complete,
    run_tasks,
    worth_searching,
    write_instances,
)


def instances(
    family: Annotated[str, tyro.conf.Positional],
    sd: float | None = None,
    work: Path = Path("instances-work"),
    out: Path | None = None,
    draws: int = 60,
    audit: int = 30,
    seeds: int = 1,
    jobs: int = 2,
) -> None:
    """Draw well-behaved instances, search for the best policy on each one's true dynamics, and freeze the sets.

    Finished searches stay in WORK, so that the command can be stopped at any time and started again; more --draws
    or more --seeds add to what is there.

    Example: hipmdp instances hiv --draws 150 --seeds 1; hipmdp instances hiv --draws 150 --seeds 3

    Args:
        family: grid, acrobot or hiv.
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        work: Directory for the searches.
        out: The file to write; by default the one inside the package.
        draws: Number of well-behaved draws to consider.
        audit: HIV: of the first so many draws all are searched, of later ones only those whom some constant treatment
            could keep healthy; the audit shows whether that misses controllable patients.
        seeds: Searches for each instance that is kept in a set.
        jobs: Processes.
    """
    options = {} if sd is None else {"sd": sd}
    member = make(family, **options)
    if min(draws, seeds, jobs) < 1:
        raise ValueError(f"--draws, --seeds and --jobs must be at least 1, got {draws}, {seeds} and {jobs}.")
    path = out or default_path(member)
    directory = output_directory(work / path.stem)
    output_directory(path.parent)
    count = 2 if family == "grid" else draws
    progress = Console(stderr=True)
    command = (
        f"hipmdp instances {family}"
        + (f" --sd {sd:g}" if sd is not None else "")
        + f" --draws {draws} --seeds {seeds} --audit {audit}"
    )

    def say(text: str) -> None:
        progress.print(text, highlight=False)

    chosen = worth_searching(member, count, audit)
    first = [(draw, seed) for draw in chosen for seed in (-1, 0)]
    run_tasks(family, options, directory, first, jobs, say)
    content = assemble(member, directory, count, command, audit)
    write_instances(content, path)
    # The test set first, and the file after each set: stopped early, the numbers that matter most are there.
    for name in ("test", "partial", "train32"):
        kept = [row["draw"] for row in content["sets"].get(name, [])]
        run_tasks(family, options, directory, [(d, s) for d in kept for s in range(1, seeds)], jobs, say)
        content = assemble(member, directory, count, command, audit)
        write_instances(content, path)
    console = Console()
    console.print(
        f"{family}: {content['controllable']} of {content['searched']} searched draws are controllable"
        + (f", {content['partial']} more improve at least twofold" if SIZES[family].partial else ""),
        highlight=False,
    )
    sizes = ", ".join(f"{name} {len(members)}" for name, members in content["sets"].items())
    state = "complete" if is_complete(member, content) else "not complete: give more --draws"
    console.print(f"{path}: {sizes} ({state})", highlight=False)
