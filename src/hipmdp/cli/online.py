"""`hipmdp online FAMILY`: control instances one after the other, with no batch at all."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from hipmdp._errors import check_episodes, check_seed
from hipmdp._outputs import try_outputs
from hipmdp._tables import plain_table
from hipmdp.cli.collect import named_instances
from hipmdp.cli.output import say, write_json
from hipmdp.data.logs.parquet import save_transitions
from hipmdp.families import make
from hipmdp.online.loop import OnlineRun
from hipmdp.online.loop import online as run_online
from hipmdp.online.model_size import Choice


def online(
    family: Annotated[str, tyro.conf.Positional],
    instances: str = "10",
    episodes: int = 5,
    seed: int = 0,
    sd: float | None = None,
    out: Path | None = None,
    json_: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Control instances one after the other, with no batch at all, and transfer from each to the next.

    The first episode of all is random. Afterwards all transitions so far train a model of the family, whose size is
    chosen on held-back data, and a policy that is conditioned on the latent; the next instance starts with both.

    With --out it can be interrupted (Ctrl-C) and started again: it resumes, also in the middle of an instance or of a
    fit, to the same bits.

    Example: hipmdp online grid --instances 10 --episodes 5 --out grid-online

    Example: hipmdp online acrobot --instances test:3,test:4,test:5 --json acrobot.json

    Args:
        family: grid, compass, acrobot, hiv, or module:name of your own.
        instances: How many (the first of test, from the first again where there are fewer), a set's name, or labels
            (test:3,test:4).
        episodes: Episodes with each instance.
        seed: Seed of everything that is drawn.
        sd: Spread of the prior, where it is not the family's default (acrobot: 0.25 is the wide family).
        out: Directory for the model with its policy, the log, and what is needed to resume.
        json_: File for the same numbers as JSON.
    """
    system = make(family, **({} if sd is None else {"sd": sd}))
    check_seed(seed)
    check_episodes(episodes, system.horizon)
    try_outputs([out], [json_])
    run = run_online(system, named_instances(instances), episodes, seed, out)
    console = Console()
    console.print(_table(run, system.name))
    if out is not None:
        run.model.save(out / "model.hipmdp")
        save_transitions(run.transitions, out / "transitions.parquet")
        say(console, f"In {out}: model.hipmdp (with the policy), transitions.parquet")
    write_json(json_, facts(run, system.name, seed))


def facts(run: OnlineRun, family: str, seed: int) -> dict[str, Any]:
    """The run in numbers, instance by instance in their order."""

    def plain(values: Any) -> list[float | None]:
        return [None if np.isnan(v) else float(v) for v in values]

    rows = []
    for instance, record, scores in zip(run.instances, run.records, run.scores, strict=True):
        choice = record.choice
        rows.append(
            {
                "instance": instance.label,
                "returns": plain(record.returns),
                "scores": plain(scores),
                "model_error": plain(record.model_error),
                "misjudged": record.misjudged,
                "fits": record.fits,
                "size": list(choice.size),
                "held_out_likelihood": {_size(s): v for s, v in zip(choice.sizes, choice.likelihoods, strict=True)},
                "rows_at_choice": choice.rows,
                "seconds": record.seconds,
            }
        )
    return {"family": family, "seed": seed, "instances": rows}


def _size(size: tuple[int, ...]) -> str:
    return "×".join(map(str, size))


def _likelihoods(choice: Choice) -> str:
    return " ".join(f"{v:.3g}" for v in choice.likelihoods)


def _table(run: OnlineRun, family: str) -> Table:
    scored = not np.isnan(run.scores).any()
    columns = ["instance", "first return", "last return", "misjudged", "size", "held-back likelihoods"]
    if scored:
        columns[2:2] = ["score"]
    rows = []
    for instance, record, scores in zip(run.instances, run.records, run.scores, strict=True):
        cells = [
            instance.label,
            f"{record.returns[0]:.4g}",
            f"{record.returns[-1]:.4g}",
            f"{sum(record.misjudged)}/{len(record.misjudged)}",
            _size(record.choice.size),
            _likelihoods(record.choice),
        ]
        if scored:
            cells[2:2] = [f"{scores[0]:.3f}"]
        rows.append(cells)
    tried = ", ".join(_size(size) for size in run.choices[-1].sizes)
    caption = f"score: of the first episode with each instance; sizes tried: {tried}"
    title = f"online on {family}: {len(run.records)} instances, no batch"
    return plain_table(title, columns, rows, caption=caption)
