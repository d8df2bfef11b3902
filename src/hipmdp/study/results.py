"""All cells of a study as one table, with scores."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from hipmdp.data.files import whole_file
from hipmdp.families import make
from hipmdp.families.family import AbstractFamily
from hipmdp.families.instance_sets import Instance, frozen_instance, unscored
from hipmdp.study.record import NUMBERS, Record, read_record
from hipmdp.study.setup import PLAIN
from hipmdp.transfer.methods import METHODS

LONG = 50
"""A cell with more episodes than this is part of a long run (Figure 8)."""
FACTS = ("family", "method", "variant", "instance", "seed")


@dataclass(frozen=True)
class Results:
    """The cells that are done."""

    records: list[Record]

    @cached_property
    def known(self) -> dict[tuple[str, str], Instance]:
        """The frozen instances met, by family and label; of a family of users' own only the label is needed."""
        return {(r.facts["family"], r.facts["instance"]): self._instance(r) for r in self.records}

    def _instance(self, record: Record) -> Instance:
        own = ":" in record.about["settings"]["setup"]["family"]
        label = record.facts["instance"]
        return unscored(label) if own else frozen_instance(self.family(record), label)

    def measure(self, family: str) -> str:
        """What "score" means for a family: "score"; "return" where no best returns are known."""
        known = [instance for (name, _), instance in self.known.items() if name == family]
        return "score" if all(instance.is_scored for instance in known) else "return"

    def family(self, record: Record) -> AbstractFamily:
        """The family of a cell."""
        setup = record.about["settings"]["setup"]
        return make(setup["family"], **dict(setup["options"]))

    def names(self, fact: str, **where: Any) -> list[Any]:
        """All values of a fact among the cells that match, in the order in which they first come."""
        return list(dict.fromkeys(r.facts[fact] for r in self.select(**where)))

    def select(self, **where: Any) -> list[Record]:
        """The cells that match."""
        return [r for r in self.records if all(r.facts[name] == value for name, value in where.items())]

    def methods(self, family: str, variant: str = PLAIN) -> list[str]:
        """The methods whose cells are whole for at least one seed, in our usual order."""
        present = self.names("method", family=family, variant=variant)
        ordered = [m for m in METHODS if m in present] + [m for m in present if m not in METHODS]
        return [m for m in ordered if self.table(family, m, "score", variant).size]

    def scores(self, record: Record, column: str = "greedy_return") -> np.ndarray:
        """(R − R_random) / (R_best_known − R_random) of every episode; R where no best is known."""
        instance = self.known[record.facts["family"], record.facts["instance"]]
        if not instance.is_scored:
            return record.numbers[column]
        return (record.numbers[column] - instance.random) / (instance.best_known - instance.random)

    def log_scores(self, record: Record) -> np.ndarray:
        """The same of log10 returns: HIV's span powers of ten. NaN where random returns are negative or unknown."""
        instance = self.known[record.facts["family"], record.facts["instance"]]
        returns = record.numbers["greedy_return"]
        if not instance.random > 1:
            return np.full(len(returns), np.nan)
        low, high = np.log10(instance.random), np.log10(instance.best_known)
        return (np.log10(np.maximum(1.0, returns)) - low) / (high - low)

    def values(self, record: Record, what: str) -> np.ndarray:
        """`score`, `learning_score`, `log_score`, or one of the record's numbers, of every episode."""
        if what == "score":
            return self.scores(record)
        if what == "learning_score":
            return self.scores(record, "learning_return")
        return self.log_scores(record) if what == "log_score" else record.numbers[what]

    def seeds(self, family: str, method: str, variant: str = PLAIN) -> list[int]:
        """The seeds with which a method has met every instance that anybody met."""
        instances = set(self.names("instance", family=family, variant=variant))
        met: dict[int, set[str]] = {}
        for record in self.select(family=family, method=method, variant=variant):
            met.setdefault(record.facts["seed"], set()).add(record.facts["instance"])
        return sorted(seed for seed, mine in met.items() if mine == instances)

    def incomplete(self, family: str, variant: str = PLAIN) -> dict[str, int]:
        """How many cells of each method are there, but in no table, as their seed lacks other cells."""
        left = {}
        for method in self.names("method", family=family, variant=variant):
            whole = self.seeds(family, method, variant)
            cells = self.select(family=family, method=method, variant=variant)
            left[method] = sum(r.facts["seed"] not in whole for r in cells)
        return {method: count for method, count in left.items() if count}

    def table(
        self, family: str, method: str, what: str = "score", variant: str = PLAIN, seeds: list[int] | None = None
    ) -> np.ndarray:
        """(seeds, instances, episodes) of one method, over `seeds`, or all that have met every instance."""
        records = self.select(family=family, method=method, variant=variant)
        found = {(r.facts["seed"], r.facts["instance"]): r for r in records}
        instances = self.names("instance", family=family, variant=variant)
        chosen = self.seeds(family, method, variant) if seeds is None else seeds
        rows = [[self.values(found[seed, instance], what) for instance in instances] for seed in chosen]
        return np.asarray(rows, np.float64)

    def pair(
        self, family: str, first: str, second: str, what: str = "score", variant: str = PLAIN
    ) -> tuple[np.ndarray, np.ndarray]:
        """The tables of two methods over the seeds that both have: row by row the same batch."""
        both = sorted({*self.seeds(family, first, variant)} & {*self.seeds(family, second, variant)})
        ours, theirs = (self.table(family, method, what, variant, both) for method in (first, second))
        return ours, theirs

    def of_length(self, *, long: bool) -> "Results":
        """The cells of long runs, or the others: they are never put into one table."""
        return Results([r for r in self.records if (len(r.numbers["seconds"]) > LONG) == long])

    def write(self, directory: Path) -> tuple[Path, Path]:
        """All rows as results.parquet and results.csv."""
        columns: dict[str, list[Any]] = {
            name: [] for name in (*FACTS, "episode", *NUMBERS, "score", "learning_score", "log_score")
        }
        for record in self.records:
            count = len(record.numbers["greedy_return"])
            for name in FACTS:
                columns[name] += [record.facts[name]] * count
            columns["episode"] += list(range(count))
            for name in (*NUMBERS, "score", "learning_score", "log_score"):
                columns[name] += self.values(record, name).tolist()
        table = pa.table(columns)
        paths = directory / "results.parquet", directory / "results.csv"
        with whole_file(paths[0]) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        with whole_file(paths[1]) as temporary:
            pc.write_csv(table, temporary)
        return paths


def read_results(*directories: Path) -> Results:
    """Every cell below the directories of one or several studies."""
    records = []
    for directory in directories:
        if not directory.is_dir():
            raise ValueError(f"There is no directory {str(directory)!r}: give one that `hipmdp compare` wrote.")
        paths = sorted((directory / "cells").rglob("*.parquet"), key=_by_number)
        records += [read_record(path) for path in paths if not path.name.startswith(".")]
    seen: set[tuple[Any, ...]] = set()
    for record in records:
        name = (*(record.facts[fact] for fact in FACTS), len(record.numbers["seconds"]) > LONG)
        if name in seen:
            raise ValueError(f"Two of these studies hold {' '.join(map(str, name[:-1]))}: report them one by one.")
        seen.add(name)
    if not records:
        raise ValueError(f"There are no finished cells in {', '.join(map(str, directories))}: run `hipmdp compare`.")
    return Results(records)


def _by_number(path: Path) -> tuple[Any, ...]:
    """test2 before test10."""
    digits = "".join(c if c.isdigit() else " " for c in path.stem).split()
    return (*path.parent.parts, *(int(d) for d in digits))
