"""CSV files as columns of text, as written; an error names the row."""

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

BLOCK = 1 << 20
"""Bytes that are parsed at a time; a row that is longer is read in one piece with the rest."""
LARGEST_BLOCK = 2**31 - 2
MARK = b"\xef\xbb\xbf"
"""Some programs write it before UTF-8."""
HEADER = 1 << 20
"""The header must end within so many characters."""


def read_csv(path: Path, choose: Callable[[list[str]], list[str]]) -> pa.Table:
    """The chosen columns, as bytes that were not yet decoded. Blank lines are skipped."""
    raw = path.read_bytes()
    names = _header(path, raw)
    wanted = choose(names)
    if raw.find(b"\0") >= 0:
        row = _first(raw, lambda record: any("\0" in cell for cell in record))
        raise ValueError(f"{_row(path, row)} holds a NUL byte: this is not text, or it was damaged.")
    try:
        table = _parsed(raw, wanted)
    except (pa.ArrowException, ValueError, KeyError, OverflowError):
        raise _complaint(path, raw, len(names)) from None
    # A quote that is never closed takes the rest of the file into its cell.
    if raw.count(b'"') % 2:
        _check_quotes(path, raw)
    return table


def _parsed(raw: bytes, wanted: list[str]) -> pa.Table:
    as_bytes = pc.ConvertOptions(
        column_types={name: pa.binary() for name in wanted}, include_columns=wanted, strings_can_be_null=False
    )
    rows = pc.ParseOptions(newlines_in_values=b'"' in raw)
    try:
        return pc.read_csv(pa.BufferReader(raw), pc.ReadOptions(block_size=BLOCK), rows, as_bytes)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error):
            raise
    whole = pc.ReadOptions(block_size=min(len(raw) + 1, LARGEST_BLOCK))
    return pc.read_csv(pa.BufferReader(raw), whole, rows, as_bytes)


def _header(path: Path, raw: bytes) -> list[str]:
    """The names of the columns."""
    # Latin-1 keeps every byte, so that a character which is cut at the end of the piece does no harm.
    text = raw.removeprefix(MARK)[:HEADER].decode("latin-1")
    try:
        record = next(record for record in csv.reader(io.StringIO(text, newline="")) if record)
        names = [name.encode("latin-1").decode() for name in record]
    except StopIteration:
        raise ValueError(f"{str(path)!r} is empty.") from None
    except UnicodeDecodeError:
        raise ValueError(f"The header of {str(path)!r} is not UTF-8 text: save the file as UTF-8.") from None
    except csv.Error:
        raise ValueError(f"{str(path)!r} has no header: its first line is too long.") from None
    if len(names) == 1:
        for separator, called in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if separator in names[0]:
                raise ValueError(f"The columns of {str(path)!r} are separated by {called}: save it with commas.")
    return names


def _records(raw: bytes, *, strict: bool = False) -> Iterator[list[str]]:
    """The rows without the header, as the csv module sees them; slow, to find what is wrong."""
    text = raw.removeprefix(MARK).decode("latin-1")
    records = (record for record in csv.reader(io.StringIO(text, newline=""), strict=strict) if record)
    next(records, None)
    return records


def _first(raw: bytes, wrong: Callable[[list[str]], bool]) -> int | None:
    """The first row (from 1) that is wrong; 0: the header or what comes before it; None: not found."""
    try:
        return next((i for i, record in enumerate(_records(raw), 1) if wrong(record)), 0)
    except csv.Error:
        return None


def _row(path: Path, row: int | None) -> str:
    return f"{str(path)!r}" + ("" if row is None else ", header," if row == 0 else f", row {row},")


def _complaint(path: Path, raw: bytes, expected: int) -> ValueError:
    """Why the file could not be parsed."""
    row = 0
    try:
        for row, record in enumerate(_records(raw), 1):
            if len(record) != expected:
                cells = f"{len(record)} cell{'s' * (len(record) != 1)}"
                hint = "is a comma or a quote out of place, or a decimal comma in a number?"
                return ValueError(f"{_row(path, row)} has {cells}, but the header has {expected}: {hint}")
    except csv.Error:
        return ValueError(f"{_row(path, row + 1)} has a cell that is too long: is a quote not closed?")
    if row == 0:
        return ValueError(f"{str(path)!r} has no rows.")
    return ValueError(f"{str(path)!r} is not a readable CSV file: check its quotes.")


def _check_quotes(path: Path, raw: bytes) -> None:
    row = 0
    try:
        for _ in _records(raw, strict=True):
            row += 1
    except csv.Error as error:
        never = "unexpected end of data" in str(error)
        what = "that is never closed" if never else "within a quoted cell: double it"
        raise ValueError(f"{_row(path, row + 1)} has a quote {what}.") from None
