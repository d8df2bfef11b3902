"""What control looks like: Figures 2a (a path on the map), 3a (the pendulum), 4a (a patient who is healed)."""

import numpy as np
from matplotlib.figure import Figure

from hipmdp.families.acrobot import Acrobot
from hipmdp.families.drawing import draw_acrobot, draw_grid, draw_hiv, hiv_handles
from hipmdp.families.grid import Grid
from hipmdp.report.style import COLUMN, new_figure
from hipmdp.study.record import Record
from hipmdp.study.results import Results


def path_figure(results: Results, family: str) -> Figure | None:
    """Figure 2a: where the longest-trained model-free policy of each class goes."""
    records = results.select(family=family, method="model_free")
    classes = {int(r.about["theta"]["theta"]): r for r in sorted(records, key=_length)}
    if not classes:
        return None
    figure = new_figure(COLUMN * len(classes), 3.3)
    for axes, (label, record) in zip(np.ravel(figure.subplots(1, len(classes))), sorted(classes.items()), strict=True):
        grid = results.family(record)
        assert isinstance(grid, Grid)
        draw_grid(axes, grid, grid.theta(record.about["theta"]), record.states)
        axes.set_title(f"class {label}: model-free after {_length(record)} episodes", fontsize=8.5)
    return figure


def pendulum_figure(results: Results, family: str) -> Figure | None:
    """Figure 3a: the first swing-up of the embedded method, in three moments."""
    records = results.select(family=family, method="embedded")
    if not records:
        return None
    record = records[0]
    acrobot = results.family(record)
    assert isinstance(acrobot, Acrobot)
    figure = new_figure(2 * COLUMN, 2.7)
    steps = len(record.states)
    moments = sorted({max(1, steps // 3), max(1, 2 * steps // 3), steps})
    for axes, until in zip(np.ravel(figure.subplots(1, len(moments))), moments, strict=True):
        torque = int(record.actions[until - 2]) - 1 if until > 1 else None
        draw_acrobot(axes, acrobot.theta(record.about["theta"]), record.states[:until], torque)
        axes.set_title(f"after {(until - 1) * 0.2:.1f} s", fontsize=8.5)
    theta = "  ".join(f"{name} {value:.2f}" for name, value in record.about["theta"].items())
    figure.suptitle(f"{record.facts['instance']}: {theta}", fontsize=8.5)
    return figure


def patient_figure(results: Results, family: str) -> Figure | None:
    """Figure 4a: the first test patient whom the embedded method's last policy heals."""
    records = [r for r in results.select(family=family, method="embedded") if r.numbers["success"][-1] == 1]
    if not records:
        return None
    record = records[0]
    figure = new_figure(2 * COLUMN, 3.0)
    axes = figure.add_subplot()
    draw_hiv(axes, record.states, record.actions, results.family(record).horizon, legend=False)
    figure.legend(handles=hiv_handles(axes), loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    episodes = _length(record)
    axes.set_title(f"{record.facts['instance']}, treated by the policy learned in {episodes} episodes", fontsize=8.5)
    return figure


def _length(record: Record) -> int:
    return len(record.numbers["seconds"])
