"""Ablations: one panel per setting, the score after one and after all episodes against its value."""

import numpy as np
from matplotlib.figure import Figure

from hipmdp.families.drawing import BLUE, ORANGE
from hipmdp.report.style import COLUMN, new_figure, tidy
from hipmdp.study.results import Results
from hipmdp.study.setup import PLAIN
from hipmdp.study.statistics import Estimate, estimate, mean

METHOD = "embedded"


def ablation_figure(results: Results, family: str) -> Figure | None:
    """Embedded with one setting changed at a time; "plain" is the preset."""
    results = _common(results, family)
    groups: dict[str, list[str]] = {}
    for variant in results.names("variant", family=family, method=METHOD):
        name, _, value = variant.partition("=")
        if value and results.table(family, METHOD, "score", variant).size:
            groups.setdefault(name, []).append(variant)
    if not groups:
        return None
    figure = new_figure(COLUMN * min(3, len(groups)), 2.4 * -(-len(groups) // 3))
    panels = np.ravel(figure.subplots(-(-len(groups) // 3), min(3, len(groups)), squeeze=False))
    for axes, (name, variants) in zip(panels, groups.items(), strict=False):
        ordered = sorted(variants, key=_value)
        shown = [v for v in (PLAIN, *ordered) if results.table(family, METHOD, "score", v).size]
        for episode, colour, marker, shift in ((0, BLUE, "o", -0.08), (-1, ORANGE, "s", 0.08)):
            found = [_estimate(results, family, v, episode) for v in shown]
            values = [e.value for e in found]
            bars = np.nan_to_num([[e.value - e.low for e in found], [e.high - e.value for e in found]])
            label = "after one episode" if episode == 0 else "after all"
            places = np.arange(len(shown)) + shift
            axes.errorbar(places, values, bars, fmt=marker, color=colour, ms=4, lw=1, capsize=2, label=label)
        names = [v.partition("=")[2].replace("_", " ") or v for v in shown]
        axes.set_xticks(range(len(shown)), names, rotation=20 if max(map(len, names)) > 6 else 0)
        axes.set(title=name.replace("_", " "), ylabel="score")
        tidy(axes)
    for axes in panels[len(groups) :]:
        axes.axis("off")
    panels[0].legend(frameon=False)
    seeds, instances = results.table(family, METHOD, "score", next(iter(groups.values()))[0]).shape[:2]
    figure.suptitle(f"{family}, {METHOD}: {seeds} × {instances} runs each", fontsize=8.5)
    return figure


def _common(results: Results, family: str) -> Results:
    """Only the instances and seeds that every variant has: nothing else can be compared."""
    cells: dict[str, set[tuple[str, int]]] = {}
    records = results.select(family=family, method=METHOD)
    for record in records:
        cells.setdefault(record.key["variant"], set()).add((record.key["instance"], record.key["seed"]))
    shared = set.intersection(*cells.values()) if cells else set()
    return Results([r for r in records if (r.key["instance"], r.key["seed"]) in shared])


def _estimate(results: Results, family: str, variant: str, episode: int) -> Estimate:
    return estimate(mean, results.table(family, METHOD, "score", variant)[..., episode], repeats=1000)


def _value(variant: str) -> tuple[int, float, str]:
    """Numbers by size, words after them."""
    text = variant.partition("=")[2]
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text
