"""Transitions as Parquet: one column per state dimension, the specification in the file's metadata."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hipmdp.data.checkpoint import DAMAGE
from hipmdp.data.digest import load_table, save_table
from hipmdp.data.transitions import COLUMNS, Transitions
from hipmdp.families.specification import Specification

SCHEMA = 2
"""Raised when a file of this version could not be read by an earlier one."""
_KEY = b"hipmdp.transitions"


def save_transitions(transitions: Transitions, path: str | Path) -> None:
    """Write a log, whole or not at all."""
    path = Path(path)
    names = transitions.specification.state_names
    columns: dict[str, Any] = {}
    for column in COLUMNS:
        values = getattr(transitions, column)
        if column in ("state", "next_state"):
            for d, name in enumerate(names):
                columns[f"{column}.{name}"] = np.ascontiguousarray(values[:, d])
        else:
            columns[column] = values
    header = {
        "schema": SCHEMA,
        "specification": transitions.specification.to_dict(),
        "thetas": {str(i): theta for i, theta in transitions.thetas.items()},
        "names": {str(i): name for i, name in transitions.names.items()},
    }
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(header).encode()})
    save_table(path, table)


def is_batch(path: str | Path) -> bool:
    """Whether it is a Parquet file that `save_transitions` wrote, whole or damaged."""
    try:
        return _KEY in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def load_transitions(path: str | Path, remedy: str = "") -> Transitions:
    """Read a log that `save_transitions` wrote; anything else is a `ValueError` that says what is wrong.

    `remedy` is what the user can do about a damaged file, where that is known.
    """
    path = Path(path)
    table = load_table(path, remedy)
    raw = (table.schema.metadata or {}).get(_KEY)
    if raw is None:
        raise ValueError(f"{str(path)!r} is Parquet, but was not written by hipmdp: it carries no specification.")
    try:
        header = json.loads(raw)
        schema = int(header["schema"])
    except DAMAGE:
        raise ValueError(f"The header of {str(path)!r} is damaged.") from None
    if schema > SCHEMA:
        raise ValueError(f"{str(path)!r} has schema {schema}; this hipmdp reads {SCHEMA}: install a newer hipmdp.")
    try:
        specification = Specification.from_dict(header["specification"])
        thetas = {int(i): theta for i, theta in header["thetas"].items()}
        names = {int(i): str(name) for i, name in header["names"].items()}
    except DAMAGE:
        raise ValueError(f"The header of {str(path)!r} is damaged.") from None
    columns: dict[str, Any] = {}
    for column in COLUMNS:
        parts = (
            [f"{column}.{name}" for name in specification.state_names]
            if column in ("state", "next_state")
            else [column]
        )
        for part in parts:
            if part not in table.column_names:
                raise ValueError(f"{str(path)!r} lacks the column {part!r}.")
        arrays = [table.column(part).to_numpy() for part in parts]
        columns[column] = np.stack(arrays, axis=1) if column in ("state", "next_state") else arrays[0]
    return Transitions(specification, columns, thetas, names)
