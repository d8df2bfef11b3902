"""`hipmdp pretrain`: how the family behaves, as one model file."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp.cli.log_options import NO_LOGS, LogOptions
from hipmdp.cli.output import say, write_json
from hipmdp.data.files import output_directory
from hipmdp.data.logs import LEAST, read_logs
from hipmdp.data.parquet import load_transitions
from hipmdp.data.transitions import Transitions
from hipmdp.families import FAMILIES, make
from hipmdp.transfer.pretrain import pretrain as run_pretrain


def pretrain(
    batch: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[BATCH]")] = None,
    instance: str | None = None,
    reward: str | None = None,
    columns: Annotated[LogOptions, tyro.conf.OmitArgPrefixes] = NO_LOGS,
    actions: str | None = None,
    horizon: int | None = None,
    discount: float = 0.99,
    least: int = LEAST,
    method: str = "embedded",
    family: str | None = None,
    seed: int = 0,
    preset: str = "default",
    out: Path | None = None,
    json_: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Learn how a family of systems behaves from the logs of some of them, with one latent for each.

    A row of a log is a moment: the state and the action that was taken in it; the next row of the same episode says
    what it led to. What is wrong is told by row and column.

    Example: hipmdp pretrain --logs fleet.parquet --instance machine --episode run --time t --state x,v --action push

    Example: hipmdp collect hiv --instances train32 --episodes 150; hipmdp pretrain hiv-batch/batch.parquet

    Args:
        batch: A Parquet file from `hipmdp collect`; or use --logs.
        instance: Column of the logs that says which system a row is of.
        reward: Column of the logs with what the action earned: it is learned, and `adapt` can then give a policy.
        actions: All actions in their order, separated by commas; by default those that occur, sorted.
        horizon: Steps of an imagined episode; by default those of the longest logged one, at most 200.
        discount: What a reward one step later is worth.
        least: Transitions that each system must have.
        method: embedded, linear, average, scratch, model_free, or amortised: embedded, with a policy for all members.
        family: With --method amortised: module:name of your own family, whose reward counts as known.
        seed: Seed of everything that is drawn.
        preset: default, or paper (to the letter).
        out: The model file to write; by default named after the family or the logs.
        json_: File for the same numbers as JSON.
    """
    begin = time.perf_counter()
    if (batch is None) == (not columns.logs):
        raise ValueError("Name either a batch from `hipmdp collect` or --logs, not both and not neither.")
    if batch is not None:
        transitions, about = load_transitions(batch), {}
        path = out or Path(f"{transitions.specification.family.replace(':', '.')}-{method}.hipmdp")
    else:
        told = columns.columns(instance, reward)
        named = None if actions is None else [name.strip() for name in actions.split(",")]
        transitions = read_logs(
            columns.logs, told, actions=named, horizon=horizon, discount=discount, least=least, drop=columns.drop
        )
        about = {"columns": told.to_dict()}
        path = out or Path(f"{transitions.specification.family.removesuffix('-logs')}.hipmdp")
    output_directory(path.parent)
    read = time.perf_counter() - begin
    model = run_pretrain(transitions, method, seed, preset, family=None if family is None else make(family))
    model = replace(model, about={**model.about, **about})
    model.save(path)
    seconds = time.perf_counter() - begin
    _show(path, method, transitions, model.report, read, seconds, from_logs=batch is None)
    facts = {"model": str(path), **model.about, **model.report, "read_seconds": read, "seconds": seconds}
    write_json(json_, facts)


def _show(
    path: Path,
    method: str,
    transitions: Transitions,
    report: dict[str, float],
    read: float,
    seconds: float,
    from_logs: bool,
) -> None:
    console, specification = Console(), transitions.specification
    say(
        console,
        f"{path}: {method} model of {specification.family}, from {len(transitions)} transitions of "
        f"{len(transitions.instances)} instances, in {seconds:.0f} s ({read:.1f} s to read and check)",
    )
    if from_logs:
        say(console, f"  actions: {', '.join(specification.action_names)}")
        if specification.timed:
            say(console, f"  steps differ (typically {specification.step:g}): their duration is an input")
    for name, value in report.items():
        say(console, f"  {name.replace('_', ' ')}: {value:.3g}")
    own = "" if specification.family in FAMILIES else "--family module:name "
    say(console, f"Next: hipmdp adapt {path} " + ("--logs NEW.parquet" if from_logs else f"{own}--instance test:0"))
