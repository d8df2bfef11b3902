"""All cells of a study as tables, with scores."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from hipmdp._files import atomic_write
from hipmdp.adaptation.methods import METHODS
from hipmdp.data.digest import save_table
from hipmdp.families.specification import FamilyFacts
from hipmdp.study.cells.files import cell_paths, packed_paths, read_records
from hipmdp.study.cells.record import KEY, METRICS, CellRecord, Reference, identical
from hipmdp.study.setup import PLAIN

LONG = 50
"""A cell with more episodes than this is part of a long run (Figure 8)."""
SCORES = ("score", "learning_score", "log_score")
"""What is computed from the returns of a cell."""


@dataclass(frozen=True)
class Results:
    """The cells that are done."""

    records: list[CellRecord]

    @cached_property
    def references(self) -> dict[tuple[str, str], Reference | None]:
        """What returns are compared with, by family and instance: the best return that any of its cells knows."""
        found: dict[tuple[str, str], Reference | None] = {}
        for record in self.records:
            place, known = (record.key["family"], record.key["instance"]), record.reference
            before = found.get(place)
            if before is None or (known is not None and known.best_known > before.best_known):
                found[place] = known
        return found

    def measure(self, family: str) -> str:
        """What "score" means for a family: "score"; "return" where no best returns are known."""
        found = [reference for (name, _), reference in self.references.items() if name == family]
        return "return" if None in found else "score"

    def family_facts(self, family: str) -> FamilyFacts:
        """What is known of a family."""
        return self.select(family=family)[0].family_facts

    def names(self, part: str, **where: Any) -> list[Any]:
        """All values of a part of the key among the cells that match, in the order in which they first come."""
        return list(dict.fromkeys(r.key[part] for r in self.select(**where)))

    def select(self, **where: Any) -> list[CellRecord]:
        """The cells that match."""
        return [r for r in self.records if all(r.key[name] == value for name, value in where.items())]

    def methods(self, family: str, variant: str = PLAIN) -> list[str]:
        """The methods whose cells are complete for at least one seed, in our usual order."""
        present = in_order(self.names("method", family=family, variant=variant))
        return [m for m in present if self.table(family, m, "score", variant).size]

    def values(self, record: CellRecord, what: str) -> np.ndarray:
        """`score`, `learning_score`, `log_score`, or one of the record's metrics, of every episode.

        Where no best return is known, a score is the return itself.
        """
        if what not in SCORES:
            return record.metrics[what]
        returns = record.metrics["learning_returns" if what == "learning_score" else "returns"]
        reference = self.references[record.key["family"], record.key["instance"]]
        if what == "log_score":
            return np.full(len(returns), np.nan) if reference is None else reference.log_score(returns)
        return returns if reference is None else reference.score(returns)

    def seeds(self, family: str, method: str, variant: str = PLAIN) -> list[int]:
        """The seeds for which a method has a cell on every instance that any method has one on."""
        instances = set(self.names("instance", family=family, variant=variant))
        done: dict[int, set[str]] = {}
        for record in self.select(family=family, method=method, variant=variant):
            done.setdefault(record.key["seed"], set()).add(record.key["instance"])
        return sorted(seed for seed, mine in done.items() if mine == instances)

    def incomplete(self, family: str, variant: str = PLAIN) -> dict[str, int]:
        """How many cells of each method are there, but in no table, as their seed lacks other cells."""
        left = {}
        for method in self.names("method", family=family, variant=variant):
            complete = self.seeds(family, method, variant)
            cells = self.select(family=family, method=method, variant=variant)
            left[method] = sum(r.key["seed"] not in complete for r in cells)
        return {method: count for method, count in left.items() if count}

    def table(
        self, family: str, method: str, what: str = "score", variant: str = PLAIN, seeds: list[int] | None = None
    ) -> np.ndarray:
        """(seeds, instances, episodes) of one method, over `seeds`, or all that are complete."""
        records = self.select(family=family, method=method, variant=variant)
        found = {(r.key["seed"], r.key["instance"]): r for r in records}
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
        return Results([r for r in self.records if (r.episodes > LONG) == long])

    def write(self, directory: Path) -> tuple[Path, Path]:
        """All episodes as results.parquet and results.csv, one row each."""
        columns: dict[str, list[Any]] = {name: [] for name in (*KEY, "episode", *METRICS, *SCORES)}
        for record in self.records:
            for name in KEY:
                columns[name] += [record.key[name]] * record.episodes
            columns["episode"] += list(range(record.episodes))
            for name in (*METRICS, *SCORES):
                columns[name] += self.values(record, name).tolist()
        table = pa.table(columns)
        paths = directory / "results.parquet", directory / "results.csv"
        save_table(paths[0], table)
        with atomic_write(paths[1]) as temporary:
            pc.write_csv(table, temporary)
        return paths


def in_order(methods: list[str]) -> list[str]:
    """Methods in our usual order, others behind them."""
    return [m for m in METHODS if m in methods] + [m for m in methods if m not in METHODS]


def read_results(*directories: Path) -> Results:
    """Every cell of one or several studies, packed or not. The family of a cell is not made: its facts are stored."""
    records: list[CellRecord] = []
    seen: set[tuple[Any, ...]] = set()
    for directory in directories:
        found = read_study(directory)
        for record in found:
            name = (*record.name, record.episodes > LONG)
            if name in seen:
                raise ValueError(f"Two of these studies hold {_words(record)}: report them one by one.")
            seen.add(name)
        records += found
    if not records:
        raise ValueError(f"There are no finished cells in {', '.join(map(str, directories))}: run `hipmdp compare`.")
    return Results(records)


def read_study(directory: Path) -> list[CellRecord]:
    """The cells of one study, each once; two that differ in the same place are a `ValueError`."""
    if not directory.is_dir():
        raise ValueError(f"There is no directory {str(directory)!r}: give one that `hipmdp compare` wrote.")
    # Cells first: one that is packed meanwhile is in the packed file.
    loose = [record for path in cell_paths(directory) for record in _read_if_there(path)]
    packed = [record for path in packed_paths(directory) for record in read_records(path)]
    found: dict[tuple[Any, ...], CellRecord] = {}
    for record in [*packed, *loose]:
        before = found.setdefault(record.name, record)
        if before is not record and not identical(before, record):
            raise ValueError(
                f"Two files of {str(directory)!r} hold {_words(record)} with different content: remove one of them."
            )
    return sorted(found.values(), key=_place)


def _read_if_there(path: Path) -> list[CellRecord]:
    try:
        return read_records(path)
    except ValueError:
        if not path.exists():
            return []
        raise


def _words(record: CellRecord) -> str:
    return " ".join(map(str, record.name))


def _place(record: CellRecord) -> tuple[Any, ...]:
    """By family, method and variant, test2 before test10, then by seed."""
    kind, _, number = record.key["instance"].partition(":")
    place = int(number) if number.isascii() and number.isdigit() else 0
    return (*record.name[:3], kind, place, number, record.key["seed"])
