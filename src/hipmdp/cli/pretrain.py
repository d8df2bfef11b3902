"""`hipmdp pretrain`: how the family behaves, as one model file."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hipmdp._errors import check_seed, in_range, known_name, whole
from hipmdp._files import file_name
from hipmdp._outputs import try_outputs
from hipmdp.cli.logs.options import NO_LOGS, LogOptions, refuse_columns, refuse_given
from hipmdp.cli.output import say, write_json
from hipmdp.data.logs.parquet import load_transitions
from hipmdp.data.logs.read import LEAST, read_logs
from hipmdp.data.transitions import Transitions
from hipmdp.families import FAMILIES, make
from hipmdp.pretraining.pretrain import METHODS
from hipmdp.pretraining.pretrain import pretrain as run_pretrain
from hipmdp.pretraining.resume import clear_directory
from hipmdp.settings.presets import PRESETS


def pretrain(
    batch: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="[BATCH]")] = None,
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
    what it led to. Errors name the row and the column.

    Killed or interrupted (Ctrl-C) and started again, it resumes, to the same bits: OUT.work holds what is needed, and
    is removed at the end.

    Example: hipmdp pretrain --logs fleet.csv --instance-column machine --episode run --time t --state x,v --action u

    Example: hipmdp collect hiv --instances train32 --episodes 150; hipmdp pretrain hiv-batch/batch.parquet

    Args:
        batch: A Parquet file from `hipmdp collect`; or use --logs.
        reward: Column of the logs with what the action earned: it is learned, and `adapt` can then give a policy.
        actions: All actions in their order, separated by commas; by default those that occur, sorted.
        horizon: Steps of an imagined episode; by default those of the longest logged one, at most 200.
        discount: What a reward one step later is worth.
        least: Transitions that each system must have.
        method: embedded, linear, average, scratch, model_free, or amortised: embedded, but `adapt` trains nothing.
        family: module:name of your own family, whose reward counts as known to the policy for all members.
        seed: Seed of everything that is drawn.
        preset: default, or paper (to the letter).
        out: The model file to write; by default named after the family or the logs.
        json_: File for the same numbers as JSON.
    """
    begin = time.perf_counter()
    check_seed(seed)
    known_name("method of pretrain", method, METHODS)
    known_name("preset", preset, PRESETS)
    in_range("pretrain option", "discount", discount, 0, 1, open_low=True)
    for name, value in (("least", least), ("horizon", 1 if horizon is None else horizon)):
        whole(f"--{name}", value)
    _try_outputs(out, json_, batch)
    if (batch is None) == (not columns.logs):
        raise ValueError("Name either a batch from `hipmdp collect` or --logs, not both and not neither.")
    if batch is not None:
        refuse_columns(columns)
        logs_only = {"reward": reward is not None, "actions": actions is not None, "horizon": horizon is not None}
        refuse_given("is for --logs", **logs_only, discount=discount != 0.99, least=least != LEAST)
        transitions, metadata = load_transitions(batch), {}
        path = out or Path(file_name(f"{transitions.specification.family.replace(':', '.')}-{method}.hipmdp"))
    else:
        meaning = columns.columns(reward)
        named = None if actions is None else [name.strip() for name in actions.split(",")]
        transitions = read_logs(
            columns.logs, meaning, actions=named, horizon=horizon, discount=discount, least=least, drop=columns.drop,
            split=columns.split,
        )  # fmt: skip
        metadata = {"columns": meaning.to_dict()}
        path = out or Path(file_name(f"{transitions.specification.family.removesuffix('-logs')}.hipmdp"))
    _try_outputs(path, json_, batch)
    read = time.perf_counter() - begin
    own, work = None if family is None else make(family), _work(path)
    model = run_pretrain(transitions, method, seed, preset, family=own, out=work)
    model = replace(model, metadata={**model.metadata, **metadata})
    model.save(path)
    clear_directory(work, "pretrain")
    seconds = time.perf_counter() - begin
    _show(path, method, transitions, model.metrics, read, seconds, from_logs=batch is None)
    facts = {"model": str(path), **model.metadata, **model.metrics, "read_seconds": read, "seconds": seconds}
    write_json(json_, facts)


def _try_outputs(path: Path | None, json_: Path | None, batch: Path | None) -> None:
    """The model and the facts can be written, and are not written over the batch."""
    if path is not None and batch is not None and path.exists() and batch.exists() and path.samefile(batch):
        raise ValueError(f"--out {str(path)!r} is the batch itself: give the model a name of its own.")
    if path is not None and path.is_dir():
        raise ValueError(f"Cannot write {str(path)!r}: it is a directory.")
    try_outputs([] if path is None else [path.parent, _work(path)], [path, json_])


def _work(path: Path) -> Path:
    """The directory to resume from."""
    return Path(f"{path}.work")


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
