"""The columns of a log as arrays, episode by episode, and everything that is wrong with them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hipmdp.data.log_columns import LogColumns
from hipmdp.families.checks import LARGEST, known_name

MOST_ACTIONS = 50
"""More different whole numbers than this are a measure, not a choice."""


class Problem(NamedTuple):
    """Rows that cannot be used, and what is wrong with one of them."""

    rows: np.ndarray
    """True where it occurs."""
    column: str
    tell: Callable[[int], str]
    """What is wrong with a row, to follow "row 3 "."""


@dataclass(frozen=True)
class LogRows:
    """One entry per row, sorted so that an episode's rows follow each other, in the order of the file."""

    place: np.ndarray
    """Position in the file."""
    instance: np.ndarray
    """Position in `instance_names`, −1 where it is missing."""
    group: np.ndarray
    """Number of the episode, over all instances."""
    state: np.ndarray
    next_state: np.ndarray | None
    action: np.ndarray
    """Position in `action_names`; −1 where it is missing, −2 − i where it is `strange[i]`."""
    reward: np.ndarray | None
    terminated: np.ndarray
    time: np.ndarray | None
    instance_names: tuple[str, ...]
    action_names: tuple[str, ...]
    strange: tuple[str, ...]
    """Actions that are none of the known ones."""

    @property
    def last(self) -> np.ndarray:
        """True in the last row of each episode."""
        return np.append(self.group[1:] != self.group[:-1], True)[: len(self.group)]

    def select(self, mask: np.ndarray) -> "LogRows":
        """The rows where `mask` holds."""
        arrays = {k: v[mask] for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **arrays)


def rows_of(table: pa.Table, columns: LogColumns, actions: tuple[str, ...] | None) -> LogRows:
    """Sorted and typed; `actions` are the known ones, in their order, otherwise those that occur."""
    for name in columns.used:
        known_name("column of the logs", name, table.column_names)
    count = table.num_rows
    nothing = np.zeros(count, np.int64)
    instance, instance_names = (nothing, ("0",)) if columns.instance is None else _codes(table, columns.instance)
    episode, episode_names = (nothing, ("0",)) if columns.episode is None else _codes(table, columns.episode)
    key = (instance + 1) * (len(episode_names) + 1) + episode + 1
    _, group = np.unique(key, return_inverse=True)
    # Episodes in the order of their first rows, which is what people expect of a report.
    group = _by_appearance(group)
    order = np.argsort(group, kind="stable")
    action, action_names, strange = _actions(table, columns.action, actions)

    def many(names: tuple[str, ...]) -> np.ndarray:
        return np.stack([_numbers(table, name) for name in names], axis=1)

    def maybe(name: str | None) -> np.ndarray | None:
        return None if name is None else _numbers(table, name)

    # Whether an episode without episode id is whole is not known: a missing id is a problem, told below.
    missing = (instance < 0) | (episode < 0)
    terminated = maybe(columns.terminated)
    rows = LogRows(
        np.arange(count), np.where(missing, -1, instance), group, many(columns.state),
        many(columns.next_state) if columns.next_state else None, action, maybe(columns.reward),
        np.zeros(count, bool) if terminated is None else np.nan_to_num(terminated) != 0, maybe(columns.time),
        instance_names, action_names, strange,
    )  # fmt: skip
    return rows.select(order)


def problems(rows: LogRows, columns: LogColumns) -> list[Problem]:
    """Everything that makes a row unusable."""
    last, whole = rows.last, columns.next_state != ()
    acts = np.ones(len(last), bool) if whole else ~last
    found = [
        Problem(rows.instance < 0, columns.instance or columns.episode or "", lambda row: "does not say which one"),
        Problem(acts & (rows.action == -1), columns.action, lambda row: "is missing"),
        Problem(acts & (rows.action < -1), columns.action, lambda row: _strange(rows, row)),
        Problem(rows.terminated & ~last, columns.terminated or "", lambda row: "is true, but its episode goes on"),
    ]
    numbers = list(zip(columns.state, rows.state.T, strict=True))
    if rows.next_state is not None:
        numbers += list(zip(columns.next_state, rows.next_state.T, strict=True))
    if rows.time is not None:
        numbers.append((columns.time or "", rows.time))
    if rows.reward is not None:
        numbers.append((columns.reward or "", np.where(acts, rows.reward, 0)))
    for name, values in numbers:
        found.append(Problem(np.isnan(values), name, lambda row: "is missing"))
        found.append(Problem(np.abs(values) > LARGEST, name, lambda row: "is too large a number"))
    if not whole:
        alone = last & np.append(True, last[:-1])
        text = "is the only row of its episode: an episode needs a row before and a row after an action"
        found.append(Problem(alone, columns.episode or columns.state[0], lambda row: text))
    if rows.time is not None:
        found.append(_disorder(rows, rows.time, columns.time or ""))
    return [problem for problem in found if problem.rows.any()]


