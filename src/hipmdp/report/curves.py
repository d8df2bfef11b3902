"""Learning curves: Figures 2b, 3b, 4b (first ten episodes), 6 (model error) and 8 (long runs)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from hipmdp.report.style import new_figure, style_of, tidy
from hipmdp.study.results import Results
from hipmdp.study.statistics import estimate, mean

FIRST = 10
"""Episodes of the paper's comparison."""
EARLY = 5
"""Episodes of the figure that shows the learning episodes themselves."""
CROWD, EMPTY = 0.9, 0.4
"""Scores above and below which there is room for an enlarged part between."""
SMOOTH = 10
"""Episodes averaged in a long run."""


def comparison_figure(results: Results, family: str) -> Figure | None:
    """Greedy scores after each of the first ten episodes, all methods, mean with 95 % intervals."""
    tables = {m: results.table(family, m, "score")[..., :FIRST] for m in results.methods(family)}
    if not tables:
        return None
    figure = new_figure()
    axes = figure.add_subplot()
    draw_curves(axes, tables)
    measure = results.measure(family)
    axes.set(xlabel="real episodes", ylabel=f"{measure} of the greedy policy", title=_title(family, tables))
    if measure == "score":
        axes.set_ylim(_floor(tables), 1.06)
        _magnify(axes, tables)
    _legend(figure, axes)
    return figure


def first_episodes_figure(results: Results, family: str) -> Figure | None:
    """Scores of the first learning episodes, exploration included; where a method has a policy before them."""
    methods = results.methods(family)
    if not {"amortised", "refined"} & set(methods):
        return None
    tables = {m: results.table(family, m, "learning_score")[..., :EARLY] for m in methods}
    figure = new_figure()
    axes = figure.add_subplot()
    draw_curves(axes, tables)
    measure = results.measure(family)
    axes.set(xlabel="real episode", ylabel=f"{measure} of the learning episode", title=_title(family, tables))
    axes.set_xticks(np.arange(EARLY) + 1)
    if measure == "score":
        axes.set_ylim(_floor(tables), 1.06)
    _legend(figure, axes)
    return figure


def error_figure(results: Results, family: str) -> Figure | None:
    """Error of T̂ on each episode before it is tuned on it, methods that have a T̂."""
    tables = {}
    for method in results.methods(family):
        table = results.table(family, method, "model_error")[..., :FIRST]
        if table.size and np.isfinite(table).all():
            tables[method] = table
    if not tables:
        return None
    figure = new_figure()
    axes = figure.add_subplot()
    draw_curves(axes, tables)
    axes.set(xlabel="real episodes", ylabel="error of the model on it", yscale="log", title=_title(family, tables))
    _legend(figure, axes)
    return figure


def long_figure(results: Results, family: str) -> Figure | None:
    """Greedy scores over a long run, smoothed, mean over runs; no intervals, as in the paper."""
    tables = {m: results.table(family, m, "score") for m in results.methods(family)}
    if not tables:
        return None
    figure = new_figure()
    axes = figure.add_subplot()
    kernel = np.ones(SMOOTH) / SMOOTH
    curves = {m: np.convolve(table.mean(axis=(0, 1)), kernel, mode="valid") for m, table in tables.items()}
    _draw_long(axes, curves)
    if results.measure(family) == "score":
        _magnify_long(axes, curves)
    axes.set(xlabel="real episodes", ylabel=f"{results.measure(family)}, mean of {SMOOTH} episodes")
    axes.set_title(_title(family, tables))
    tidy(axes)
    _legend(figure, axes)
    return figure


def _draw_long(axes: Axes, curves: dict[str, np.ndarray], **more: Any) -> None:
    for method, curve in curves.items():
        axes.plot(np.arange(len(curve)) + SMOOTH, curve, **(style_of(method) | {"marker": ""} | more))


def draw_curves(axes: Axes, tables: dict[str, np.ndarray]) -> None:
    """Mean and 95 % interval over (seeds, instances) at every episode."""
    for method, table in tables.items():
        found = [estimate(mean, table[..., e], repeats=1000) for e in range(table.shape[-1])]
        episodes = np.arange(len(found)) + 1
        style: dict[str, Any] = style_of(method)
        axes.plot(episodes, [e.value for e in found], **style)
        low, high = [e.low for e in found], [e.high for e in found]
        axes.fill_between(episodes, low, high, color=style["color"], alpha=0.15, lw=0)
    tidy(axes)


def _magnify(axes: Axes, tables: dict[str, np.ndarray]) -> None:
    """Where most methods crowd at the top and nothing is in the middle, the middle shows the crowd enlarged."""
    means = {method: table.mean(axis=(0, 1)) for method, table in tables.items()}
    crowd = {method: tables[method] for method, curve in means.items() if curve.min() > CROWD}
    others = [curve.max() for method, curve in means.items() if method not in crowd]
    if len(crowd) < 3 or not others or max(others) > EMPTY:
        return
    inset = axes.inset_axes((0.13, 0.42, 0.84, 0.42))
    draw_curves(inset, crowd)
    for line in inset.get_lines():
        line.set(markersize=2.5, linewidth=1)
    inset.tick_params(labelsize=6)
    inset.set_xticklabels([])


def _magnify_long(axes: Axes, curves: dict[str, np.ndarray]) -> None:
    """Where methods crowd at the top and the others reach them soon, the lower right shows the crowd."""
    crowd = {method: curve for method, curve in curves.items() if curve.min() > CROWD}
    late = [curve[len(curve) // 3 :].min() for method, curve in curves.items() if method not in crowd]
    if len(crowd) < 3 or not late or min(late) < CROWD:
        return
    inset = axes.inset_axes((0.4, 0.17, 0.57, 0.55))
    _draw_long(inset, crowd, lw=1)
    inset.tick_params(labelsize=6)
    tidy(inset)


def _floor(tables: dict[str, np.ndarray]) -> float:
    """Where the axis of scores begins: far below random there is nothing to distinguish."""
    lowest = min(float(table.mean(axis=(0, 1)).min()) for table in tables.values())
    return float(np.clip(lowest - 0.06, -0.5, 0.9))


def _title(family: str, tables: dict[str, np.ndarray]) -> str:
    counts = sorted({table.shape[0] for table in tables.values()})
    instances = next(iter(tables.values())).shape[1]
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seed{'s' * (counts[0] > 1)}"
    return f"{family}: {seeds} × {instances} instance{'s' * (instances > 1)}"


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=7)
