"""Figure 1 of the paper: is the model less certain where this instance has not been?

    python benchmarks/joint_uncertainty.py [--fresh]

Ten seeds, each with its own batch (grid, β = 0.23, both classes, 500 episodes each) and its own
embedded model. For the latent of class 0 ("red") and action E: epistemic variance, summed over dimensions, in the cells
of a 20×20 map that red never visited but blue did (≥ 20 times), against those that red visited (≥ 20). A joint model
must be less certain in the former: the median over seeds of the ratio of the two means is to be ≥ 3. Seeds that are
stored are not run again, unless --fresh asks for it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import PAPER_SIZED, RESULTS, cached_batch, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import hipmdp
from hipmdp.dynamics.model import predict
from hipmdp.families.drawing import BLUE, FAINT, RED

CELLS, EAST, ENOUGH, SEEDS = 20, 2, 20, 10
# A small N and a fast ρ keep the posterior wide where an instance has not been, at the price of larger errors at the
# walls: right for this picture, wrong for control.
UNSURE = hipmdp.DynamicsConfig(**PAPER_SIZED["grid"])


def counts(states: np.ndarray) -> np.ndarray:
    edges = np.linspace(-2, 2, CELLS + 1)
    return np.histogram2d(states[:, 0], states[:, 1], bins=(edges, edges))[0]


def measure(seed: int) -> tuple[dict[str, Any], Any]:
    batch = cached_batch("grid", {}, "train", 500, seed)
    model = hipmdp.pretrain(batch, method="embedded", seed=seed, config=UNSURE, quiet=True)
    assert model.dynamics is not None
    centres = np.linspace(-2, 2, CELLS + 1)[:-1] + 2 / CELLS
    cells = np.stack(np.meshgrid(centres, centres, indexing="ij"), axis=-1).reshape(-1, 2)
    told = predict(model.dynamics, cells, np.full(len(cells), EAST), model.dynamics.latents[0], draws=200)
    variance = np.asarray(told.epistemic).sum(axis=1).reshape(CELLS, CELLS)
    red, blue = (counts(batch.state[batch.instance == i]) for i in (0, 1))
    unseen, seen = (red == 0) & (blue >= ENOUGH), red >= ENOUGH
    row = {
        "seed": seed,
        # Where red has been in every cell that blue knows there is no ratio.
        "ratio": float(variance[unseen].mean() / variance[seen].mean()) if unseen.any() else None,
        "ratio_of_medians": float(np.median(variance[unseen]) / np.median(variance[seen])) if unseen.any() else None,
        "cells_unseen": int(unseen.sum()),
        "cells_seen": int(seen.sum()),
        "held_out_error": model.report["held_out_error"],
    }
    return row, (variance, red, blue)


def draw(maps: tuple[np.ndarray, np.ndarray, np.ndarray], path: Path) -> None:
    variance, red, blue = maps
    figure = Figure(figsize=(7.2, 2.9), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    centres = np.linspace(-2, 2, CELLS + 1)[:-1] + 2 / CELLS
    for count, colour, label in ((blue, BLUE, "class 1 (blue)"), (red, RED, "class 0 (red)")):
        x, y = np.meshgrid(centres, centres, indexing="ij")
        size = 30 * np.minimum(count, 100) / 100
        offset = 0.03 if colour is RED else -0.03
        left.scatter(x + offset, y, s=size, color=colour, lw=0, label=label)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, fontsize=8, frameon=False, markerscale=1.0)
    left.set_title("where the two classes have been", fontsize=9)
    image = right.imshow(np.log10(variance.T), origin="lower", extent=(-2, 2, -2, 2), cmap="viridis")
    figure.colorbar(image, ax=right, label="log10 epistemic variance")
    right.set_title("uncertainty under red's latent, action E", fontsize=9)
    for axes in (left, right):
        axes.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal")
        axes.plot([0, 0, 2], [2, 0, 0], color=FAINT, lw=1)
    figure.savefig(path)


if __name__ == "__main__":
    path = RESULTS / "joint_uncertainty.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() and "--fresh" not in sys.argv else []
    for seed in range(SEEDS):
        if any(row["seed"] == seed for row in rows):
            continue
        row, maps = measure(seed)
        rows.append(row)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        if seed == 0:
            draw(maps, RESULTS / "joint_uncertainty.png")
        save("joint_uncertainty", "python benchmarks/joint_uncertainty.py", rows)
    for name in ("ratio", "ratio_of_medians"):
        values = [row[name] for row in rows if row[name] is not None]
        print(f"median {name} over the {len(values)} of {len(rows)} seeds that have one: {np.median(values):.2f}")
