"""`hipmdp demo`: the paper's comparison on grid in a few minutes, as a table and a picture."""

import os
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.console import Console

from hipmdp.data.files import output_directory
from hipmdp.families.drawing import draw_grid
from hipmdp.families.grid import Grid
from hipmdp.report.curves import draw_curves
from hipmdp.report.style import COLUMN, FONTS, new_figure, save_figure
from hipmdp.study.compare import Executor, compare
from hipmdp.study.pieces import plan
from hipmdp.study.results import Results, read_results
from hipmdp.study.setup import Variant, parse_setup
from hipmdp.study.store import Outcome
from hipmdp.study.summary import summary_table

METHODS = ["embedded", "average", "scratch", "model_free"]
EPISODES, TRAINING_EPISODES = 2, 500
SMALL = Variant(
    "demo",
    collection=(("hidden", (128, 128)),),
    dynamics=(("rounds", 6_000),),
    transfer=(("imagined_episodes", 400), ("retunings", 0), ("restart_known", True)),
    # Fewer imagined episodes than in the study must do: larger steps.
    learner=(("epsilon_decay", 0.99), ("epsilon_floor", 0.05), ("learning_rate", 1e-3), ("target_rate", 0.01)),
)
"""What the demo leaves out to be done in minutes."""
INTRODUCTION = """\
There are two kinds of a robot on a plane. Four commands move the one as named
and the other mirrored, the wind pushes them differently, and the goal has its
wall on another side. Nobody tells which kind it is.

  1. collect    what model-free learners experienced on one robot of each kind
  2. pre-train  one model of both, with a small latent that says which robot
  3. meet       a robot: one episode of random moves tells its latent
  4. learn      a policy inside the model; then go for real

Beside it: one model for both kinds (average), a model of this robot alone
(scratch), no model at all (model_free). All of it in about five minutes.
"""
NEXT = """\
Next:
  hipmdp adapt hiv --instance test:3    a patient never seen before, treated well from the first day
  hipmdp compare --help                 the whole comparison (hours), and your own
  docs/results.md                       what the whole comparison showed"""


def demo(out: Path = Path("demo"), seeds: int = 2, jobs: int | None = None) -> None:
    """Compare methods on grid: collect, pre-train, meet a robot, learn a policy; a table and a picture.

    Takes a few minutes on two cores. Interrupted and started again, it goes on where it stopped.

    Example: hipmdp demo --out demo

    Args:
        out: Directory for demo.png and for the study behind it.
        seeds: How often everything is done anew.
        jobs: Processes side by side; by default the number of cores.
    """
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}.")
    console = Console()
    console.print(INTRODUCTION, highlight=False)
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
    console.print(f"The same as a picture: {directory / 'demo.png'}\n\n{NEXT}", highlight=False, soft_wrap=True)


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
        grid = results.family(record)
        assert isinstance(grid, Grid)
        draw_grid(axes, grid, grid.theta(record.about["theta"]), record.states)
    return figure
