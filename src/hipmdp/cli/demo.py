"""`hipmdp demo`: the paper's comparison on grid in a few minutes, as a table and a picture."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.console import Console

from hipmdp._errors import MOST_SEEDS, check_jobs, whole
from hipmdp._files import output_directory
from hipmdp._outputs import try_outputs
from hipmdp.cli.output import say
from hipmdp.families.drawing import draw_grid
from hipmdp.families.grid import Grid, GridTheta
from hipmdp.report.curves import draw_curves
from hipmdp.report.style import COLUMN, FONTS, new_figure, save_figure
from hipmdp.study.compare import Executor, compare
from hipmdp.study.results import Results, read_results
from hipmdp.study.setup import Variant, parse_setup
from hipmdp.study.store import Outcome
from hipmdp.study.summary import summary_table
from hipmdp.study.tasks import plan

METHODS = ["embedded", "average", "scratch", "model_free"]
EPISODES, TRAINING_EPISODES = 2, 500
SMALL = Variant(
    "demo",
    collection=(("hidden", (128, 128)),),
    dynamics=(("rounds", 6_000),),
    adaptation=(("imagined_steps", 200_000), ("retunings", 0)),
    amortise=(("steps", 1_000_000),),
)
"""What the demo leaves out to be done in minutes."""
INTRODUCTION = """\
There are two kinds of a robot on a plane. Four commands move the one as named
and the other mirrored, the wind pushes them differently, and the goal has its
wall on another side. Which kind a new robot is, is not known.

  1. collect    transitions of model-free learners on one robot of each kind
  2. pre-train  one model of both, with a small latent that says which robot
  3. identify   a new robot: one episode of random moves gives its latent
  4. learn      a policy inside the model, and evaluate it on the real robot

Beside it: one model for both kinds (average), a model of this robot alone
(scratch), no model at all (model_free). All of it in about five minutes.
"""
NEXT = """\
Next:
  {command} adapt hiv --instance test:3
      a patient that the model has no data of, treated well from the first day
  {command} compare --help
      the whole comparison (hours), and your own
  docs/results.md
      what the whole comparison showed"""


def demo(out: Path = Path("demo"), seeds: int = 2, jobs: int | None = None) -> None:
    """Compare methods on grid: collect, pre-train, identify a robot, learn a policy; a table and a picture.

    Takes a few minutes on two cores. Interrupted and started again, it resumes.

    Example: hipmdp demo --out demo

    Args:
        out: Directory for demo.png and for the study behind it.
        seeds: How often everything is repeated, batch and models included.
        jobs: Processes side by side; by default the number of cores.
    """
    whole("--seeds", seeds, 1, MOST_SEEDS)
    check_jobs(jobs)
    try_outputs([out])
    console = Console()
    say(console, INTRODUCTION)
    directory = output_directory(out)
    # The processes of the study share what they compile.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str((directory / "work" / "programs").absolute()))
    setup = parse_setup("grid", None, TRAINING_EPISODES, EPISODES, variant=SMALL)
    cells = plan([setup], METHODS, {"grid": ["test:0", "test:1"]}, list(range(seeds)))
    failed = compare(cells, directory, Executor(jobs=jobs or os.cpu_count() or 1))
    if failed:
        raise ValueError(f"{failed[0][0].path} {Outcome.FAILED}: {failed[0][1]}")
    results = read_results(directory)
    console.print(summary_table(results, "grid"))
    with rc_context(FONTS):
        save_figure(_picture(results), directory, "demo")
    closing = NEXT.format(command=_command())
    say(console, f"The same as a picture: {directory / 'demo.png'}\n\n{closing}")


def _command() -> str:
    """How to call hipmdp from this shell: by its name, by the path of the program that runs, or by Python."""
    if shutil.which("hipmdp") is not None:
        return "hipmdp"
    program = Path(sys.argv[0])
    if program.name != "hipmdp" or not os.access(program, os.X_OK):
        return f"{_nearby(Path(sys.executable))} -m hipmdp"
    return str(_nearby(program))


def _nearby(program: Path) -> Path:
    """Relative to the current directory where it lies below it."""
    here = Path.cwd()
    return program.absolute().relative_to(here) if program.absolute().is_relative_to(here) else program.absolute()


def _picture(results: Results) -> Figure:
    """Scores of all methods, and where the embedded policies go."""
    figure = new_figure(3 * COLUMN, 3.2)
    left, *maps = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    methods = results.methods("grid", SMALL.name)
    draw_curves(left, {m: results.table("grid", m, "score", SMALL.name) for m in methods})
    left.set(xlabel="real episodes", ylabel="score of the greedy policy", xticks=np.arange(EPISODES) + 1)
    left.set_title("1: the best return known, 0: random", fontsize=8.5)
    left.legend(frameon=False, loc=(0.6, 0.6))
    for axes, instance in zip(maps, ("test:0", "test:1"), strict=True):
        record = results.select(method="embedded", instance=instance)[0]
        draw_grid(axes, Grid(**record.family_facts.options), GridTheta(**record.theta), record.states)
    return figure
