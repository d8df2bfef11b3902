"""Best-known returns of the test instances against simple policies.

    python benchmarks/best_known.py [FAMILY …] [--rescore]

FAMILY: grid, acrobot, acrobot-wide, hiv. `blind` is one policy trained on the true dynamics of all training instances
(train32; train on grid), without seeing which is which; three seeds. Writes
a table (JSON) and a picture per family. `--rescore` only recomputes the scores of what is stored.
"""

import json
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from common import RESULTS, iqm_and_interval, keep_better, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import hipmdp
from hipmdp.control.policies import Greedy
from hipmdp.families.drawing import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE
from hipmdp.settings import recipe
from hipmdp.study.instance_search.search import measured

FAMILIES: dict[str, Any] = {
    "grid": ("grid", {}, "train", 800),
    "acrobot": ("acrobot", {}, "train32", 1000),
    "acrobot-wide": ("acrobot", {"sd": 0.25}, "train32", 1000),
    "hiv": ("hiv", {}, "train32", 1000),
}
SEEDS = 3
POLICIES = (("random", FAINT), ("constant", PURPLE), ("scripted", ORANGE), ("blind", BLUE), ("best_known", GREEN))


def log10_score(instance: hipmdp.Instance, value: float) -> float:
    """The score of log10 returns (HIV): differences by powers of ten; returns below one count as one."""
    low, high, own = (np.log10(max(v, 1.0)) for v in (instance.random, instance.best_known, value))
    return float((own - low) / (high - low))


def measure(label: str) -> dict[str, Any]:
    name, options, training, episodes = FAMILIES[label]
    family = hipmdp.make(name, **options)
    begin = time.perf_counter()
    config = replace(recipe.search(family.specification).dqn, epsilon_decay=0.995)
    tests = family.instances("test")
    blind, success, records = [], [], []
    for seed in range(SEEDS):
        model = hipmdp.train_blind(family, training, episodes, seed=seed, config=config)
        assert model.policy is not None
        found = [measured(family, instance.theta, Greedy(model.policy)) for instance in tests]
        blind.append([record["return"] for record in found])
        success.append([record["success"] for record in found])
        source = {"method": "blind", "seed": seed, "episodes": episodes, "training": training}
        records.append([{**record, **source} for record in found])
    for i, instance in enumerate(tests):
        keep_better(family, instance, max((row[i] for row in records), key=lambda record: record["return"]))
    facts = {
        "family": label,
        "blind_seconds": time.perf_counter() - begin,
        "blind_episodes": episodes,
        "blind_success": float(np.mean(success)),
    }
    return {**facts, **scored(label, blind, [float(np.mean([row[i] for row in success])) for i in range(len(tests))])}


def scored(label: str, blind: list[list[float]], success: list[float]) -> dict[str, Any]:
    """The table of one family from the blind returns (by seed), with the best returns that are known now."""
    name, options, _, _ = FAMILIES[label]
    tests = hipmdp.make(name, **options).instances("test")
    rows = [
        {
            "instance": instance.label,
            "random": instance.random,
            "constant": instance.constant,
            "scripted": instance.scripted,
            "blind": float(np.mean([row[i] for row in blind])),
            "blind_by_seed": [row[i] for row in blind],
            "blind_success": success[i],
            "best_known": instance.best_known,
        }
        for i, instance in enumerate(tests)
    ]
    tables = {
        "constant": [[t.constant for t in tests]],
        "scripted": [[t.scripted for t in tests]],
        "blind": blind,
    }
    kinds = {"score": hipmdp.Instance.score} | ({"log10_score": log10_score} if name == "hiv" else {})
    scores = {
        policy: {
            kind: iqm_and_interval([[score(t, v) for t, v in zip(tests, row, strict=True)] for row in table])
            for kind, score in kinds.items()
        }
        for policy, table in tables.items()
    }
    return {"scores": scores, "test": rows}


def rescored(result: dict[str, Any]) -> dict[str, Any]:
    """A stored result with today's best-known returns; nothing is trained."""
    blind = [list(row) for row in zip(*(row["blind_by_seed"] for row in result["test"]), strict=True)]
    return {**result, **scored(result["family"], blind, [row["blind_success"] for row in result["test"]])}


def draw(result: dict[str, Any]) -> None:
    rows = sorted(result["test"], key=lambda row: row["best_known"])
    figure = Figure(figsize=(7, 3.6), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    x = np.arange(len(rows))
    for place, (policy, colour) in enumerate(POLICIES):
        values, label = [row[policy] for row in rows], policy.replace("_", " ")
        axes.plot(x + 0.12 * (place - 2), values, "o", color=colour, ms=6, mec=INK, mew=0.4, label=label)
    if result["family"] == "hiv":
        axes.set_yscale("symlog", linthresh=1e6)
        axes.set_yticks([0, *(10.0**power for power in range(6, 12))])
    elif result["family"] != "grid":
        axes.set_yscale("symlog", linthresh=5)
        axes.set_yticks(ticks := [-250, -150, -100, -50, -30, -20, -10, -5, 0], [str(t) for t in ticks])
        axes.minorticks_off()
    axes.set_xticks(x, [row["instance"].split(":")[1] for row in rows], fontsize=8)
    axes.set(
        xlabel="test instance, sorted by its best known return", ylabel="undiscounted return", title=result["family"]
    )
    axes.grid(axis="y", color=FAINT, lw=0.4)
    axes.legend(fontsize=8, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False)
    figure.savefig(RESULTS / f"best_known_{result['family']}.png")


if __name__ == "__main__":
    rescore = "--rescore" in sys.argv
    chosen = [word for word in sys.argv[1:] if word != "--rescore"] or list(FAMILIES)
    path = RESULTS / "best_known.json"
    stored = {r["family"]: r for r in json.loads(path.read_text())["rows"]} if path.exists() else {}
    results = [result for label, result in stored.items() if label not in chosen]
    for label in chosen:
        result = rescored(stored[label]) if rescore else measure(label)
        print(f"\n{label} (blind: {SEEDS} seeds, {result['blind_episodes']} episodes, {result['blind_seconds']:.0f} s)")
        print(f"{'instance':10}" + "".join(f"{policy:>12}" for policy, _ in POLICIES))
        for row in result["test"]:
            print(f"{row['instance']:10}" + "".join(f"{row[policy]:12.4g}" for policy, _ in POLICIES))
        for policy, kinds in result["scores"].items():
            for kind, s in kinds.items():
                print(
                    f"{policy:10}{kind:12} IQM {s['iqm']:.3f} [{s['low']:.3f}, {s['high']:.3f}], mean {s['mean']:.3f}"
                )
        print(f"blind succeeds in {result['blind_success']:.0%} of episodes", flush=True)
        draw(result)
        results.append(result)
        save("best_known", "python benchmarks/best_known.py", results)
