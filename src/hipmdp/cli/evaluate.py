"""`hipmdp evaluate MODEL --logs L --policy P`: what a policy would be worth on each system of a log."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from hipmdp._errors import check_seed
from hipmdp._files import output_directory
from hipmdp._outputs import try_outputs
from hipmdp._progress import Progress
from hipmdp._tables import plain_table
from hipmdp.cli.logs.options import NO_LOGS, LogOptions
from hipmdp.cli.logs.read import named_system, read_for
from hipmdp.cli.output import say, write_json
from hipmdp.from_logs.evaluation.evaluate import Evaluation, check_evaluation, evaluate_each
from hipmdp.from_logs.evaluation.named_policy import AMORTISED
from hipmdp.imagination.reward import load_reward
from hipmdp.pretraining.model import Model, load
from hipmdp.report.values.page import write_values_page
from hipmdp.report.values.picture import save_values
from hipmdp.report.values.table import (
    SHORT_COLUMNS,
    SINGLE_COLUMNS,
    evaluation_facts,
    reasons,
    short_rows,
    single_rows,
    verdict_counts,
)

FILES = ("evaluation.png", "evaluation.html", "evaluation.json")


def evaluate(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    policy: str = AMORTISED,
    columns: Annotated[LogOptions, tyro.conf.OmitArgPrefixes] = NO_LOGS,
    only: Annotated[str | None, tyro.conf.arg(aliases=["--instance"])] = None,
    reward: str | None = None,
    seed: int = 0,
    out: Path | None = None,
    json_: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Say how good a policy would be on each system of a log, and how sure that is, before anybody acts.

    For each system: the expected return of the policy from where the logged episodes begin, with a 90 % interval; that
    of what was done; and whether the policy is better, worse, or it cannot be known, and why.

    The estimate is by rollouts in everything that the logs leave open about the system. Fitted Q evaluation and
    importance sampling, which use the logged steps alone, stand beside it.

    Example: hipmdp evaluate fleet.hipmdp --logs new.parquet --policy amortised --out evaluation

    Example: hipmdp evaluate hiv --logs run/transitions.parquet --policy run

    Args:
        model: A model file from `hipmdp pretrain`, or grid, compass, acrobot or hiv for the one that comes along.
        policy: amortised (the model's own); the directory or model file of `hipmdp adapt --out`; module:function, a
            function of the state that returns an action; constant:ACTION; or logged (what was done).
        only: The system that is meant; by default each one of the logs.
        reward: Column of the logs with what was earned (by default the one that the model remembers), or
            module:function, a function of (state, action, next_state) written in JAX.
        seed: Seed of everything that is drawn.
        out: Directory for a picture (PNG), a page with the picture and the tables (HTML), and the numbers (JSON).
        json_: File for the same numbers as JSON.
    """
    check_seed(seed)
    try_outputs([out], [json_])
    loaded = load(model)
    if not columns.logs:
        raise ValueError("Say which logs: --logs NEW.")
    function, column = _reward(reward)
    log = read_for(loaded, columns, rewarded=True, reward=column)
    log = log if only is None else named_system(log, only)
    check_evaluation(loaded, log, policy, function)
    found = []
    progress = Progress("evaluate, system", len(log.instances))
    for evaluation in evaluate_each(loaded, log, policy, function, seed):
        found.append(evaluation)
        progress.show(len(found))
    progress.close()
    console = Console()
    _show(console, loaded, found, policy)
    facts = {"policy": policy, "discount": loaded.specification.discount, "systems": [*map(evaluation_facts, found)]}
    if out is not None:
        _write(output_directory(out), loaded, found, policy, facts)
        say(console, f"In {out}: {', '.join(FILES)}")
    write_json(json_, facts)


def _reward(text: str | None) -> tuple[Callable[..., object] | None, str | None]:
    """(function, column): one of them, or neither."""
    if text is None:
        return None, None
    return (load_reward(text), None) if ":" in text else (None, text)


def _title(policy: str) -> str:
    return f"What the policy {policy} is worth"


def _show(console: Console, model: Model, found: list[Evaluation], policy: str) -> None:
    discount = model.specification.discount
    title = f"{_title(policy)}: return from where logged episodes begin, discounted by {discount:g}, and 90 % interval"
    console.print(plain_table(title, SHORT_COLUMNS, short_rows(found), left=["system", "verdict"]))
    for text in reasons(found):
        say(console, text)
    rows = single_rows(found)
    if rows:
        console.print(plain_table("each estimator", SINGLE_COLUMNS, rows, left=["system"]))
    if len(found) > 1:
        say(console, verdict_counts(found))


def _write(out: Path, model: Model, found: list[Evaluation], policy: str, facts: dict[str, Any]) -> None:
    picture, page, numbers = (out / name for name in FILES)
    save_values(found, _title(policy), picture)
    write_values_page(found, _title(policy), model.specification.discount, picture, page)
    write_json(numbers, facts)
