"""Are scores what they were before the random streams changed? `python benchmarks/streams_check.py STUDY`

STUDY holds embedded cells of the present version (`hipmdp compare …`, see lab-notes/redesign.md). For each family: the
difference of their scores to the published cells (`benchmarks/study`) of the same instances and seeds, after each
episode, with the 95 % interval of its mean over all pairs (bootstrap over pairs), and over whole seeds (Student t): all
instances of a seed share a batch, a model and every random draw, so that pairs of one seed are not independent.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from common import save
from scipy.stats import t

from hipmdp.study.results import read_results

PUBLISHED = Path(__file__).parent / "study"
EPISODES = (0, 1, 4, 9)


def interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Mean and 95 % bootstrap interval over the pairs."""
    rng = np.random.default_rng(0)
    means = differences[rng.integers(0, len(differences), (10_000, len(differences)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(differences.mean()), float(low), float(high)


def by_seed(differences: np.ndarray, seeds: np.ndarray) -> tuple[float, float]:
    """95 % interval of the mean, drawing whole seeds."""
    means = np.asarray([differences[seeds == seed].mean() for seed in np.unique(seeds)])
    reach = float(t.ppf(0.975, len(means) - 1)) * means.std(ddof=1) / np.sqrt(len(means))
    return float(means.mean() - reach), float(means.mean() + reach)


def main() -> None:
    new, old = read_results(Path(sys.argv[1])), read_results(PUBLISHED)
    rows: list[dict[str, Any]] = []
    for family in new.names("family"):
        before = {r.name: r for r in old.select(family=family, method="embedded", variant="plain")}
        pairs = [(r, before[r.name]) for r in new.select(family=family, method="embedded") if r.name in before]
        for episode in EPISODES if pairs else ():
            scores = np.asarray([[new.values(a, "score")[episode], old.values(b, "score")[episode]] for a, b in pairs])
            mean, low, high = interval(scores[:, 0] - scores[:, 1])
            seeds = np.asarray([a.key["seed"] for a, _ in pairs])
            low_seed, high_seed = by_seed(scores[:, 0] - scores[:, 1], seeds)
            row = {"family": family, "after": episode + 1, "pairs": len(pairs), "now": float(scores[:, 0].mean()),
                   "before": float(scores[:, 1].mean()), "difference": mean, "low": low, "high": high,
                   "seeds": len(np.unique(seeds)), "low_by_seed": low_seed, "high_by_seed": high_seed}  # fmt: skip
            rows.append(row)
            print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})
    save("streams_check", "python benchmarks/streams_check.py STUDY", rows)


if __name__ == "__main__":
    main()
