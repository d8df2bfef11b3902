"""Tables as Parquet files of our own, which notice when a bit of them flips.

Pages carry checksums, but the footer, with the schema and the metadata, has none. So the metadata holds a SHA-256 over
names, types, all other metadata and the values, which does not depend on how they are cut, packed or compressed.
"""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hipmdp._files import atomic_write

DIGEST_KEY = b"hipmdp.sha256"
"""The entry of a table's metadata that holds its digest."""


def save_table(path: Path, table: pa.Table) -> None:
    """Write a table with its digest, whole or not at all."""
    metadata = {**(table.schema.metadata or {}), DIGEST_KEY: table_digest(table).encode()}
    with atomic_write(path) as temporary:
        pq.write_table(table.replace_schema_metadata(metadata), temporary, compression="zstd", write_page_checksum=True)


def load_table(path: Path, remedy: str = "") -> pa.Table:
    """Read what `save_table` wrote; anything else is a `ValueError` that says what is wrong, and the `remedy`."""
    if not path.is_file():
        raise ValueError(f"There is no file {str(path)!r}.")
    try:
        with pa.OSFile(str(path), "rb") as file, pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            table = parquet.read()
        table.validate(full=True)
        stored = (table.schema.metadata or {}).get(DIGEST_KEY)
        whole = stored is not None and stored == table_digest(table).encode()
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError, MemoryError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0].partition(". ")[0].rstrip(".")
        raise ValueError(f"{str(path)!r} is damaged or no Parquet file: {reason}{remedy}.") from None
    if stored is None:
        raise ValueError(f"{str(path)!r} is damaged or was not written by this hipmdp: it has no digest{remedy}.")
    if not whole:
        raise ValueError(f"{str(path)!r} is damaged: its content does not fit its digest{remedy}.")
    return table


def table_digest(table: pa.Table) -> str:
    """SHA-256 of names, types, metadata and values."""
    digest = hashlib.sha256()
    _add(digest, len(table), table.num_columns)
    for key, value in sorted((table.schema.metadata or {}).items()):
        if key != DIGEST_KEY:
            _add(digest, key, value)
    for field, column in zip(table.schema, table.columns, strict=True):
        _add(digest, field.name, field.nullable)
        _add_values(digest, column.combine_chunks())
    return digest.hexdigest()


def _add(digest: Any, *parts: Any) -> None:
    """Each with its length: two different lists of parts never are the same bytes."""
    for part in parts:
        raw = part.reshape(-1).view(np.uint8) if isinstance(part, np.ndarray) else part
        raw = raw if isinstance(raw, (bytes, np.ndarray)) else str(raw).encode()
        digest.update(b"%d:" % len(raw))
        digest.update(raw)


def _add_values(digest: Any, column: pa.Array) -> None:
    """What is missing, the lengths of texts and lists, and the values; what lies behind a missing value is not read."""
    kind, valid = column.type, column.is_valid()
    # What the values of a list are called inside is nobody's choice: Parquet has a name of its own.
    _add(digest, "list" if pa.types.is_list(kind) else kind)
    _add(digest, len(column), np.packbits(valid.to_numpy(zero_copy_only=False)) if column.null_count else b"")
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        column = column.fill_null("" if pa.types.is_string(kind) else b"")
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets or b"\0\0\0\0", np.int32)[column.offset :][: len(column) + 1]
        _add(digest, np.diff(ends), np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]])
    elif pa.types.is_list(kind):
        ends = np.asarray(column.offsets)
        lengths = np.where(valid.to_numpy(zero_copy_only=False), np.diff(ends), 0).astype(np.int32)
        _add(digest, lengths)
        # Only what belongs to lists that are there.
        _add_values(digest, column.flatten())
    elif pa.types.is_boolean(kind):
        _add(digest, np.packbits(column.fill_null(False).to_numpy(zero_copy_only=False)))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        _add(digest, np.ascontiguousarray(column.fill_null(0).to_numpy(zero_copy_only=False)))
    else:
        raise ValueError(f"a column of {kind} has no digest")
