"""The table of lab-notes/recipe.md: one recipe on four families, test and final members apart.

    METHODS="embedded average blind amortised refined"
    SOME=test:0,test:1,test:2,test:3,test:4,final:0,final:1,final:2,final:3,final:4
    hipmdp compare compass hiv acrobot:sd=0.25 --methods $METHODS --instances $SOME --episodes 2 --seeds 3 --out recipe
    hipmdp compare grid --methods $METHODS --episodes 2 --seeds 3 --out recipe
    python benchmarks/recipe_tables.py recipe

Scores of the greedy policy after one and after two episodes, with 95 % intervals over members and seeds; the paired
difference between the two; the first and the second episode themselves; the share that succeeds (HIV: healed) after
one.
"""

import sys
from pathlib import Path

import numpy as np

from hipmdp.study.results import Results, read_results
from hipmdp.study.statistics import estimate, mean, paired_difference

METHODS = ("embedded", "refined", "amortised", "average", "blind")
COLUMNS = ("after one", "after two", "two − one", "episode 1", "episode 2", "success after one", "seeds × members")


def rows(results: Results, family: str, kind: str) -> list[str]:
    """A row for every method, over the seeds that it has all members of."""
    own = Results([record for record in results.records if record.key["instance"].startswith(kind)])
    lines = []
    for method in METHODS:
        if method not in own.methods(family):
            continue
        score, learning = (own.table(family, method, what) for what in ("score", "learning_score"))
        success = own.table(family, method, "success")[..., 0].mean()
        cells = [str(estimate(mean, score[..., episode])) for episode in (0, 1)]
        cells += [str(paired_difference(score[..., 1], score[..., 0]))]
        cells += [f"{learning[..., episode].mean():.3f}" for episode in (0, 1)]
        cells += [f"{success:.2f}", f"{score.shape[0]} × {score.shape[1]}"]
        lines.append(f"| {family} | {kind} | {method} | " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    found = read_results(*(Path(name) for name in sys.argv[1:]))
    print("| family | members | method | " + " | ".join(COLUMNS) + " |")
    print("|---" * (3 + len(COLUMNS)) + "|")
    for family in found.names("family"):
        for kind in ("test", "final"):
            for line in rows(found, family, kind):
                print(line)
    seconds = np.concatenate([r.metrics["seconds"][:1] for r in found.records if r.key["method"] in METHODS[:2]])
    print(f"\nFirst episode and all that follows it, embedded and refined: median {np.median(seconds):.0f} s.")
