"""Any log file as a table of columns: Parquet, CSV, NPZ. Reading never runs code from the file."""

import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".csv", ".npz")


def read_table(path: str | Path) -> pa.Table:
    """The file as a table; one that cannot be read is a `ValueError` that says why."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    readers = {".parquet": _read_parquet, ".csv": _read_csv, ".npz": _read_npz}
    if path.suffix.lower() not in readers:
        raise ValueError(f"Logs are {', '.join(SUFFIXES)} files (or minari:NAME), which {str(path)!r} is not.")
    table = readers[path.suffix.lower()](path)
    repeated = [name for name in table.column_names if table.column_names.count(name) > 1]
    if repeated:
        raise ValueError(f"{str(path)!r} has two columns {repeated[0]!r}: each needs a name of its own.")
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    return table


def _unreadable(path: Path, kind: str, error: Exception) -> ValueError:
    reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
    return ValueError(f"{str(path)!r} is not a readable {kind} file: {reason}.")


def _read_parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, "Parquet", error) from None


def _read_csv(path: Path) -> pa.Table:
    try:
        # Empty text is a missing value, whatever the column holds.
        return pc.read_csv(path, convert_options=pc.ConvertOptions(strings_can_be_null=True))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, "CSV", error) from None


def _read_npz(path: Path) -> pa.Table:
    """One array per column; a two-dimensional array `x` gives the columns `x.0`, `x.1`, …."""
    columns: dict[str, pa.Array] = {}
    try:
        # Opened here, because NumPy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                array = np.asarray(arrays[name])
                if array.ndim == 1:
                    columns[name] = pa.array(array)
                elif array.ndim == 2:
                    columns |= {f"{name}.{i}": pa.array(np.ascontiguousarray(array[:, i])) for i in range(len(array.T))}
                else:
                    raise ValueError(f"array {name!r} has {array.ndim} dimensions, a column one or two")
    except (
        OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, SyntaxError,
        MemoryError, OverflowError, zipfile.BadZipFile, zlib.error, pa.ArrowException,
    ) as error:  # fmt: skip
        raise _unreadable(path, "NPZ", error) from None
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"The arrays of {str(path)!r} must have one length, got {sorted(lengths)}.")
    return pa.table(columns)
