"""What a study says: for every method and episode its score with an interval, and how it compares with embedded."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from rich import box
from rich.table import Table

from hipmdp._files import atomic_write
from hipmdp._tables import plain_table
from hipmdp.study.results import Results
from hipmdp.study.statistics import (
    Estimate,
    estimate,
    interquartile_mean,
    mean,
    paired_difference,
    probability_of_improvement,
)

REFERENCE = "embedded"
WHAT = ("score", "log_score", "success", "learning_score")
SHOWN = (0, 1, 3, 9)
"""Episodes in the printed table."""
NAMES = ("method", "variant")
"""Its columns of names."""


def summary_rows(results: Results) -> list[dict[str, Any]]:
    """One row per family, variant, method, quantity and episode, over the seeds that have a cell on every instance."""
    rows = []
    for family in results.names("family"):
        for variant in results.names("variant", family=family):
            for method in results.methods(family, variant):
                for what in WHAT:
                    rows += _rows_of(results, family, variant, method, what)
    return rows


def _rows_of(results: Results, family: str, variant: str, method: str, what: str) -> list[dict[str, Any]]:
    table = results.table(family, method, what, variant)
    ours, theirs = results.pair(family, REFERENCE, method, what, variant)
    rows = []
    for episode in range(table.shape[-1] if np.isfinite(table).all() else 0):
        now = table[..., episode]
        row: dict[str, Any] = {
            "family": family, "variant": variant, "method": method, "what": what, "episode": episode,
            "seeds": table.shape[0], "instances": table.shape[1],
        }  # fmt: skip
        for name, statistic in (("mean", mean), ("iqm", interquartile_mean)):
            row |= _columns(name, estimate(statistic, now))
        row |= _columns("mean_by_seed", estimate(mean, now, whole_seeds=True))
        if method != REFERENCE and len(ours):
            pair = ours[..., episode], theirs[..., episode]
            row |= _columns("embedded_minus_this", paired_difference(*pair))
            row |= _columns("embedded_minus_this_by_seed", paired_difference(*pair, whole_seeds=True))
            row |= _columns("embedded_better", estimate(probability_of_improvement, *pair))
        rows.append(row)
    return rows


def _columns(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def write_summary(results: Results, directory: Path) -> Path:
    """summary.csv."""
    rows = summary_rows(results)
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: pa.array([row.get(name) for row in rows], from_pandas=True) for name in names})
    path = directory / "summary.csv"
    with atomic_write(path) as temporary:
        pc.write_csv(table, temporary)
    return path


def summary_table(results: Results, family: str) -> Table:
    """Mean scores (returns, where no best one is known) of greedy episodes after some episodes, for reading."""
    measure = results.measure(family)
    title = f"{family}: {measure} after so many episodes, mean and 95 % interval"
    several = len(results.names("variant", family=family)) > 1
    length = max(record.episodes for record in results.select(family=family))
    shown = [e for e in SHOWN if e < length]
    columns = [*NAMES[: 1 + several], *(str(episode + 1) for episode in shown), "success", "s"]
    rows = []
    for variant in results.names("variant", family=family):
        for method in results.methods(family, variant):
            scores = results.table(family, method, "score", variant)
            success = results.table(family, method, "success", variant)[..., -1].mean()
            seconds = np.median(results.table(family, method, "seconds", variant).sum(axis=-1))
            estimates = [estimate(mean, scores[..., episode]) for episode in shown]
            cells = [_cell(e, ".2f" if measure == "score" else ".4g") for e in estimates]
            names = [method, variant] if several else [method]
            rows.append([*names, *cells, f"{success:.0%}", f"{seconds:.0f}"])
    return plain_table(
        title, columns, rows, caption=_caption(results, family), left=NAMES, no_wrap=NAMES, box=box.SIMPLE_HEAD,
        pad_edge=False,
    )  # fmt: skip


def _cell(found: Estimate, digits: str) -> str:
    value, low, high = (format(v, digits) for v in (found.value, found.low, found.high))
    return value if np.isnan(found.low) else f"{value}\n{low}…{high}"


def _caption(results: Results, family: str) -> str:
    variants = results.names("variant", family=family)
    sizes = sorted(
        {results.table(family, m, "score", v).shape[:2] for v in variants for m in results.methods(family, v)}
    )
    runs = "; ".join(f"{seeds} seeds × {instances} instances" for seeds, instances in sizes)
    left = [f"{m} {n}" for variant in variants for m, n in results.incomplete(family, variant).items()]
    missing = f" Left out, as their seeds lack cells: {', '.join(left)}." if left else ""
    scale = " Score 1: the best return known, 0: random." if results.measure(family) == "score" else ""
    success = results.family_facts(family).success
    return f"{runs}.{missing}{scale} success: {success}, at the end; s: seconds per cell"
