"""The columns of a log as arrays, episode by episode, and everything that is wrong with them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from hipmdp._units import LARGEST_VALUE
from hipmdp.data.logs.columns import LogColumns, listed
from hipmdp.data.logs.times import Clock, on_one_clock, times
from hipmdp.data.logs.values import TRUTH, Cells, Ids, called, flags, ids, number_of, numbers, plain

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
    """One entry per row, sorted so that an episode's rows follow each other, in the order of the files."""

    place: np.ndarray
    """Position in all files together."""
    instance: np.ndarray
    """Position in `instance_names`, −1 where it is missing."""
    identified: np.ndarray
    """False where a row does not say which system and which episode it is of. Each such row is a group of its own."""
    group: np.ndarray
    """Number of the episode, over all instances. An episode ends with its file."""
    state: np.ndarray
    next_state: np.ndarray | None
    action: np.ndarray
    """Position in `action_names`; −1 where it is missing, −2 − i where it is `strange[i]`."""
    reward: np.ndarray | None
    terminated: np.ndarray
    time: np.ndarray | None
    """Ticks of one clock; see `Clock`."""
    rate: float
    """Ticks per second for timestamps, otherwise per unit of the log."""
    instance_names: tuple[str, ...]
    action_names: tuple[str, ...]
    strange: tuple[str, ...]
    """Actions that are none of the known ones."""
    wrong: dict[str, dict[int, str]]
    """Cells that cannot be read: by column, by place, what is wrong with them."""
    sources: tuple[str, ...]
    starts: tuple[int, ...]
    """Place of each file's first row."""

    @property
    def last(self) -> np.ndarray:
        """True in the last row of each episode."""
        return np.append(self.group[1:] != self.group[:-1], True)[: len(self.group)]

    def select(self, mask: np.ndarray) -> "LogRows":
        """The rows where `mask` holds (or that it indexes)."""
        arrays = {k: v[mask] for k, v in vars(self).items() if isinstance(v, np.ndarray)}
        return replace(self, **arrays)

    def row(self, place: int | np.integer) -> int:
        """The row of a place in its file, from 1."""
        return int(place) - self.starts[self._file(place)] + 1

    def source(self, place: int | np.integer) -> str:
        """The file that a place is in."""
        return self.sources[self._file(place)]

    def _file(self, place: int | np.integer) -> int:
        return int(np.searchsorted(self.starts, place, side="right")) - 1


class _Reader:
    """Columns of all files together, each read by its role; what cannot be read is collected in `wrong`."""

    def __init__(self, tables: list[pa.Table], sources: tuple[str, ...]) -> None:
        self.tables, self.sources = tables, sources
        self.starts = tuple(int(n) for n in np.cumsum([0, *(t.num_rows for t in tables)])[:-1])
        self.count = sum(t.num_rows for t in tables)
        self.wrong: dict[str, dict[int, str]] = {}

    def _columns(self, name: str) -> list[pa.Array]:
        return [plain(table, name, source) for table, source in zip(self.tables, self.sources, strict=True)]

    def _note(self, name: str, parts: list[dict[int, str]]) -> None:
        found = {
            row + start: what for start, part in zip(self.starts, parts, strict=True) for row, what in part.items()
        }
        self.wrong[name] = {**self.wrong.get(name, {}), **found}

    def cells(self, name: str, read: Callable[[pa.Array, str], Cells]) -> np.ndarray:
        parts = [read(column, name) for column in self._columns(name)]
        self._note(name, [part.wrong for part in parts])
        return np.concatenate([part.values for part in parts])

    def ids(self, name: str) -> Ids:
        parts = [ids(column, name) for column in self._columns(name)]
        self._note(name, [part.wrong for part in parts])
        position: dict[str, int] = {}
        codes = []
        for part in parts:
            places = [position.setdefault(written, len(position)) for written in part.names]
            codes.append(np.asarray([*places, -1], np.int64)[part.codes])
        # Of all files together: a name must not mean one thing in one of them and another in the next.
        return Ids(np.concatenate(codes), called(tuple(position), name), {})

    def clock(self, name: str) -> Clock:
        clock = on_one_clock([times(column, name) for column in self._columns(name)], name, self.sources)
        self._note(name, clock.wrong)
        return clock

    def files(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.tables)), [t.num_rows for t in self.tables])


def rows_of(
    tables: list[pa.Table], columns: LogColumns, actions: tuple[str, ...] | None, sources: tuple[str, ...],
    names: tuple[str, ...],
) -> LogRows:  # fmt: skip
    """Sorted and typed; `actions` are the known ones, in their order, otherwise those that occur.

    `names` are those of the systems where each file is one.
    """
    reader = _Reader(tables, sources)
    file, nothing = reader.files(), np.zeros(reader.count, np.int64)
    instance = Ids(file, names, {}) if columns.instance is None else reader.ids(columns.instance)
    episode = Ids(nothing, ("0",), {}) if columns.episode is None else reader.ids(columns.episode)
    identified = (instance.codes >= 0) & (episode.codes >= 0)
    key = (file * len(instance.names) + instance.codes) * len(episode.names) + episode.codes
    # Nobody knows which rows belong with one that does not say.
    key = np.where(identified, key, -1 - np.arange(reader.count))
    # Episodes in the order of their first rows, which is what people expect of a report.
    group = _by_appearance(key)
    action, action_names, strange = _actions(reader.ids(columns.action), columns.action, actions, reader)
    clock = None if columns.time is None else reader.clock(columns.time)

    def many(group: tuple[str, ...]) -> np.ndarray:
        return np.stack([reader.cells(name, numbers) for name in group], axis=1)

    rows = LogRows(
        place=np.arange(reader.count),
        instance=instance.codes,
        identified=identified,
        group=group,
        state=many(columns.state),
        next_state=many(columns.next_state) if columns.next_state else None,
        action=action,
        reward=None if columns.reward is None else reader.cells(columns.reward, numbers),
        terminated=nothing == 1 if columns.terminated is None else reader.cells(columns.terminated, flags) != 0,
        time=None if clock is None else clock.ticks,
        rate=1.0 if clock is None else clock.rate,
        instance_names=instance.names,
        action_names=action_names,
        strange=strange,
        wrong=reader.wrong,
        sources=sources,
        starts=reader.starts,
    )
    return rows.select(np.argsort(group, kind="stable"))


