"""Files of records: a Parquet file with one row per cell. A cell's own file has one row, a packed file has many."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hipmdp.data.checkpoint import DAMAGE
from hipmdp.data.digest import load_table, save_table
from hipmdp.study.cells.record import KEY, METRICS, CellRecord, check_record

SCHEMA_KEY = b"hipmdp.cells"
SCHEMA = 3
"""Raised when a file of this version could not be read by an earlier one."""
PACKED = "packed"
"""The folder of a study that holds its packed files."""
REMEDY = "; `hipmdp compare … --repair` makes it again"
"""What to do about a cell that is damaged."""
RESTORE = "; put a copy back, or `hipmdp compare … --repair` sets it aside and makes its cells again"
"""What to do about a packed file that is damaged."""
COLUMNS = pa.schema(
    [
        *((name, pa.int64() if name == "seed" else pa.string()) for name in KEY),
        *((name, pa.list_(pa.float64())) for name in METRICS),
        ("latents", pa.list_(pa.list_(pa.float32()))),
        ("states", pa.list_(pa.list_(pa.float32()))),
        ("actions", pa.list_(pa.int32())),
        ("metadata", pa.string()),
    ],
    metadata={SCHEMA_KEY: str(SCHEMA).encode()},
)


def write_records(path: Path, records: Sequence[CellRecord]) -> None:
    """Write records to a file, whole or not at all."""
    rows: dict[str, list[Any]] = {name: [r.key[name] for r in records] for name in KEY}
    rows |= {name: [r.metrics[name] for r in records] for name in METRICS}
    rows["latents"] = [r.latents for r in records]
    rows["states"] = [list(r.states) for r in records]
    rows["actions"] = [r.actions for r in records]
    rows["metadata"] = [json.dumps(r.metadata) for r in records]
    arrays = [pa.array(rows[column.name], column.type) for column in COLUMNS]
    save_table(path, pa.Table.from_arrays(arrays, schema=COLUMNS))


def read_records(path: Path, remedy: str | None = None) -> list[CellRecord]:
    """Read what `write_records` wrote; anything else is a `ValueError` that says what to do."""
    if remedy is None:
        remedy = RESTORE if path.parent.name == PACKED else REMEDY
    table = load_table(path, remedy)
    try:
        if int((table.schema.metadata or {})[SCHEMA_KEY]) != SCHEMA or not table.schema.equals(COLUMNS):
            raise ValueError
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        return [_record(columns, row) for row in range(len(table))]
    except (pa.ArrowException, *DAMAGE):
        raise ValueError(f"{str(path)!r} is not a cell of a study that this hipmdp can read{remedy}.") from None


def _record(columns: dict[str, Any], row: int) -> CellRecord:
    def array(name: str) -> np.ndarray:
        return columns[name][row].values.to_numpy(zero_copy_only=False)

    latents = [None if latent.values is None else latent.values.to_numpy() for latent in columns["latents"][row].values]
    states = columns["states"][row].values
    record = CellRecord(
        {name: columns[name][row].as_py() for name in KEY},
        {name: array(name) for name in METRICS},
        latents,
        states.flatten().to_numpy().reshape(len(states), -1),
        array("actions"),
        json.loads(columns["metadata"][row].as_py()),
    )
    check_record(record)
    return record


def cell_paths(directory: Path) -> list[Path]:
    """The files of cells that are not packed, in the order of their numbers."""
    paths = sorted((directory / "cells").rglob("*.parquet"), key=_by_number)
    return [path for path in paths if not path.name.startswith(".")]


def packed_paths(directory: Path) -> list[Path]:
    """The packed files of a study."""
    return [path for path in sorted((directory / PACKED).glob("*.parquet")) if not path.name.startswith(".")]


def _by_number(path: Path) -> tuple[Any, ...]:
    """test2 before test10."""
    digits = "".join(c if c.isdecimal() else " " for c in path.stem).split()
    return (*path.parent.parts, *(int(d) for d in digits))
