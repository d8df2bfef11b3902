"""Cells by their role: names as written, numbers, flags. What cannot be read is kept by its row, with its text."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MISSING = pa.array(
    ["", "nan", "NaN", "NAN", "-nan", "-NaN", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "<NA>", "NaT", "NULL",
     "null", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"],
    pa.large_string(),
)  # fmt: skip
"""Text that stands for a missing value, in every role and format."""
EXACT = 2**53
"""Whole numbers up to here are exact in float64."""
TRUTH = {"true": 1.0, "false": 0.0}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_WHOLE_WITH_POINT = re.compile(r"(-?\d+)\.0+", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d[\d.,' \u00a0\u202f_]*", re.ASCII)


class Cells(NamedTuple):
    """A column of numbers."""

    values: np.ndarray
    """float64; NaN where a cell is missing or wrong."""
    wrong: dict[int, str]
    """What is wrong with a cell that is not merely missing, by its row, to follow "column 'x' "."""


class Ids(NamedTuple):
    """A column of names."""

    codes: np.ndarray
    """Which of `names`; −1 where there is none."""
    names: tuple[str, ...]
    """In the order of their first rows."""
    wrong: dict[int, str]


def shown(value: Any) -> str:
    """A cell, short enough for a sentence."""
    text = str(value)
    return repr(text) if len(text) <= 40 else f"{text[:40]!r}…"


def is_text(column: pa.Array) -> bool:
    """Whether `plain` gave text."""
    return pa.types.is_large_string(column.type)


def plain(table: pa.Table, name: str, source: str) -> pa.Array:
    """A column as one array, without encodings; text and bytes as large_string."""
    column, types = table.column(name), pa.types
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    textual = (
        types.is_string, types.is_large_string, types.is_string_view, types.is_binary, types.is_large_binary,
        types.is_binary_view, types.is_fixed_size_binary,
    )  # fmt: skip
    if any(is_kind(column.type) for is_kind in textual):
        # By way of bytes, as text of a file need not be valid.
        column = column.cast(pa.large_binary())
        try:
            column = column.cast(pa.large_string())
        except pa.ArrowInvalid:
            row = next(i for i, cell in enumerate(column) if not _decodes(cell.as_py()))
            raise ValueError(
                f"{source}, row {row + 1}, column {name!r} is not UTF-8 text: save the file as UTF-8."
            ) from None
    column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def _decodes(cell: bytes | None) -> bool:
    try:
        (cell or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def stripped(text: pa.Array) -> pa.Array:
    """Without blanks around it; null where it stands for a missing value."""
    text = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.is_in(text, MISSING), pa.scalar(None, text.type), text)


def encoded(column: pa.Array) -> tuple[np.ndarray, list[Any]]:
    """Which of the different values each row has (−1: none), and these in the order of their first rows."""
    dictionary = pc.dictionary_encode(column)
    codes = dictionary.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, dictionary.dictionary.to_pylist()


def numbers(column: pa.Array, name: str) -> Cells:
    """What is measured."""
    kind, types = column.type, pa.types
    if is_text(column):
        return _numbers_in_text(stripped(column))
    if types.is_boolean(kind):
        return Cells(_floats(column.cast(pa.int8())), {})
    if types.is_integer(kind):
        return _whole(column)
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return Cells(_floats(column), {})
    raise ValueError(f"Column {name!r} must hold numbers, got {kind}.")


def _floats(column: pa.Array) -> np.ndarray:
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _whole(column: pa.Array) -> Cells:
    whole = column.fill_null(0).to_numpy(zero_copy_only=False)
    values = whole.astype(np.float64)
    with np.errstate(invalid="ignore"):
        rounded = values.astype(whole.dtype) != whole
    wrong = {int(row): _inexact(whole[row]) for row in np.flatnonzero(rounded)}
    values[rounded | column.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return Cells(values, wrong)


def _inexact(value: Any) -> str:
    return f"is {value}, too long a whole number to be kept exactly: subtract a constant, or give it in other units"


def _numbers_in_text(text: pa.Array) -> Cells:
    wrong: dict[int, str] = {}
    try:
        values = _floats(text).copy()
    except pa.ArrowInvalid:
        values, wrong = _number_by_number(text)
    for row in np.flatnonzero(np.isfinite(values) & (np.abs(values) >= EXACT)):
        cell = text[int(row)].as_py()
        if _WHOLE.fullmatch(cell) and int(cell) != int(values[row]):
            wrong[int(row)] = _inexact(shown(cell).strip("'"))
            values[row] = np.nan
    return Cells(values, wrong)


def _number_by_number(text: pa.Array) -> tuple[np.ndarray, dict[int, str]]:
    """Each different text once. Flags count as numbers, where a column has hardly anything else."""
    codes, different = encoded(text)
    counts = np.bincount(codes[codes >= 0], minlength=len(different))
    flags = sum(int(n) for cell, n in zip(different, counts, strict=True) if cell.lower() in TRUTH)
    words = TRUTH if 2 * flags > counts.sum() else {}
    parsed = [number_of(cell) if cell.lower() not in words else words[cell.lower()] for cell in different]
    values = np.asarray([np.nan if value is None else value for value in parsed] + [np.nan])[codes]
    bad = np.asarray([value is None for value in parsed] + [False])[codes]
    return values, {int(row): f"is {not_a_number(different[codes[row]])}" for row in np.flatnonzero(bad)}


def number_of(text: str) -> float | None:
    """The number that a text is, if it is one."""
    return float(text) if _NUMBER.fullmatch(text) else None


def whole_of(text: str) -> int | None:
    """The whole number that a text is, if it is one."""
    return int(text) if _WHOLE.fullmatch(text) and len(text) < 400 else None


def not_a_number(text: str) -> str:
    """What to say about it."""
    grouped = _GROUPED.fullmatch(text)
    hint = " (is it a decimal comma or a thousands separator? write 1234.5)" if grouped else ""
    return f"{shown(text)}, not a number{hint}"


def flags(column: pa.Array, name: str) -> Cells:
    """1 where it is true, 0 where it is false or missing."""
    unread: dict[int, str] = {}
    if is_text(column):
        codes, different = encoded(stripped(column))
        parsed = [TRUTH.get(cell.lower(), number_of(cell)) for cell in different]
        values = np.asarray([np.nan if value is None else value for value in parsed] + [0.0])[codes]
        text = lambda row: shown(different[codes[row]])  # noqa: E731
    else:
        found = numbers(column, name)
        unread, values = found.wrong, np.nan_to_num(found.values, nan=0.0)
        text = lambda row: f"{values[row]:g}"  # noqa: E731
    bad = (values != 0) & (values != 1)
    wrong = {int(row): f"is {text(row)}, not true or false" for row in np.flatnonzero(bad)}
    return Cells(np.where(bad, 0.0, values), {**wrong, **unread})


def ids(column: pa.Array, name: str) -> Ids:
    """Names as they are written. Missing ones are −1, also where text or NaN stands for them."""
    kind = column.type
    wrong: dict[int, str] = {}
    if is_text(column):
        missing = pc.is_in(pc.utf8_trim_whitespace(column), MISSING).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(missing):
            cell = column[int(row)].as_py()
            if cell.strip():
                wrong[int(row)] = f"is {shown(cell)}, which stands for a missing value, and does not say which one"
        column = pc.if_else(pa.array(missing), pa.scalar(None, kind), column)
    elif pa.types.is_floating(kind):
        values = _floats(column)
        for row in np.flatnonzero(np.abs(values) > EXACT):
            wrong[int(row)] = f"is {values[row]:.17g}, too long for fractions: store such numbers as whole ones or text"
        column = pa.array(values, mask=~(np.abs(values) <= EXACT))
    elif pa.types.is_temporal(kind):
        # Python's times end at microseconds.
        column = pc.cast(column, pa.large_string()) if not pa.types.is_duration(kind) else column.cast(pa.int64())
    elif pa.types.is_nested(kind):
        raise ValueError(f"Column {name!r} must hold names or numbers, got {kind}.")
    codes, different = encoded(column)
    return Ids(codes, tuple(_name(value) for value in different), wrong)


def _name(value: Any) -> str:
    """3.0 is called 3: a whole-number column with gaps is stored as fractions."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def called(names: Sequence[str], column: str) -> tuple[str, ...]:
    """Text as written; but a column of 1.0, 2.0, … is one of whole numbers with gaps, as some programs write it."""
    pointed = [_WHOLE_WITH_POINT.fullmatch(name) for name in names]
    read = [match[1] if match else name for name, match in zip(names, pointed, strict=True)]
    first: dict[str, str] = {}
    for name, reading in zip(names, read, strict=True):
        if first.setdefault(reading, name) != name:
            raise ValueError(
                f"Column {column!r} has different values that read the same ({shown(first[reading])} and "
                f"{shown(name)}): write each in one way."
            )
    return tuple(read if all(pointed) else names)
