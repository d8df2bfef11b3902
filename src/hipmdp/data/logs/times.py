"""Times of a log as whole ticks, so that steps of 100 ns survive beside a date: numbers, timestamps, ISO 8601 text."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hipmdp.data.logs.values import encoded, is_text, not_a_number, number_of, numbers, shown, stripped, whole_of

NUMBERS, LOCAL, ZONED, CLOCK, DURATIONS = (
    "numbers", "timestamps", "timestamps with a UTC offset", "times of day", "durations",
)  # fmt: skip
"""Kinds of times; one log has one."""
NO_TIME = np.iinfo(np.int64).min
"""Where a whole time is missing or wrong."""
FARTHEST = 2**62
"""Ticks from the origin: 146 years of nanoseconds."""
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY = 86_400 * 10**9
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?\s?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)


class Times(NamedTuple):
    """The times of one file: `origin` + ticks · `unit`, in nanoseconds (numbers: in their own unit)."""

    kind: str
    ticks: np.ndarray
    """int64 (`NO_TIME` where there is none), or float64 for numbers with fractions (NaN)."""
    unit: int
    origin: int
    wrong: dict[int, str]
    """As in `Cells`."""


class Clock(NamedTuple):
    """The times of all files on one clock, whose differences are exact."""

    ticks: np.ndarray
    rate: float
    """Ticks per second, or per unit of the log's own numbers."""
    wrong: list[dict[int, str]]
    """By file, by row in it."""

    @staticmethod
    def missing(ticks: np.ndarray) -> np.ndarray:
        """True where there is no time."""
        return np.isnan(ticks) if ticks.dtype.kind == "f" else ticks == NO_TIME


def times(column: pa.Array, name: str) -> Times:
    """What a column says about when."""
    kind, types = column.type, pa.types
    if is_text(column):
        return _in_text(stripped(column))
    if types.is_timestamp(kind):
        return _ticks(column, LOCAL if kind.tz is None else ZONED, _UNITS[kind.unit])
    if types.is_date(kind):
        return _ticks(column, LOCAL, _DAY if types.is_date32(kind) else _UNITS["ms"])
    if types.is_time(kind) or types.is_duration(kind):
        return _ticks(column, CLOCK if types.is_time(kind) else DURATIONS, _UNITS[kind.unit])
    if types.is_integer(kind) and (kind != pa.uint64() or (pc.max(column).as_py() or 0) < 2**63):
        return _ticks(column, NUMBERS, 1)
    if types.is_boolean(kind):
        raise ValueError(f"Column {name!r} must hold numbers or timestamps, got {kind}.")
    cells = numbers(column, name)
    return Times(NUMBERS, cells.values, 1, 0, cells.wrong)


def _ticks(column: pa.Array, kind: str, unit: int) -> Times:
    whole = column if pa.types.is_integer(column.type) else column.view(f"int{column.type.bit_width}")
    ticks = whole.cast(pa.int64()).fill_null(NO_TIME).to_numpy(zero_copy_only=False)
    return Times(kind, ticks, unit, 0, {})


def _in_text(text: pa.Array) -> Times:
    """All cells at once where they are alike, otherwise one by one."""
    for target, kind in (
        (pa.float64(), NUMBERS), (pa.timestamp("ns"), LOCAL), (pa.timestamp("ns", "UTC"), ZONED),
    ):  # fmt: skip
        try:
            column = pc.cast(text, target)
        except pa.ArrowInvalid:
            continue
        if kind != NUMBERS:
            return _ticks(column, kind, 1)
        try:
            return _ticks(pc.cast(text, pa.int64()), NUMBERS, 1)
        except pa.ArrowInvalid:
            return Times(NUMBERS, np.asarray(column.to_numpy(zero_copy_only=False), np.float64), 1, 0, {})
    return _one_by_one(text)


