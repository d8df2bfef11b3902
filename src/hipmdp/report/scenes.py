"""What control looks like: Figures 2a (a path on the map), 3a (the pendulum), 4a (a patient who is healed)."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from hipmdp.families.acrobot import TIME_STEP, AcrobotTheta
from hipmdp.families.compass import CompassTheta
from hipmdp.families.drawing import draw_acrobot, draw_compass, draw_grid, draw_hiv, hiv_handles
from hipmdp.families.grid import Grid, GridTheta
from hipmdp.report.pictures import picture_kind
from hipmdp.report.style import COLUMN, new_figure
from hipmdp.study.cells.record import CellRecord
from hipmdp.study.results import Results


def scene_figure(results: Results, family: str) -> Figure | None:
    """One figure of the family's episodes, by the kind of picture that its cells name; None where there is none."""
    records = results.select(family=family)
    draw = SCENES.get(picture_kind(records[0]))
    return None if draw is None else draw(records)


def path_figure(records: list[CellRecord]) -> Figure | None:
    """Figure 2a: where the longest-trained model-free policy of each class goes."""
    free = [r for r in records if r.key["method"] == "model_free"]
    classes = {int(r.theta["theta"]): r for r in sorted(free, key=lambda record: record.episodes)}
    if not classes:
        return None
    figure = new_figure(COLUMN * len(classes), 3.3)
    for axes, (label, record) in zip(np.ravel(figure.subplots(1, len(classes))), sorted(classes.items()), strict=True):
        draw_grid(axes, Grid(**record.family_facts.options), GridTheta(float(label)), record.states)
        axes.set_title(f"class {label}: model-free after {record.episodes} episodes", fontsize=8.5)
    return figure


def compass_figure(records: list[CellRecord]) -> Figure | None:
    """Where the embedded method's last policy goes on the first members."""
    found = {r.key["instance"]: r for r in records if r.key["method"] == "embedded"}
    if not found:
        return None
    shown = list(found.values())[:3]
    figure = new_figure(COLUMN * len(shown), 3.3)
    for axes, record in zip(np.ravel(figure.subplots(1, len(shown))), shown, strict=True):
        draw_compass(axes, CompassTheta(**record.theta), record.states)
    return figure


def pendulum_figure(records: list[CellRecord]) -> Figure | None:
    """Figure 3a: the first swing-up of the embedded method, in three moments."""
    record = next((r for r in records if r.key["method"] == "embedded"), None)
    if record is None:
        return None
    figure = new_figure(2 * COLUMN, 2.7)
    steps, states = len(record.states), record.states.astype(np.float64)
    moments = sorted({max(1, steps // 3), max(1, 2 * steps // 3), steps})
    for axes, until in zip(np.ravel(figure.subplots(1, len(moments))), moments, strict=True):
        torque = int(record.actions[until - 2]) - 1 if until > 1 else None
        draw_acrobot(axes, AcrobotTheta(**record.theta), states[:until], torque)
        axes.set_title(f"after {(until - 1) * TIME_STEP:.1f} s", fontsize=8.5)
    theta = "  ".join(f"{name} {value:.2f}" for name, value in record.theta.items())
    figure.suptitle(f"{record.key['instance']}: {theta}", fontsize=8.5)
    return figure


def patient_figure(records: list[CellRecord]) -> Figure | None:
    """Figure 4a: the first test patient whom the embedded method's last policy heals."""
    healed = [r for r in records if r.key["method"] == "embedded" and r.metrics["success"][-1] == 1]
    if not healed:
        return None
    record = healed[0]
    figure = new_figure(2 * COLUMN, 3.0)
    axes = figure.add_subplot()
    draw_hiv(axes, record.states.astype(np.float64), record.actions, record.family_facts.horizon, legend=False)
    figure.legend(handles=hiv_handles(axes), loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    title = f"{record.key['instance']}, treated by the policy learned in {record.episodes} episodes"
    axes.set_title(title, fontsize=8.5)
    return figure


SCENES: dict[str, Callable[[list[CellRecord]], Figure | None]] = {
    "grid": path_figure,
    "compass": compass_figure,
    "acrobot": pendulum_figure,
    "hiv": patient_figure,
}
"""By the kind of picture."""
