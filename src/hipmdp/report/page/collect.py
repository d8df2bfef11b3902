"""All that the page shows, gathered from the stored results of studies."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from hipmdp.adaptation.methods import METHODS
from hipmdp.families import FAMILIES
from hipmdp.families.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SKY
from hipmdp.families.navigation import BOUND
from hipmdp.report.page.curves import ERROR, Family, groups, summary
from hipmdp.report.page.latents import latent_maps
from hipmdp.report.page.scenes import scene
from hipmdp.report.style import METHOD_STYLES
from hipmdp.study.cells.record import METRICS, CellRecord
from hipmdp.study.paper_figures.extras import read_extras
from hipmdp.study.results import Results, read_results

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)
"""For what has no colour of its own: variants, and methods of the user's."""
SCALE_STEPS = 33


def page_data(directories: list[Path]) -> dict[str, Any]:
    """Everything, as JSON-ready values and arrays."""
    everything = read_results(*directories)
    scale = matplotlib.colormaps["cividis"](np.linspace(0, 1, SCALE_STEPS))
    return {
        "studies": [directory.resolve().name for directory in directories],
        "version": version("hipmdp"),
        "styles": {name: {"colour": colour, "marker": marker} for name, (colour, marker) in METHOD_STYLES.items()},
        "ink": INK,
        "palette": PALETTE,
        "scale": [to_hex(colour) for colour in scale],
        "families": [_family(name, everything) for name in sorted(everything.names("family"), key=_place)],
        "uncertainty": [_uncertainty(measured) for measured in read_extras(directories, "uncertainty")],
    }


def _family(name: str, everything: Results) -> dict[str, Any]:
    records = sorted(everything.select(family=name), key=lambda record: _place(record.key["method"]))
    family = Family(name, Results(records))
    runs: dict[str, int] = {}
    drawn = scene(records[0])
    cells = [_cell(family, record, drawn["parameters"], runs) for record in records]
    return {
        "name": name,
        "scene": drawn,
        "measures": family.measures | {ERROR: "error of the model on each episode, before it is tuned on it"},
        "groups": groups(family),
        "summary": summary(family),
        "latents": latent_maps(records),
        "cells": cells,
        "runs": [json.loads(text) for text in runs],
    }


def _place(name: str) -> int:
    """Families and methods in our usual order, a user's own behind them."""
    known = [*FAMILIES, *METHODS]
    base = name.partition("-")[0]
    return known.index(base) if base in known else len(known)


def _cell(family: Family, record: CellRecord, parameters: list[str], runs: dict[str, int]) -> dict[str, Any]:
    """One cell; what it shares with others (settings, versions) is kept once in `runs`."""
    shared = json.dumps({name: record.metadata.get(name, {}) for name in ("settings", "versions")})
    return {
        **{name: record.key[name] for name in ("method", "variant", "instance", "seed")},
        "theta": [record.theta.get(name) for name in parameters],
        "run": runs.setdefault(shared, len(runs)),
        "report": record.metadata.get("model_metrics", record.metadata.get("report", {})),
        "peak_gb": record.metadata.get("peak_gb"),
        "metrics": {
            name: family.results.values(record, name)
            for name in dict.fromkeys((*METRICS, *family.measures))
        },
        "states": record.states.T,
        "actions": record.actions,
    }  # fmt: skip


def _uncertainty(measured: dict[str, Any]) -> dict[str, Any]:
    """The two maps of Figure 1; `variance[i][j]` is at x_i, y_j."""
    kept = ("seed", "ratio_of_medians", "cells_seen", "cells_unseen", "variance", "red", "blue")
    return {"bound": BOUND} | {name: measured.get(name) for name in kept}
