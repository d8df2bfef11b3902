"""`hipmdp instances FAMILY`: draw, search and freeze the instance sets of a family."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from hipmdp._errors import MOST_SEEDS, check_jobs, known_name, whole
from hipmdp._files import output_directory
from hipmdp._outputs import try_outputs
from hipmdp.cli.output import say
from hipmdp.families import FAMILIES, make
from hipmdp.study.instance_search.freeze import (
    assemble,
    default_path,
    family_options,
    is_complete,
    numbered_draws,
    promising_draws,
    write_instances,
)
from hipmdp.study.instance_search.searches import claim_searches, pack_searches, read_searches
from hipmdp.study.instance_search.tasks import SearchTask, run_searches

MOST_DRAWS = 100_000
"""Instances that can be drawn."""


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

    Finished searches stay in WORK, at the end in one file per family, so that the command can be stopped at any time
    and started again; more --draws or more --seeds add to what is there.

    Example: hipmdp instances hiv --draws 150 --seeds 1; hipmdp instances hiv --draws 150 --seeds 3

    Args:
        family: grid, compass, acrobot or hiv.
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        work: Directory for the searches.
        out: The file to write; by default the one inside the package.
        draws: Number of well-behaved draws to consider.
        audit: Of the first so many draws all are searched, of later ones only those that look controllable (HIV: some
            constant treatment keeps them healthy); the audit shows whether that misses controllable ones.
        seeds: Searches for each instance that is kept in a set.
        jobs: Processes.
    """
    options = {} if sd is None else {"sd": sd}
    member = make(family, **options)
    known_name("built-in family", family, FAMILIES)
    whole("--draws", draws, 1, MOST_DRAWS)
    whole("--audit", audit, 0, MOST_DRAWS)
    whole("--seeds", seeds, 1, MOST_SEEDS)
    check_jobs(jobs)
    path = out or default_path(member)
    try_outputs([path.parent, work], [path])
    output_directory(path.parent)
    directory = output_directory(work) / path.stem
    claim_searches(directory, {"family": family, "options": family_options(member)})
    thetas = numbered_draws(member, draws, read_searches(directory).thetas)
    promising = promising_draws(member, thetas)
    command = (
        f"hipmdp instances {family}"
        + (f" --sd {sd:g}" if sd is not None else "")
        + f" --draws {draws} --seeds {seeds} --audit {audit}"
    )

    def run(numbers: list[int], seeds: Iterable[int]) -> dict[str, Any]:
        """Search, and write what is known then."""
        pairs = tuple(options.items())
        tasks = [SearchTask(family, pairs, i, tuple(thetas[i].items()), seed) for i in numbers for seed in seeds]
        run_searches(tasks, directory, jobs)
        searches = read_searches(directory)
        content = assemble(member, searches, thetas, promising=promising, audit=audit, command=command)
        write_instances(content, path)
        return content

    content = run(sorted({*range(min(audit, len(thetas))), *promising}), (-1, 0))
    # The test set first: stopped early, the numbers that matter most are there.
    for name in ("test", "partial", "train32", "validation", "final"):
        content = run([row["draw"] for row in content["sets"].get(name, [])], range(1, seeds))
    pack_searches(directory, thetas)
    console = Console()
    say(
        console,
        f"{family}: {content['controllable']} of {content['searched']} searched draws are controllable"
        + (f", {content['partial']} more improve at least twofold" if "partial" in member.set_sizes else ""),
    )
    sizes = ", ".join(f"{name} {len(members)}" for name, members in content["sets"].items())
    state = "complete" if is_complete(member, content) else "not complete: give more --draws"
    say(console, f"{path}: {sizes} ({state})")
