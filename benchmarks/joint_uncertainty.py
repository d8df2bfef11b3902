"""Figure 1 of the paper: is the model less certain where this instance has not been?

    python benchmarks/joint_uncertainty.py [--fresh]

Ten seeds, each with its own batch (grid, β = 0.23, both classes, 500 episodes each) and its own embedded model with the
recipe's settings. For the latent of class 0 ("red") and action E: epistemic variance, summed over dimensions, in the
cells of a 20×20 map that red never visited but blue did (≥ 20 times), against those that red visited (≥ 20). A joint
model must be less certain in the former: the ratio of the two means is to be ≥ 3 in nine of ten seeds. Seeds that are
stored are not run again, unless --fresh asks for it.
"""

import json
import sys
from pathlib import Path

import numpy as np
from common import RESULTS, cached_batch, save

from hipmdp.report.measured import uncertainty_figure
from hipmdp.report.style import save_figure
from hipmdp.study.paper_figures.uncertainty import measure_uncertainty

SEEDS = 10
MAPS = ("variance", "red", "blue")

if __name__ == "__main__":
    path = RESULTS / "joint_uncertainty.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() and "--fresh" not in sys.argv else []
    for seed in range(SEEDS):
        if any(row["seed"] == seed for row in rows):
            continue
        measured = measure_uncertainty(cached_batch("grid", {}, "train", 500, seed), seed)
        row = {name: value for name, value in measured.items() if name not in MAPS}
        rows.append(row)
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        if seed == 0:
            save_figure(uncertainty_figure(measured), Path(RESULTS), "joint_uncertainty")
        save("joint_uncertainty", "python benchmarks/joint_uncertainty.py", rows)
    for name in ("ratio", "ratio_of_medians"):
        values = [row[name] for row in rows if row[name] is not None]
        print(f"median {name} over the {len(values)} of {len(rows)} seeds that have one: {np.median(values):.2f}")
