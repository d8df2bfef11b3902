"""Best-known returns of the test instances against simple policies: `python benchmarks/best_known.py [FAMILY …]`

FAMILY: grid, acrobot, acrobot-wide, hiv. `blind` is one policy trained on the true dynamics of all training instances
(train32; train on grid), without being told which is which. Writes a table (JSON) and a picture per family.
"""

import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from common import RESULTS, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import hipmdp
from hipmdp.families.drawing import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE
from hipmdp.transfer.search import SEARCH

FAMILIES: dict[str, Any] = {
    "grid": ("grid", {}, "train", 1500),
    "acrobot": ("acrobot", {}, "train32", 4000),
    "acrobot-wide": ("acrobot", {"sd": 0.25}, "train32", 4000),
    "hiv": ("hiv", {}, "train32", 3000),
}
POLICIES = (("random", FAINT), ("constant", PURPLE), ("scripted", ORANGE), ("blind", BLUE), ("best_known", GREEN))


def measure(label: str) -> dict[str, Any]:
    name, options, training, episodes = FAMILIES[label]
    family = hipmdp.make(name, **options)
    begin = time.perf_counter()
    config = replace(SEARCH[name].learner, epsilon_decay=0.998)
    blind = hipmdp.train_blind(family, training, episodes, seed=0, config=config)
    rows: list[dict[str, Any]] = []
    for instance in family.instances("test"):
        run = hipmdp.learn_policy(blind, family, instance, episodes=1)
        rows.append(
            {
                "instance": instance.label,
                "random": instance.random,
                "constant": instance.constant,
                "scripted": instance.scripted,
                "blind": float(run.returns[0]),
                "blind_success": float(run.success[0]),
                "best_known": instance.best_known,
            }
        )
        rows[-1].update({f"score_{p}": instance.score(rows[-1][p]) for p in ("constant", "scripted", "blind")})
    return {"family": label, "blind_seconds": time.perf_counter() - begin, "blind_episodes": episodes, "test": rows}


def draw(result: dict[str, Any]) -> None:
    rows = sorted(result["test"], key=lambda row: row["best_known"])
    figure = Figure(figsize=(7, 3.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    x = np.arange(len(rows))
    for policy, colour in POLICIES:
        axes.plot(
            x, [row[policy] for row in rows], "o", color=colour, ms=7, mec=INK, mew=0.4, label=policy.replace("_", " ")
        )
    if result["family"] == "hiv":
        axes.set_yscale("symlog", linthresh=1e6)
    axes.set_xticks(x, [row["instance"].split(":")[1] for row in rows], fontsize=8)
    axes.set(
        xlabel="test instance, sorted by its best known return", ylabel="undiscounted return", title=result["family"]
    )
    axes.grid(axis="y", color=FAINT, lw=0.4)
    axes.legend(fontsize=8, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
    figure.savefig(RESULTS / f"best_known_{result['family']}.png")


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(FAMILIES)
    path = RESULTS / "best_known.json"
    results = [r for r in json.loads(path.read_text())["rows"] if r["family"] not in chosen] if path.exists() else []
    for label in chosen:
        result = measure(label)
        print(f"\n{label} (blind: {result['blind_episodes']} episodes, {result['blind_seconds']:.0f} s)")
        print(f"{'instance':10}" + "".join(f"{policy:>12}" for policy, _ in POLICIES) + f"{'blind score':>13}")
        for row in result["test"]:
            cells = "".join(f"{row[policy]:12.4g}" for policy, _ in POLICIES)
            print(f"{row['instance']:10}{cells}{row['score_blind']:13.3f}")
        scores = {
            p: float(np.mean([row[f"score_{p}"] for row in result["test"]])) for p in ("constant", "scripted", "blind")
        }
        result["mean_scores"] = scores
        print("mean scores: " + ", ".join(f"{p} {s:.3f}" for p, s in scores.items()), flush=True)
        draw(result)
        results.append(result)
        save("best_known", "python benchmarks/best_known.py", results)