def problems(rows: LogRows, columns: LogColumns) -> list[Problem]:
    """Everything that makes a row unusable."""
    last, whole = rows.last, columns.next_state != ()
    acts = np.ones(len(last), bool) if whole else ~last
    found: list[Problem] = []
    unread: dict[str, np.ndarray] = {}
    for name, wrong in rows.wrong.items():
        unread[name] = np.isin(rows.place, np.fromiter(wrong, np.int64, len(wrong)))
        # What an action is called in an episode's last row does not matter.
        mask = unread[name] & (acts if name == columns.action else True)
        found.append(Problem(mask, name, lambda row, wrong=wrong: wrong[int(rows.place[row])]))  # type: ignore[misc]

    def add(mask: np.ndarray, name: str, text: str = "is missing") -> None:
        found.append(Problem(mask & ~unread.get(name, np.zeros(len(last), bool)), name, lambda row: text))

    if columns.instance is not None:
        add(rows.instance < 0, columns.instance, "does not say which one")
    if columns.episode is not None:
        add(~rows.identified & (rows.instance >= 0), columns.episode, "does not say which one")
    add(acts & (rows.action == -1), columns.action)
    found.append(Problem(acts & (rows.action < -1), columns.action, lambda row: _strange(rows, row)))
    add(rows.terminated & ~last, columns.terminated or "", "is true, but its episode goes on")
    measured = list(zip(columns.state, rows.state.T, strict=True))
    if rows.next_state is not None:
        measured += list(zip(columns.next_state, rows.next_state.T, strict=True))
    if rows.reward is not None:
        measured.append((columns.reward or "", np.where(acts, rows.reward, 0)))
    if rows.time is not None:
        add(Clock.missing(rows.time), columns.time or "")
        found.append(_disorder(rows, rows.time, columns.time or ""))
        if rows.time.dtype.kind == "f":
            measured.append((columns.time or "", np.nan_to_num(rows.time, nan=0.0, posinf=np.inf, neginf=-np.inf)))
    for name, values in measured:
        add(np.isnan(values), name)
        add(np.abs(values) > LARGEST_VALUE, name, "is too large a number")
    # A row that lost its neighbour to one without a name is not what is wrong.
    if not whole and rows.identified.all():
        alone = last & np.append(True, last[:-1])[: len(last)]
        text = "is the only row of its episode: an episode needs a row before and a row after an action"
        add(alone, columns.episode or columns.state[0], text)
    return [problem for problem in found if problem.rows.any()]


def _strange(rows: LogRows, row: int) -> str:
    return f"is {rows.strange[-2 - rows.action[row]]!r}, not one of the known actions ({listed(rows.action_names)})"


def _disorder(rows: LogRows, time: np.ndarray, name: str) -> Problem:
    """Times that do not grow within an episode."""
    gone = Clock.missing(time)
    wrong = np.append(False, (time[1:] <= time[:-1]) & ~rows.last[:-1] & ~gone[1:] & ~gone[:-1])

    def tell(row: int) -> str:
        before = rows.row(rows.place[row - 1])
        if time[row] == time[row - 1]:
            return f"repeats the time of row {before} of the same episode"
        return f"is earlier than row {before} of the same episode: sort each episode by time"

    return Problem(wrong[: len(time)], name, tell)


def _by_appearance(key: np.ndarray) -> np.ndarray:
    """Groups of equal keys, numbered in the order in which they first come."""
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[group]


def _actions(
    found: Ids, name: str, known: tuple[str, ...] | None, reader: _Reader
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """Which action each row has, their names (sorted, numbers by size), and those that are not known; see `LogRows`."""
    if all(called.lower() in TRUTH for called in found.names):
        # Formats write them in different ways.
        found = found._replace(names=tuple(called.lower() for called in found.names))
    values = [number_of(called) for called in found.names]
    fractions = [i for i, value in enumerate(values) if value is not None and not float(value).is_integer()]
    if fractions and None not in values:
        place = int(np.argmax(found.codes == fractions[0]))
        start = max(start for start in reader.starts if start <= place)
        raise ValueError(
            f"Column {name!r} holds fractions ({values[fractions[0]]:g} in row {place - start + 1}): continuous "
            "actions cannot be learned here, only a choice among a few; sort them into named levels first."
        )
    if known is None:
        if len(found.names) > MOST_ACTIONS:
            raise ValueError(
                f"Column {name!r} has {len(found.names)} different values, more than {MOST_ACTIONS} actions cannot be "
                "learned; sort them into named levels first."
            )
        numeric = all(re.fullmatch(r"-?[0-9]{1,400}", called) for called in found.names)
        different = set(found.names)
        known = tuple(sorted(different, key=lambda n: (int(n), n)) if numeric else sorted(different))
    strange = tuple(called for called in found.names if called not in known)
    position = {**{n: -2 - i for i, n in enumerate(strange)}, **{n: i for i, n in enumerate(known)}}
    # The last entry is for rows without a value, whose code is −1.
    table_of = np.asarray([*(position[called] for called in found.names), -1], np.int64)
    return table_of[found.codes], known, strange
