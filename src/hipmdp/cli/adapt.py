"""`hipmdp adapt MODEL`: meet one new instance and learn to control it, in its environment or from its logs."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from hipmdp.cli.adapt_logs import adapt_logs
from hipmdp.cli.log_options import NO_LOGS, LogOptions
from hipmdp.cli.output import say, write_json
from hipmdp.data.parquet import save_transitions
from hipmdp.families import FAMILIES, make
from hipmdp.families.checks import number
from hipmdp.families.family import AbstractFamily
from hipmdp.families.instance_sets import Instance, frozen_instance
from hipmdp.report.tensorboard import write_run
from hipmdp.transfer.learn import learn_policy
from hipmdp.transfer.outlook import STEPS
from hipmdp.transfer.run import Run
from hipmdp.transfer.storage import load


def adapt(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    instance: str | None = None,
    family: str | None = None,
    columns: Annotated[LogOptions, tyro.conf.OmitArgPrefixes] = NO_LOGS,
    only: str | None = None,
    at: str | None = None,
    horizon: int = STEPS,
    episodes: int = 2,
    method: str | None = None,
    seed: int = 0,
    reward: str = "given",
    dynamics: str = "learned",
    preset: str = "default",
    sd: float | None = None,
    out: Path | None = None,
    json_: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
    tensorboard: Path | None = None,
) -> None:
    """Meet a new instance.

    An amortised model (as those that come with hipmdp) acts by its policy from the first step on, while it finds out
    who it is; --method refined learns on between episodes. An embedded one explores for an episode, and then learns.

    With --out it can be interrupted (Ctrl-C) and started again: it goes on where it stopped, to the same bits.

    With --logs there is no environment: the log of one new system says which system it is, what each action would lead
    to, and, where there is a reward, what to do now. The columns are those that the model was pre-trained with.

    Example: hipmdp adapt hiv --instance test:3

    Example: hipmdp adapt fleet.hipmdp --logs new.parquet --json answer.json

    Example: hipmdp adapt poles.hipmdp --family cartpole:family --instance test:0

    Args:
        model: A model file from `hipmdp pretrain`, or grid, acrobot or hiv for the one that comes with hipmdp.
        instance: test:3, or parameters by name (l1=1.2,m2=0.8); by default drawn from the family. With --logs: the
            column that says which system a row is of.
        family: module:name of your own family, where the model is of one.
        only: With --logs: the system that is meant, where the file holds several.
        at: With --logs: the state to ask about (1.5,-0.2); by default where the log ends.
        horizon: With --logs: how many steps ahead to tell.
        episodes: Real episodes.
        method: amortised, refined or embedded, for a model that is amortised; by default what the model is.
        seed: Seed of everything that is drawn.
        reward: Inside imagination: given, learned from the logs, or true (diagnosis). With --logs: learned (if it was),
            none, or module:function, a function of (state, action, next_state) written in JAX.
        dynamics: learned, or true (diagnosis: imagine in the real environment).
        preset: default, or paper (to the letter).
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        out: Directory for the tuned model with its policy, the log, and what is needed to go on.
        json_: File for the same numbers as JSON.
        tensorboard: Directory for an event file with what each episode brought (needs hipmdp[tensorboard]).
    """
    loaded = load(model)
    if columns.logs:
        adapt_logs(loaded, columns, instance, only, at, horizon, reward, seed, out, json_)
        return
    if "columns" in loaded.about:
        raise ValueError(f"{model!r} was learned from logs and has no environment: give --logs NEW.")
    system = _family(loaded.specification.family, family, sd)
    met, known = _instance(system, instance)
    run = learn_policy(loaded, system, met, episodes, seed, None, reward, preset, out, dynamics=dynamics, method=method)
    console = Console()
    console.print(_table(run, system.name, instance, known))
    if run.latent is not None:
        say(console, "latent: " + " ".join(f"{x:.2f}" for x in np.asarray(run.latent)))
    if run.belief is not None:
        say(console, "  ± " + " ".join(f"{x:.2f}" for x in run.belief.spread))
    if out is not None:
        replace(run.model, policy=run.network).save(out / "model.hipmdp")
        save_transitions(run.transitions, out / "transitions.parquet")
        say(console, f"In {out}: model.hipmdp (with the policy), transitions.parquet")
    if tensorboard is not None:
        write_run(run, tensorboard)
        say(console, f"tensorboard --logdir {tensorboard}")
    write_json(json_, _facts(run, system.name, instance, known))


def _family(name: str, own: str | None, sd: float | None) -> AbstractFamily:
    """The family that the model is of."""
    if own is None and name not in FAMILIES:
        raise ValueError(f"The model is of {name!r}, a family of your own: say which with --family module:name.")
    return make(own or name, **({} if sd is None else {"sd": sd}))


def _instance(family: AbstractFamily, text: str | None) -> tuple[Any, Instance | None]:
    """`test:3` (with what is needed to score it, where its best return is known), or `l1=1.2,m2=0.8`."""
    if text is None:
        return None, None
    if "=" not in text:
        known = frozen_instance(family, text)
        return known.theta, known if known.is_scored else None
    pairs = [part.partition("=") for part in text.split(",")]
    return {name.strip(): number(f"{family.name} parameter", name.strip(), value) for name, _, value in pairs}, None


def _facts(run: Run, family: str, instance: str | None, known: Instance | None) -> dict[str, Any]:
    def plain(values: Any) -> list[float | None]:
        return [None if np.isnan(v) else float(v) for v in values]

    facts: dict[str, Any] = {
        "family": family,
        "method": run.method,
        "instance": instance,
        "theta": {name: float(value) for name, value in run.theta._asdict().items()},
        "returns": plain(run.returns),
        "success": plain(run.success),
        "learning_returns": plain(run.learning_returns),
        "model_error": plain(run.model_error),
        "seconds": plain(run.seconds),
        "latent": None if run.latent is None else [float(x) for x in np.asarray(run.latent)],
    }
    if known is not None:
        facts["scores"] = [known.score(v) for v in run.returns]
        facts["learning_scores"] = [known.score(v) for v in run.learning_returns]
    return facts


def _table(run: Run, family: str, instance: str | None, known: Instance | None) -> Table:
    name = instance or "a drawn instance"
    table = Table(title=f"{run.method} on {family}, {name}", box=box.SIMPLE_HEAD, pad_edge=False)
    columns = ["episode", "its\nreturn", "model\nerror", "greedy\nafter it", "success", "seconds"]
    if known is not None:
        columns.insert(2, "its\nscore")
        columns.insert(5, "score")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for i in range(len(run.returns)):
        cells = [
            str(i),
            f"{run.learning_returns[i]:.4g}",
            f"{run.model_error[i]:.3g}",
            f"{run.returns[i]:.4g}",
            f"{run.success[i]:.0%}",
            f"{run.seconds[i]:.1f}",
        ]
        if known is not None:
            cells.insert(2, f"{known.score(run.learning_returns[i]):.3f}")
            cells.insert(5, f"{known.score(run.returns[i]):.3f}")
        table.add_row(*cells)
    if known is not None:
        table.caption = f"score 1: the best return known, {known.best_known:.4g}; 0: random actions, {known.random:.4g}"
    return table
