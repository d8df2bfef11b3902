"""What becomes of rows that cannot be used: an error, or a warning about what was left out."""

import warnings
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from hipmdp.data.logs.columns import LogColumns, listed
from hipmdp.data.logs.rows import LogRows, Problem, problems


class LeftOutWarning(UserWarning):
    """Rows were left out, as was asked for."""


def usable(rows: LogRows, columns: LogColumns, least: int, *, drop: bool, split: bool) -> LogRows:
    """The rows that can be learned from: all, or an error; with `drop` whole episodes, with `split` good parts."""
    found = problems(rows, columns)
    if found and not (drop or split):
        raise ValueError(_told(rows, found))
    bad = np.zeros(len(rows.group), bool)
    for problem in found:
        bad |= problem.rows
    alone = rows.sources[0] if len(rows.sources) == 1 else "the logs"
    kept, cost = (_split if split else _dropped)(rows, columns, bad)
    steps = np.ones(len(kept.group), bool) if columns.next_state else ~kept.last
    counts = np.bincount(kept.instance[steps], minlength=len(rows.instance_names))
    present = np.unique(rows.instance[rows.instance >= 0])
    few = [int(i) for i in present if counts[i] < least]
    if few and not (drop or split):
        name = rows.instance_names[few[0]]
        place = int(rows.place[rows.instance == few[0]].min())
        raise ValueError(
            f"Instance {name!r} of {rows.source(place)} (row {rows.row(place)}, column {columns.instance or 'none'!r}) "
            f"has {counts[few[0]]} transitions, at least {least} are needed{_more(len(few) - 1, 'instance')}; --drop "
            "leaves them out."
        )
    if bad.any() or few:
        short = listed([rows.instance_names[i] for i in few], 5)
        gone = f" and {_many(len(few), 'instance')} with fewer than {least} transitions ({short})" if few else ""
        kept = kept.select(~np.isin(kept.instance, few))
        lost = len(rows.group) - len(kept.group)
        example = f"; first: {_told(rows, found, ended=True)}" if found else ""
        message = f"Left out of {alone}: {cost}{gone}, {_many(lost, 'row')} in all (of {len(rows.group)}){example}"
        warnings.warn(message, LeftOutWarning, stacklevel=3)
    if len(kept.group) == 0:
        raise ValueError(f"Nothing in {alone} can be used: {_told(rows, found) if found else 'too few rows'}")
    return kept


def _dropped(rows: LogRows, columns: LogColumns, bad: np.ndarray) -> tuple[LogRows, str]:
    """Without the episodes that have a bad row, or may have lost one that does not say which episode it is of."""
    groups = np.unique(rows.group[bad | _interrupted(rows)])
    gone = np.isin(rows.group, groups)
    episodes = len(np.unique(rows.group[gone & rows.identified]))
    return rows.select(~gone), f"{_many(episodes, 'episode')} with problems"


def _split(rows: LogRows, columns: LogColumns, bad: np.ndarray) -> tuple[LogRows, str]:
    """Without bad rows: an episode ends before one, and another begins after it."""
    begins = np.append(True, rows.last[:-1])[: len(bad)] | bad | np.append(False, bad[:-1])[: len(bad)]
    part = np.cumsum(begins | _interrupted(rows))
    kept = replace(rows, group=part).select(~bad)
    single = np.zeros(len(kept.group), bool)
    if not columns.next_state:
        single = kept.last & np.append(True, kept.last[:-1])[: len(single)]
        kept = kept.select(~single)
    before = len(np.unique(rows.group[rows.identified]))
    _, group = np.unique(kept.group, return_inverse=True)
    after = int(group.max()) + 1 if len(group) else 0
    stranded = f" and {_many(int(single.sum()), 'good row')} left alone by them" if single.any() else ""
    return replace(
        kept, group=group
    ), f"{_many(int(bad.sum()), 'bad row')}{stranded} ({_many(before, 'episode')} became {after})"


def _interrupted(rows: LogRows) -> np.ndarray:
    """True where a row without a name may have stood between this row and the one before it in its episode.

    Such a row can be of any episode that goes on around it (of its own system, where it says which), and a transition
    over it would join two moments that did not follow each other.
    """
    result = np.zeros(len(rows.group), bool)
    nameless = ~rows.identified
    for instance in np.unique(rows.instance[nameless]):
        places = np.sort(rows.place[nameless & (rows.instance == instance)])
        passed = np.searchsorted(places, rows.place)
        between = np.append(False, passed[1:] != passed[:-1])[: len(passed)]
        result |= between & ((rows.instance == instance) | (instance < 0))
    return result & ~np.append(True, rows.last[:-1])[: len(result)] & rows.identified


def _told(rows: LogRows, found: Iterable[Problem], *, ended: bool = False) -> str:
    """The problem that comes first in the files, and how many more there are."""
    firsts = [(int(rows.place[p.rows].min()), p) for p in found]
    place, problem = min(firsts, key=lambda pair: pair[0])
    row = int(np.flatnonzero(problem.rows & (rows.place == place))[0])
    name = rows.instance_names[rows.instance[row]] if rows.instance[row] >= 0 else None
    of = f" (instance {name!r})" if name is not None and len(rows.instance_names) > 1 else ""
    others = sum(int(p.rows.sum()) for p in found) - 1
    rest = f"{_more(others, 'problem')}; --drop leaves such episodes out, --split only such rows"
    tail = "" if ended else rest
    return f"{rows.source(place)}, row {rows.row(place)}{of}, column {problem.column!r} {problem.tell(row)}{tail}."


def _more(count: int, what: str) -> str:
    return f" (and {count} more {what}{'s' * (count > 1)})" if count > 0 else ""


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
