"""The picture of value estimates: each estimator's interval beside what was done, for every system."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from hipmdp._files import atomic_write
from hipmdp._tables import plain
from hipmdp.families.drawing import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, SKY
from hipmdp.from_logs.evaluation.estimate import Estimate
from hipmdp.from_logs.evaluation.evaluate import Evaluation
from hipmdp.report.style import COLUMN, FONTS, new_figure, tidy

NAMES = {
    "rollouts": "rollouts in the posterior",
    "fitted_q": "fitted Q evaluation",
    "weighted": "weighted importance sampling",
    "doubly_robust": "doubly robust",
}
"""Of the single estimators."""
COLOURS = {"rollouts": SKY, "fitted_q": ORANGE, "weighted": GREEN, "doubly_robust": PURPLE}
MOST_WITH_ALL = 6
"""Systems of which every estimator is drawn; of more, the recommended estimate and what was done."""
DECADES = 50.0
"""Values whose largest is so many times the typical one are drawn on a logarithmic scale, linear around zero."""


def values_figure(found: Sequence[Evaluation], title: str) -> Figure:
    """One row per system: the recommended interval thick, what was done as a diamond, single estimators below."""
    every = len(found) <= MOST_WITH_ALL
    kinds = [name for name in NAMES if any(e.estimates[name].is_finite for e in found if e.estimates)] if every else []
    step = 1.0 + 0.5 * len(kinds) + 0.6
    figure = new_figure(2 * COLUMN, min(20.0, 1.3 + 0.22 * step * len(found)))
    axes = figure.add_subplot()
    for i, evaluation in enumerate(found):
        top = -i * step
        _interval(axes, evaluation.value, top, BLUE, width=3.5, marker="o")
        _interval(axes, evaluation.logged, top + 0.35, INK, width=1.0, marker="D")
        for k, name in enumerate(kinds):
            if evaluation.estimates:
                _interval(axes, evaluation.estimates[name], top - 0.5 * (k + 1), COLOURS[name], width=1.2, marker="s")
        axes.annotate(
            evaluation.verdict, (1.01, top), xycoords=("axes fraction", "data"), va="center", fontsize=7, color=INK
        )
        if i:
            axes.axhline(top + 0.85, color=FAINT, lw=0.4)
    axes.set_yticks([-i * step for i in range(len(found))], [plain(e.system)[:24] for e in found])
    axes.set_ylim(-(len(found) - 1) * step - 0.5 * len(kinds) - 0.8, 0.9)
    _scale(axes, found)
    axes.set_xlabel("return, discounted; bars are 90 % intervals")
    axes.set_title(title)
    tidy(axes)
    axes.grid(axis="y", visible=False)
    handles = [_handle("the policy", BLUE, 3.5, "o"), _handle("what was done", INK, 1.0, "D")]
    handles += [_handle(NAMES[name], COLOURS[name], 1.2, "s") for name in kinds]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def save_values(found: Sequence[Evaluation], title: str, path: Path) -> None:
    """The picture as PNG."""
    with atomic_write(path) as temporary, rc_context(FONTS):
        values_figure(found, title).savefig(temporary, format="png", dpi=150)


def _interval(axes: Axes, estimate: Estimate, height: float, colour: str, *, width: float, marker: str) -> None:
    if estimate.is_finite:
        axes.plot([estimate.low, estimate.high], [height] * 2, color=colour, lw=width, solid_capstyle="butt")
        axes.plot([estimate.value], [height], marker, color=colour, ms=4.5, mec="white", mew=0.6)


def _handle(label: str, colour: str, width: float, marker: str) -> Line2D:
    return Line2D([], [], color=colour, lw=width, marker=marker, ms=4.5, mec="white", mew=0.6, label=label)


def _scale(axes: Axes, found: Sequence[Evaluation]) -> None:
    """Logarithmic where values lie decades apart, and linear around zero."""
    centres = np.abs([e.value for evaluation in found for e in (evaluation.value, evaluation.logged) if e.is_finite])
    centres = centres[centres > 0]
    if len(centres) and centres.max() > DECADES * centres.min():
        axes.set_xscale("symlog", linthresh=float(centres.min()) / 2)
