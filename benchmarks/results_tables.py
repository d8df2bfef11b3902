"""The tables of lab-notes/comparison.md from the stored cells of the study.

    python benchmarks/results_tables.py

Replaces what stands between the two markers of that page.
"""

from pathlib import Path

import numpy as np

from hipmdp.study.results import Results, read_results
from hipmdp.study.statistics import estimate, interquartile_mean, mean, paired_difference, probability_of_improvement

STUDY, PAGE = Path(__file__).parent / "study", Path(__file__).parent.parent / "lab-notes" / "comparison.md"
BEGIN, END = "<!-- tables: python benchmarks/results_tables.py -->", "<!-- end of tables -->"
EPISODES = (0, 1, 2, 3, 9)
FIRST, FIRST_EPISODES = ("amortised", "refined", "embedded", "blind"), (0, 1, 2, 9)


def family_tables(results: Results, family: str) -> list[str]:
    methods = results.methods(family)
    tables = {method: results.table(family, method) for method in methods}
    sizes = {method: table.shape[:2] for method, table in tables.items()}
    lines = [f"### {family}", ""]
    runs = "; ".join(f"{m} {s} × {i}" for m, (s, i) in sizes.items())
    lines += [f"Seeds × instances: {runs}.", ""]
    lines += [
        "| method | "
        + " | ".join(f"score after {e + 1}" for e in EPISODES)
        + " | IQM after 1 | success after 1, 2, 10 |"
    ]
    lines += ["|---" * (len(EPISODES) + 3) + "|"]
    for method, table in tables.items():
        success = results.table(family, method, "success").mean(axis=(0, 1))
        cells = [str(estimate(mean, table[..., e])) for e in EPISODES]
        cells.append(f"{interquartile_mean(table[..., 0]):.3f}")
        cells.append(", ".join(f"{success[e]:.2f}" for e in (0, 1, 9)))
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    ours = tables.get("embedded")
    if ours is not None and len(tables) > 1:
        lines += ["", "Embedded minus the other, run by run, and the probability that embedded is better:", ""]
        lines += ["| against | " + " | ".join(f"after {e + 1}" for e in EPISODES) + " | P(better) after 1 | after 2 |"]
        lines += ["|---" * (len(EPISODES) + 3) + "|"]
        for method in [m for m in methods if m != "embedded"]:
            first, second = results.pair(family, "embedded", method)
            if len(first) == 0:
                # No seed has both yet.
                continue
            cells = [str(paired_difference(first[..., e], second[..., e])) for e in EPISODES]
            cells += [str(estimate(probability_of_improvement, first[..., e], second[..., e])) for e in (0, 1)]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    if family == "hiv":
        logs = {m: results.table(family, m, "log_score") for m in methods}
        text = ", ".join(f"{m} {logs[m][..., 0].mean():.2f} and {logs[m][..., 1].mean():.2f}" for m in methods)
        lines += ["", f"Scores of log10 returns after one and two episodes: {text}."]
    seconds = {m: float(np.median(results.table(family, m, "seconds").sum(axis=-1))) for m in methods}
    lines += [
        "",
        "Median seconds per cell (one core): " + ", ".join(f"{m} {s:.0f}" for m, s in seconds.items()) + ".",
        "",
    ]
    return lines + first_episode_tables(results, family)


def first_episode_tables(results: Results, family: str) -> list[str]:
    """Scores of the learning episodes, for methods that have a policy before the first, and for two others."""
    methods = [m for m in FIRST if m in results.methods(family)]
    if "amortised" not in methods:
        return []
    lines = ["Learning episodes, exploration included (mean score):", ""]
    lines += ["| method | seeds | " + " | ".join(f"episode {e + 1}" for e in FIRST_EPISODES) + " | IQM of episode 1 |"]
    lines += ["|---" * (len(FIRST_EPISODES) + 3) + "|"]
    for method in methods:
        table = results.table(family, method, "learning_score")
        cells = [str(estimate(mean, table[..., e])) for e in FIRST_EPISODES]
        cells.append(f"{interquartile_mean(table[..., 0]):.3f}")
        lines.append(f"| {method} | {len(table)} | " + " | ".join(cells) + " |")
    lines += ["", "Amortised and refined minus the other, run by run, over the seeds that both have:", ""]
    lines += ["| pair | seeds | " + " | ".join(f"episode {e + 1}" for e in FIRST_EPISODES) + " |"]
    lines += ["|---" * (len(FIRST_EPISODES) + 2) + "|"]
    for ours in ("amortised", "refined"):
        for theirs in ("blind", "embedded"):
            if {ours, theirs} <= set(methods):
                first, second = results.pair(family, ours, theirs, "learning_score")
                if len(first):
                    cells = [str(paired_difference(first[..., e], second[..., e])) for e in FIRST_EPISODES]
                    lines.append(f"| {ours} − {theirs} | {len(first)} | " + " | ".join(cells) + " |")
    return [*lines, ""]


if __name__ == "__main__":
    results = read_results(STUDY).of_length(long=False)
    order = [f for f in ("grid", "acrobot", "acrobot-sd0.25", "hiv") if f in results.names("family")]
    text = "\n".join(line for family in order for line in family_tables(results, family))
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
    print(text)
