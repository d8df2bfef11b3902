"""`hipmdp adapt MODEL`: learn to control one new instance, in its environment or from its logs."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich import box
from rich.console import Console
from rich.table import Table

from hipmdp._errors import check_episodes, check_seed, known_name, number, whole
from hipmdp._outputs import try_outputs
from hipmdp._tables import plain_table
from hipmdp.adaptation.learn_policy import learn_policy
from hipmdp.adaptation.run import Run
from hipmdp.cli.limits import care_of, kept_limits, limits_facts
from hipmdp.cli.logs.adapt import adapt_logs
from hipmdp.cli.logs.options import NO_LOGS, LogOptions, refuse_columns, refuse_given
from hipmdp.cli.output import say, write_json
from hipmdp.data.logs.parquet import save_transitions
from hipmdp.families import FAMILIES, make
from hipmdp.families.instances import Instance, frozen_instance
from hipmdp.families.protocol import BaseFamily, theta_values
from hipmdp.from_logs.forecast import STEPS
from hipmdp.pretraining.model import load
from hipmdp.report.tensorboard import need_tensorboard, write_run
from hipmdp.settings.limits import RISK, WITHIN
from hipmdp.settings.presets import PRESETS

MOST_HORIZON = 100_000
"""Steps that can be forecast."""

EPISODES = 2
"""Real episodes, unless the user says how many."""


def adapt(
    model: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")],
    instance: str | None = None,
    family: str | None = None,
    columns: Annotated[LogOptions, tyro.conf.OmitArgPrefixes] = NO_LOGS,
    only: str | None = None,
    at: str | None = None,
    horizon: int = STEPS,
    episodes: int = EPISODES,
    method: str | None = None,
    seed: int = 0,
    reward: str = "given",
    imagine_in: str = "model",
    preset: str = "default",
    caution: float | None = None,
    limit: tyro.conf.UseAppendAction[tuple[str, ...]] = (),
    risk: float = RISK,
    within: int = WITHIN,
    sd: float | None = None,
    out: Path | None = None,
    json_: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
    tensorboard: Path | None = None,
) -> None:
    """Adapt a model to a new instance: infer its latent from its episodes and learn a policy for it.

    The first episode is controlled by the model's policy for all members, while the latent is inferred. From it a
    policy for this instance is learned in imagination (--method refined); --method embedded learns one from nothing, as
    the paper does, and --method amortised goes on with the one for all.

    With --out it can be interrupted (Ctrl-C) and started again: it resumes, to the same bits.

    With --logs there is no environment: the log of one new system says which system it is, what each action would lead
    to, and, where there is a reward, what to do now. The columns are those that the model was pre-trained with, unless
    --state and the others name them.

    Example: hipmdp adapt hiv --instance test:3

    Example: hipmdp adapt fleet.hipmdp --logs new.parquet --json answer.json

    Example: hipmdp adapt poles.hipmdp --family cartpole:family --instance test:0

    Example: hipmdp adapt hiv --instance test:3 --method amortised --caution 0.5 --limit "log10_V<=5"

    Args:
        model: A model file from `hipmdp pretrain`, or grid, compass, acrobot or hiv for the one that comes along.
        instance: test:3, or parameters by name (l1=1.2,m2=0.8); by default drawn from the family. Not with
            --logs: there --instance-column and --only say which system.
        family: module:name of your own family, where the model is of one.
        only: With --logs: the system that is meant, where the file holds several.
        at: With --logs: the state to ask about (1.5,-0.2); by default where the log ends.
        horizon: With --logs: how many steps ahead to forecast.
        episodes: Real episodes.
        method: refined, embedded or amortised, which share a model; by default refined, or amortised for a model of
            that method (as those that come with hipmdp).
        seed: Seed of everything that is drawn.
        reward: Inside imagination: given, learned from the logs, or true (diagnosis). With --logs: learned (if it was),
            none, or module:function, a function of (state, action, next_state) written in JAX.
        imagine_in: model, or environment (diagnosis: imagined episodes take place in the real environment).
        preset: default, or paper (to the letter).
        caution: From 0 to below 1: actions are chosen by the mean over the worst share 1 - CAUTION of what is not known
            (0: the plain mean, 0.9: the mean of the worst tenth); of imagined futures with --logs, otherwise of the
            latent, wherever the model's own policy acts (every episode of amortised, the first of others).
        limit: A limit on a state, such as "log10_V<=5" (<=, <, >= or >); may be repeated. Actions that are likely to
            break one are left out, unless all are. Without --logs the method is then amortised.
        risk: With --limit: the chance up to which an action may break a limit.
        within: With --limit: the number of next steps in which it may be broken.
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        out: Directory for the tuned model with its policy, the log, and what is needed to resume.
        json_: File for the same numbers as JSON.
        tensorboard: Directory for an event file with the numbers of each episode (needs hipmdp[tensorboard]).
    """
    check_seed(seed)
    check_episodes(episodes)
    whole("horizon", horizon, 1, MOST_HORIZON)
    known_name("preset", preset, PRESETS)
    care = care_of(caution, limit, risk, within)
    if tensorboard is not None:
        need_tensorboard()
    try_outputs([out, tensorboard], [json_])
    loaded = load(model)
    if columns.logs:
        if instance is not None:
            raise ValueError(
                "--instance is for environments: with --logs use --instance-column COLUMN and --only NAME."
            )
        real_only = {"family": family is not None, "method": method is not None, "sd": sd is not None}
        refuse_given(
            "is for environments, and not for --logs", **real_only, imagine_in=imagine_in != "model",
            tensorboard=tensorboard is not None, episodes=episodes != EPISODES, preset=preset != "default",
        )  # fmt: skip
        adapt_logs(loaded, columns, only, at, horizon, reward, seed, out, json_, care)
        return
    known_name("value of --imagine-in", imagine_in, ("model", "environment"))
    if "columns" in loaded.metadata:
        raise ValueError(f"{model!r} was learned from logs and has no environment: give --logs NEW.")
    refuse_columns(columns)
    refuse_given("is for --logs", only=only is not None, at=at is not None, horizon=horizon != STEPS)
    system = _family(loaded.specification.family, family, sd)
    theta, known = _instance(system, instance)
    run = learn_policy(
        loaded,
        system,
        theta,
        episodes=episodes,
        seed=seed,
        reward=reward,
        preset=preset,
        out=out,
        imagine_in=imagine_in,
        method=method,
        caution=caution,
        limits=care.limits or (),
    )
    console = Console()
    console.print(_table(run, system.name, instance, known))
    if run.latent is not None:
        say(console, "latent: " + " ".join(f"{x:.2f}" for x in np.asarray(run.latent)))
    if run.belief is not None:
        say(console, "  ± " + " ".join(f"{x:.2f}" for x in run.belief.spread))
    for line in kept_limits(run, care.limits):
        say(console, line)
    if out is not None:
        replace(run.model, policy=run.network).save(out / "model.hipmdp")
        save_transitions(run.transitions, out / "transitions.parquet")
        say(console, f"In {out}: model.hipmdp (with the policy), transitions.parquet")
    if tensorboard is not None:
        write_run(run, tensorboard)
        say(console, f"tensorboard --logdir {tensorboard}")
    write_json(json_, _facts(run, system.name, instance, known))


def _family(name: str, own: str | None, sd: float | None) -> BaseFamily:
    """The family that the model is of."""
    if own is None and name not in FAMILIES:
        raise ValueError(f"The model is of {name!r}, a family of your own: say which with --family module:name.")
    return make(own or name, **({} if sd is None else {"sd": sd}))


def _instance(family: BaseFamily, text: str | None) -> tuple[Any, Instance | None]:
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
        "theta": theta_values(run.theta),
        "returns": plain(run.returns),
        "success": plain(run.success),
        "learning_returns": plain(run.learning_returns),
        "model_error": plain(run.model_error),
        "seconds": plain(run.seconds),
        "latent": None if run.latent is None else [float(x) for x in np.asarray(run.latent)],
        "remarks": run.remarks,
    }
    facts |= limits_facts(run)
    if known is not None:
        facts["scores"] = [known.score(v) for v in run.returns]
        facts["learning_scores"] = [known.score(v) for v in run.learning_returns]
    return facts


def _table(run: Run, family: str, instance: str | None, known: Instance | None) -> Table:
    name = instance or "a drawn instance"
    columns = ["episode", "its\nreturn", "model\nerror", "greedy\nafter it", "success", "seconds"]
    if known is not None:
        columns.insert(2, "its\nscore")
        columns.insert(5, "score")
    rows = []
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
        rows.append(cells)
    caption = "model error: on the episode before the model was tuned on it, 1: no better than the mean change"
    if known is not None:
        scores = f"score 1: the best return known, {known.best_known:.4g}; 0: random actions, {known.random:.4g}"
        caption = f"{scores}\n{caption}"
    title = f"{run.method} on {family}, {name}"
    return plain_table(title, columns, rows, caption=caption, no_wrap=columns, box=box.SIMPLE_HEAD, pad_edge=False)
