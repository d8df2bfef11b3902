"""Figure 1 of the paper: is the model less certain where this instance has not been?

For the latent of class 0 ("red") and action E: epistemic variance, summed over dimensions, in the cells of a 20×20 map
that red never visited but blue did (≥ 20 times), against those that red visited (≥ 20). A joint model must be less
certain in the former.
"""

from typing import Any

import numpy as np

from hipmdp._random import root_key, stream
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.model import predict
from hipmdp.families.navigation import BOUND
from hipmdp.pretraining.pretrain import pretrain
from hipmdp.settings.dynamics import DynamicsConfig

CELLS, EAST, ENOUGH = 20, 2, 20


def centres() -> np.ndarray:
    """Middles of the cells along one axis."""
    return np.linspace(-BOUND, BOUND, CELLS + 1)[:-1] + BOUND / CELLS


def measure_uncertainty(batch: Transitions, seed: int, config: DynamicsConfig | None = None) -> dict[str, Any]:
    """The maps of variance and of visits, and their ratio; the recipe's T̂, unless other settings are given."""
    model = pretrain(batch, "embedded", seed, config=config, quiet=True, policy=False)
    dynamics = model.need_dynamics("measure_uncertainty")
    cells = np.stack(np.meshgrid(centres(), centres(), indexing="ij"), axis=-1).reshape(-1, 2)
    key = stream(root_key(seed), "study/uncertainty")
    prediction = predict(dynamics, cells, np.full(len(cells), EAST), dynamics.latents[0], key=key, draws=200)
    variance = np.asarray(prediction.epistemic).sum(axis=1).reshape(CELLS, CELLS)
    red, blue = (_counts(batch.state[batch.instance == i]) for i in (0, 1))
    unseen, seen = (red == 0) & (blue >= ENOUGH), red >= ENOUGH
    # Where red has been in every cell that blue knows there is no ratio.
    ratios = [float(f(variance[unseen]) / f(variance[seen])) if unseen.any() else None for f in (np.mean, np.median)]
    return {
        "seed": seed,
        "ratio": ratios[0],
        "ratio_of_medians": ratios[1],
        "cells_unseen": int(unseen.sum()),
        "cells_seen": int(seen.sum()),
        "error_on_held_out_episodes": model.metrics["error_on_held_out_episodes"],
        "variance": variance.tolist(),
        "red": red.tolist(),
        "blue": blue.tolist(),
    }


def _counts(states: np.ndarray) -> np.ndarray:
    edges = np.linspace(-BOUND, BOUND, CELLS + 1)
    return np.histogram2d(states[:, 0], states[:, 1], bins=(edges, edges))[0]