def _strange(rows: LogRows, row: int) -> str:
    return f"is {rows.strange[-2 - rows.action[row]]!r}, not one of the known actions ({', '.join(rows.action_names)})"


def _disorder(rows: LogRows, time: np.ndarray, name: str) -> Problem:
    """Times that do not grow within an episode."""
    with np.errstate(invalid="ignore"):
        wrong = np.append(False, (np.diff(time) <= 0) & ~rows.last[:-1])

    def tell(row: int) -> str:
        before = rows.place[row - 1] + 1
        if time[row] == time[row - 1]:
            return f"repeats the time of row {before} of the same episode"
        return f"is earlier than row {before} of the same episode: sort each episode by time"

    return Problem(wrong, name, tell)


def _by_appearance(group: np.ndarray) -> np.ndarray:
    """The same groups, numbered in the order in which they first come."""
    _, first = np.unique(group, return_index=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


def _plain(table: pa.Table, name: str) -> pa.Array:
    """A column as one array, without dictionary encoding."""
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    """float64; NaN where a value is missing. Timestamps become seconds."""
    column, kind = _plain(table, name), table.schema.field(name).type
    types = pa.types
    if types.is_timestamp(column.type) or types.is_date(column.type):
        column = column.cast(pa.timestamp("ns", getattr(column.type, "tz", None))).cast(pa.int64())
        return column.to_numpy(zero_copy_only=False).astype(np.float64) * 1e-9
    if types.is_string(column.type) or types.is_large_string(column.type):
        row = int(np.argmax(pc.is_valid(column).to_numpy(zero_copy_only=False)))
        raise ValueError(f"Column {name!r} must hold numbers, but row {row + 1} is {column[row].as_py()!r}.")
    number = types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)
    if not (number or types.is_null(column.type) or types.is_decimal(column.type)):
        raise ValueError(f"Column {name!r} must hold numbers, got {kind}.")
    if types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def _codes(table: pa.Table, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Which of the different values each row has (−1: none), and their names in the order of their first rows."""
    try:
        encoded = pc.dictionary_encode(_plain(table, name))
    except pa.ArrowException:
        raise ValueError(f"Column {name!r} must hold names or numbers, got {table.schema.field(name).type}.") from None
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    names = [_name(value) for value in encoded.dictionary.to_pylist()]
    if len(set(names)) < len(names):
        raise ValueError(f"Column {name!r} has different values that read the same: write each in one way.")
    return indices, tuple(names)


def _name(value: Any) -> str:
    """3.0 is called 3: a whole-number column with gaps is read as fractions."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _actions(
    table: pa.Table, name: str, known: tuple[str, ...] | None
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Which action each row has, their names (sorted, numbers by size), and those that are not known; see `LogRows`."""
    if pa.types.is_floating(table.schema.field(name).type):
        values = _numbers(table, name)
        fractions = np.isfinite(values) & (values != np.round(values))
        if fractions.any():
            row = int(np.argmax(fractions))
            raise ValueError(
                f"Column {name!r} holds fractions ({values[row]:g} in row {row + 1}): continuous actions cannot be "
                "learned here, only a choice among a few; sort them into named levels first."
            )
    codes, names = _codes(table, name)
    # Missing numbers may be NaN instead of null.
    found = [n for n in names if n != "nan"]
    if known is None:
        if len(found) > MOST_ACTIONS:
            raise ValueError(
                f"Column {name!r} has {len(found)} different values, more than {MOST_ACTIONS} actions cannot be "
                "learned; sort them into named levels first."
            )
        numeric = all(n.lstrip("-").isdigit() for n in found)
        known = tuple(sorted(found, key=int) if numeric else sorted(found))
    strange = tuple(n for n in found if n not in known)
    position = {"nan": -1, **{n: -2 - i for i, n in enumerate(strange)}, **{n: i for i, n in enumerate(known)}}
    # The last entry is for rows without a value, whose code is −1.
    table_of = np.asarray([position[n] for n in names] + [-1], np.int64)
    return table_of[codes], known, strange
