"""Figures 1 (joint uncertainty), 5 (scaling) and 7 (the parameters of a patient)."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from hipmdp.families.drawing import BLUE, FAINT, ORANGE, RED
from hipmdp.families.navigation import BOUND
from hipmdp.families.specification import FamilyFacts
from hipmdp.report.style import COLUMN, new_figure, tidy
from hipmdp.study.paper_figures.uncertainty import centres


def uncertainty_figure(measured: dict[str, Any]) -> Figure:
    """Figure 1: where the two classes have been, and how unsure the model is under red's latent."""
    figure = new_figure(2 * COLUMN, 2.9)
    left, right = figure.subplots(1, 2)
    x, y = np.meshgrid(centres(), centres(), indexing="ij")
    for name, colour, label, offset in (("blue", BLUE, "class 1", -0.03), ("red", RED, "class 0", 0.03)):
        size = 30 * np.minimum(np.asarray(measured[name]), 100) / 100
        left.scatter(x + offset, y, s=size, color=colour, lw=0, label=label)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
    left.set_title("where the two classes have been", fontsize=8.5)
    variance = np.log10(np.asarray(measured["variance"]).T)
    image = right.imshow(variance, origin="lower", extent=(-BOUND, BOUND, -BOUND, BOUND), cmap="cividis")
    figure.colorbar(image, ax=right, label="log10 epistemic variance")
    right.set_title("how unsure the model is of action E, class 0", fontsize=8.5)
    for axes in (left, right):
        axes.set(xlim=(-BOUND, BOUND), ylim=(-BOUND, BOUND), aspect="equal", xlabel="x", ylabel="y")
        axes.plot([0, 0, BOUND], [BOUND, 0, 0], color=FAINT, lw=1)
    return figure


def scaling_figure(measured: list[dict[str, Any]]) -> Figure:
    """Figure 5: seconds of the episodes with an update, as data grows."""
    figure = new_figure()
    axes = figure.add_subplot()
    for result, colour, marker in zip(measured, (BLUE, ORANGE), "os", strict=False):
        updates = [r for r in result["rows"] if r["updated"]]
        label = f"{result['model'].upper()} (exponent {result['exponent']:.1f})"
        episodes, seconds = [r["episode"] + 1 for r in updates], [r["seconds"] for r in updates]
        axes.plot(episodes, seconds, marker=marker, color=colour, ms=3, lw=1.3, label=label)
    axes.set(xlabel="episodes so far", ylabel="seconds of an episode with an update", yscale="log")
    axes.legend(frameon=False)
    tidy(axes)
    return figure


def parameters_figure(facts: FamilyFacts) -> Figure | None:
    """Figure 7: the hidden parameters of a patient with their baseline values; None where they have no meanings."""
    if not any(parameter.meaning for parameter in facts.parameters):
        return None
    figure = new_figure(1.5 * COLUMN, 4.6)
    axes = figure.add_subplot()
    axes.axis("off")
    rows = [[p.symbol, p.meaning, f"{p.baseline:g}", p.unit, "yes" if p.varied else ""] for p in facts.parameters]
    widths = [0.08, 0.42, 0.13, 0.23, 0.14]
    table = axes.table(
        rows,
        colLabels=["", "meaning", "baseline", "unit", "varies"],
        colWidths=widths,
        loc="center",
        cellLoc="left",
        colLoc="left",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(7)
    table.scale(1, 0.92)
    for (row, _), cell in table.get_celld().items():
        cell.set_linewidth(0)
        cell.set_facecolor("#EEEEEE" if row and row % 2 else "white")
        if row == 0:
            cell.set_text_props(weight="bold")
    return figure
