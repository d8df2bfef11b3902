"""Any log file as a table of columns: Parquet, CSV, NPZ. Reading never runs code from the file."""

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hipmdp.data.logs.csv_files import read_csv

SUFFIXES = (".parquet", ".csv", ".npz")
MAGIC = {
    b"PAR1": "a Parquet file",
    b"PK\x03\x04": "a zip archive (NPZ, or a spreadsheet)",
    b"\x1f\x8b": "compressed with gzip: unpack it first",
    b"BZh": "compressed with bzip2: unpack it first",
    b"\xfd7zXZ": "compressed with xz: unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"\x93NUMPY": "one NumPy array: save columns with np.savez",
    b"ARROW1": "an Arrow file: write it as Parquet",
    b"\x89HDF": "an HDF5 file: write its columns as Parquet or CSV",
    b"SQLite format 3": "an SQLite database: write its table as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save it as CSV",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}
"""What a file is by its first bytes, whatever its name says."""
_FIRST = {".parquet": (b"PAR1",), ".npz": (b"PK\x03\x04", b"PK\x05\x06"), ".csv": ()}

Choose = Callable[[list[str]], list[str]]
"""From the columns that a file has to those that are read."""


def read_table(path: str | Path, choose: Choose | None = None) -> pa.Table:
    """The file's columns, all or those that are chosen; one that cannot be read is a `ValueError` that says why.

    Columns of a CSV are text, as written: what they mean is decided by their role.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    readers = {".parquet": _read_parquet, ".csv": read_csv, ".npz": _read_npz}
    kind = path.suffix.lower()
    if kind not in readers:
        raise ValueError(f"Logs are {', '.join(SUFFIXES)} files (or minari:NAME), which {str(path)!r} is not.")
    try:
        _check_kind(path, kind)
        table = readers[kind](path, choose or _all(path))
    except OSError as error:
        raise ValueError(f"Cannot read {str(path)!r}: {error.strerror or 'it is damaged or cut off'}.") from None
    if table.num_rows == 0:
        raise ValueError(f"{str(path)!r} has no rows.")
    return table


def _all(path: Path) -> Choose:
    def choose(names: list[str]) -> list[str]:
        repeated = [name for name in names if names.count(name) > 1]
        if repeated:
            raise ValueError(f"{str(path)!r} has two columns {repeated[0]!r}: each needs a name of its own.")
        return names

    return choose


def _check_kind(path: Path, kind: str) -> None:
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise ValueError(f"{str(path)!r} is empty.")
    if head.startswith(_FIRST[kind]) if _FIRST[kind] else not head.startswith(tuple(MAGIC)):
        return
    found = next((what for magic, what in MAGIC.items() if head.startswith(magic)), "something else")
    named = {".parquet": "Parquet", ".npz": "NPZ", ".csv": "CSV"}[kind]
    raise ValueError(f"{str(path)!r} is not a readable {named} file: by its first bytes it is {found}.")


def _read_parquet(path: Path, choose: Choose) -> pa.Table:
    damaged = f"{str(path)!r} is not a readable Parquet file: it is damaged, cut off or encrypted."
    try:
        # A page that carries a checksum is compared with it.
        file = pq.ParquetFile(path, page_checksum_verification=True)
        names = list(file.schema_arrow.names)
    except (pa.ArrowException, OSError, ValueError):
        raise ValueError(damaged) from None
    with file:
        wanted = choose(names)
        try:
            # Of nested columns the reader would take whatever begins alike.
            return file.read(columns=wanted).select(wanted)
        except (pa.ArrowException, OSError, ValueError, KeyError):
            raise ValueError(damaged) from None


def _read_npz(path: Path, choose: Choose) -> pa.Table:
    """One array per column; a two-dimensional array `x` gives the columns `x.0`, `x.1`, …."""
    arrays = _arrays(path)
    columns: dict[str, np.ndarray] = {}
    names: list[str] = []
    for name, array in arrays.items():
        parts = [array] if array.ndim == 1 else list(array.T)
        labels = [name] if array.ndim == 1 else [f"{name}.{i}" for i in range(len(parts))]
        names += labels
        columns |= dict(zip(labels, parts, strict=True))
    wanted = choose(names)
    lengths = sorted({len(columns[name]) for name in wanted})
    if len(lengths) > 1:
        raise ValueError(f"The arrays of {str(path)!r} must have one length, got {lengths}.")
    return pa.table({name: _arrow(path, name, columns[name]) for name in wanted})


def _arrays(path: Path) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    try:
        # Opened here, because NumPy leaves a file open that it cannot read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                found[name] = np.asarray(arrays[name])
    except (
        OSError, EOFError, ValueError, KeyError, TypeError, RuntimeError, SyntaxError, AttributeError,
        MemoryError, OverflowError, NotImplementedError, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        objects = "allow_pickle" in str(error)
        reason = "an array holds Python objects, which are never loaded" if objects else "it is damaged or cut off"
        raise ValueError(f"{str(path)!r} is not a readable NPZ file: {reason}.") from None
    for name, array in found.items():
        if array.ndim not in (1, 2):
            raise ValueError(
                f"{str(path)!r} is not a readable NPZ file: array {name!r} has {array.ndim} dimensions, "
                "a column one or two."
            )
    return found


def _arrow(path: Path, name: str, array: np.ndarray) -> pa.Array:
    try:
        return pa.array(np.ascontiguousarray(array, array.dtype.newbyteorder("=")))
    except (pa.ArrowException, ValueError, TypeError):
        raise ValueError(f"Column {name!r} of {str(path)!r} must hold names or numbers, got {array.dtype}.") from None