def _one_by_one(text: pa.Array) -> Times:
    """The kind that most cells have is right; other cells are wrong."""
    codes, different = encoded(text)
    read = [_read(cell) for cell in different]
    counts = np.bincount(codes[codes >= 0], minlength=len(different))
    votes: Counter[str] = Counter()
    for (kind, _), count in zip(read, counts, strict=True):
        votes[kind] += int(count)
    votes.pop("", None)
    most = max(votes, key=lambda kind: votes[kind], default=NUMBERS)
    bad = np.asarray([kind != most for kind, _ in read] + [False])[codes]
    wrong = {int(row): _unlike(most, read[codes[row]][0], different[codes[row]]) for row in np.flatnonzero(bad)}
    good = [value for kind, value in read if kind == most]
    if any(isinstance(value, float) for value in good):
        values = [float(value) if kind == most else np.nan for kind, value in read]
        return Times(most, np.asarray([*values, np.nan], np.float64)[codes], 1, 0, wrong)
    # Whole numbers of any size, counted from one in their middle.
    origin = sorted(good)[len(good) // 2] if good else 0
    offsets = [value - origin if kind == most else NO_TIME for kind, value in read]
    offsets = [offset if abs(offset) <= FARTHEST else NO_TIME for offset in offsets]
    far = np.asarray(
        [kind == most and offset == NO_TIME for (kind, _), offset in zip(read, offsets, strict=True)] + [False]
    )
    wrong |= {int(row): _far(most) for row in np.flatnonzero(far[codes])}
    return Times(most, np.asarray([*offsets, NO_TIME], np.int64)[codes], 1, origin, wrong)


def _read(cell: str) -> tuple[str, Any]:
    """(kind, value) of one text: a number, or nanoseconds since 1970; ("", None) if it is neither."""
    number = number_of(cell)
    if number is not None:
        whole = whole_of(cell)
        return NUMBERS, number if whole is None else whole
    match = _ISO.fullmatch(cell)
    if match is None:
        return "", None
    fraction, zone = match[7] or "", match[8]
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return "", None
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    if zone is not None and zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        seconds -= int(f"{zone[0]}1") * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
    return LOCAL if zone is None else ZONED, seconds * 10**9 + int(fraction.ljust(9, "0"))


def _unlike(most: str, kind: str, cell: str) -> str:
    """What to say about a cell of one kind where most are of another."""
    if most == NUMBERS:
        return f"is {not_a_number(cell)}"
    if kind in (LOCAL, ZONED):
        return f"is {shown(cell)}, {'without' if kind == LOCAL else 'with'} a UTC offset, unlike most times here"
    example = "2024-05-31 12:00:00" if most == LOCAL else "2024-05-31T12:00:00+02:00"
    return f"is {shown(cell)}, not a timestamp such as {example}"


def _far(kind: str) -> str:
    return f"is too far from the other times{'' if kind == NUMBERS else ' (more than 146 years)'}"


def on_one_clock(parts: list[Times], name: str, sources: tuple[str, ...]) -> Clock:
    """The times of all files together."""
    kind = parts[0].kind
    for part, source in zip(parts, sources, strict=True):
        if part.kind != kind:
            raise ValueError(
                f"Column {name!r} holds {kind} in {sources[0]} and {part.kind} in {source}: write times in one way."
            )
    wrong = [dict(part.wrong) for part in parts]
    if any(part.ticks.dtype.kind == "f" for part in parts):
        return Clock(np.concatenate([_as_floats(part) for part in parts]), 1.0, wrong)
    origin = _middle(parts)
    ticks = []
    for part, faults in zip(parts, wrong, strict=True):
        known = part.ticks != NO_TIME
        # part.origin + ticks · unit − origin = (ticks − whole) · unit − rest, in 64 bits wherever that is near.
        whole, rest = divmod(origin - part.origin, part.unit)
        near = known & (np.abs(part.ticks.astype(np.float64) - float(whole)) * part.unit <= FARTHEST)
        relative = np.full(len(known), NO_TIME)
        if near.any():
            relative[near] = (part.ticks[near] - whole) * part.unit - rest
        faults |= {int(row): _far(kind) for row in np.flatnonzero(known & ~near)}
        ticks.append(relative)
    return Clock(np.concatenate(ticks), 1.0 if kind == NUMBERS else 1e9, wrong)


def _as_floats(part: Times) -> np.ndarray:
    if part.ticks.dtype.kind == "f":
        return part.ticks
    return np.where(part.ticks == NO_TIME, np.nan, part.ticks.astype(np.float64) + float(part.origin))


def _middle(parts: list[Times]) -> int:
    """A time in the middle of the first file that has any, so that a stray one is far from it, not the others."""
    for part in parts:
        known = part.ticks[part.ticks != NO_TIME]
        if len(known):
            return part.origin + int(np.partition(known, len(known) // 2)[len(known) // 2]) * part.unit
    return 0
