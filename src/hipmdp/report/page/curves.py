"""The learning curves of a family, as groups of series that may stand in one chart, and the table of its scores."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hipmdp.report.curves import SMOOTH
from hipmdp.study.results import Results, in_order
from hipmdp.study.setup import PLAIN
from hipmdp.study.statistics import estimate, mean
from hipmdp.study.summary import SHOWN

SCORES = {
    "score": "score of the greedy policy",
    "log_score": "score of log10 returns, greedy policy",
    "success": "success of the greedy policy",
    "learning_score": "score of the learning episode",
}
"""What a chart may show of a family with frozen instances. Score 1: the best return known, 0: random."""
RETURNS = {
    "returns": "return of the greedy policy",
    "success": "success of the greedy policy",
    "learning_returns": "return of the learning episode",
}
"""The same for a family whose best returns are not known."""
ERROR = "model_error"


@dataclass(frozen=True)
class Family:
    """The cells of one family."""

    name: str
    results: Results

    @cached_property
    def measures(self) -> dict[str, str]:
        """`SCORES` where the returns can be scored, otherwise `RETURNS`."""
        kinds = SCORES if self.results.measure(self.name) == "score" else RETURNS
        return kinds | {"success": f"{kinds['success']}: {self.results.family_facts(self.name).success}"}

    @property
    def main_measure(self) -> str:
        """The first of the measures."""
        return next(iter(self.measures))

    def short(self) -> "Family":
        """Without the long runs."""
        return Family(self.name, self.results.of_length(long=False))


def groups(family: Family) -> list[dict[str, Any]]:
    """Series that belong together: all methods, the ablations, the long runs; each only if it is there."""
    short = family.short()
    long = Family(family.name, family.results.of_length(long=True))
    made = [
        _group("all methods", short, [PLAIN]),
        _ablations(short),
        _group("long runs", long, long.results.names("variant"), smooth=SMOOTH),
    ]
    return [group for group in made if group["series"] or group["left_out"]]


def summary(family: Family) -> dict[str, Any]:
    """After some episodes: mean and 95 % interval of the main measure, by method, as `hipmdp report` prints it."""
    short = family.short()
    rows = []
    length = max((record.episodes for record in short.results.records), default=0)
    shown = [episode for episode in SHOWN if episode < length]
    for method, variant in _complete(short, short.results.names("variant")):
        table = short.results.table(family.name, method, family.main_measure, variant)
        seconds = short.results.table(family.name, method, "seconds", variant).sum(axis=-1)
        found = [estimate(mean, table[..., e]) if e < table.shape[-1] else None for e in shown]
        rows.append(
            {
                "method": method,
                "variant": variant,
                "seeds": table.shape[0],
                "instances": table.shape[1],
                "values": [e and [e.value, e.low, e.high] for e in found],
                "success": short.results.table(family.name, method, "success", variant)[..., -1].mean(),
                "seconds": np.median(seconds),
            }
        )
    return {"measure": family.main_measure, "after": [e + 1 for e in shown], "rows": rows}


def _ablations(family: Family) -> dict[str, Any]:
    """Variants beside the plain one, over the instances and seeds that all variants of that method have."""
    records = []
    variants = [variant for variant in family.results.names("variant") if variant != PLAIN]
    for method in dict.fromkeys(m for v in variants for m in family.results.names("method", variant=v)):
        mine = family.results.select(method=method)
        done: dict[str, set[tuple[str, int]]] = {}
        for record in mine:
            done.setdefault(record.key["variant"], set()).add((record.key["instance"], record.key["seed"]))
        shared = set.intersection(*done.values())
        records += [r for r in mine if (r.key["instance"], r.key["seed"]) in shared]
    ablated = Family(family.name, Results(records))
    return _group("ablations", ablated, ablated.results.names("variant"))


def _group(name: str, family: Family, variants: list[str], smooth: int = 1) -> dict[str, Any]:
    left = {
        _label(method, variant): count
        for variant in variants
        for method, count in family.results.incomplete(family.name, variant).items()
    }
    return {
        "name": name,
        "smooth": smooth,
        "series": [_series(family, method, variant, smooth) for method, variant in _complete(family, variants)],
        "left_out": left,
    }


def _series(family: Family, method: str, variant: str, smooth: int) -> dict[str, Any]:
    tables = {what: family.results.table(family.name, method, what, variant) for what in (*family.measures, ERROR)}
    seeds, instances = tables[ERROR].shape[:2]
    return {
        "name": _label(method, variant),
        "method": method,
        "variant": variant,
        "seeds": seeds,
        "instances": instances,
        "curves": {what: _curve(table, smooth) for what, table in tables.items() if np.isfinite(table).all()},
    }


def _curve(table: np.ndarray, smooth: int) -> dict[str, Any]:
    """Mean and 95 % interval at every episode; long runs are running means, as in the paper's Figure 8."""
    if smooth > 1:
        windows = np.lib.stride_tricks.sliding_window_view(table, min(smooth, table.shape[-1]), axis=-1)
        table = windows.mean(axis=-1)
    found = [estimate(mean, table[..., episode]) for episode in range(table.shape[-1])]
    return {
        "first": smooth,
        "mean": [e.value for e in found],
        "low": [e.low for e in found],
        "high": [e.high for e in found],
    }


def _complete(family: Family, variants: list[str]) -> list[tuple[str, str]]:
    """Methods and variants that have a seed with a cell on every instance, in our usual order."""
    found = []
    for variant in variants:
        ordered = in_order(family.results.names("method", variant=variant))
        found += [(m, variant) for m in ordered if family.results.seeds(family.name, m, variant)]
    return found


def _label(method: str, variant: str) -> str:
    name = method.replace("_", "-")
    return name if variant == PLAIN else f"{name}, {variant}"
