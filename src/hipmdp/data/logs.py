"""`read_logs`: other people's logs as transitions. What is wrong is told by row and column; nothing goes silently."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hipmdp.data.log_columns import LogColumns
from hipmdp.data.log_rows import LogRows, Problem, problems, rows_of
from hipmdp.data.log_specification import durations_of, is_regular, specification_of, unwound
from hipmdp.data.tables import read_table
from hipmdp.data.transitions import Transitions
from hipmdp.families.specification import Specification

LEAST = 10
"""Transitions that an instance must have to be learned from."""
FILE = "file"
"""The column that says from which file a row came, where each file is an instance."""


class LeftOutWarning(UserWarning):
    """Rows were left out, as was asked for."""


def read_logs(
    logs: str | Path | Sequence[str | Path],
    columns: LogColumns,
    *,
    like: Specification | None = None,
    actions: Sequence[str] | None = None,
    optional: Sequence[str] = (),
    horizon: int | None = None,
    discount: float = 0.99,
    least: int = LEAST,
    drop: bool = False,
) -> Transitions:
    """Read Parquet, CSV or NPZ files, or Minari datasets (`minari:NAME`), as one log.

    Several files with no `columns.instance` are one instance each, called like the file. `like` is the specification of
    an earlier log that this one must fit: its actions, its steps. `actions` names all actions in their order (by
    default those that occur, sorted); `optional` names roles, such as "episode", whose column may be missing; `horizon`
    is how long imagined episodes are. An instance needs `least` transitions. The first problem is an error that names
    its row and column; with `drop`, episodes that have one are left out, and a warning says how many.
    """
    sources = [logs] if isinstance(logs, (str, Path)) else list(logs)
    if not sources:
        raise ValueError("Name at least one log file.")
    table, columns = _joined(sources, columns)
    gone: dict[str, Any] = {role: None for role in optional if getattr(columns, role) not in table.column_names}
    columns = replace(columns, **gone)
    known = like.action_names if like is not None else None if actions is None else tuple(actions)
    rows = _usable(rows_of(table, columns, known), columns, least, drop, [str(s) for s in sources])
    first = Path(str(sources[0]).removeprefix("minari:")).stem
    specification = like or specification_of(rows, columns, first, horizon, discount)
    if like is not None and columns.state != like.state_names:
        raise ValueError(
            f"The state columns must be {', '.join(like.state_names)}, as the model learned them, "
            f"got {', '.join(columns.state)}."
        )
    return _transitions(rows, columns, specification)


def _joined(sources: list[str | Path], columns: LogColumns) -> tuple[pa.Table, LogColumns]:
    """All files below each other, with a column that tells them apart where each is an instance."""
    tables = []
    for source in sources:
        if str(source).startswith("minari:"):
            from hipmdp.data.minari import read_minari

            tables.append(read_minari(str(source).removeprefix("minari:")))
        else:
            tables.append(read_table(source))
    if len(tables) == 1:
        return tables[0], columns
    if columns.instance is None:
        names = [str(s).removeprefix("minari:") for s in sources]
        names = [Path(n).stem for n in names] if len({Path(n).stem for n in names}) == len(names) else names
        tables = [t.append_column(FILE, pa.array([n] * len(t))) for n, t in zip(names, tables, strict=True)]
        columns = replace(columns, instance=FILE)
    try:
        return pa.concat_tables(tables, promote_options="permissive"), columns
    except pa.ArrowException as error:
        raise ValueError(f"The log files do not fit together: {str(error).splitlines()[0].rstrip('.')}.") from None


def _usable(rows: LogRows, columns: LogColumns, least: int, drop: bool, sources: list[str]) -> LogRows:
    """The rows that can be learned from: all, or an error; with `drop` the whole episodes among them."""
    where = sources[0] if len(sources) == 1 else "the logs"
    found = problems(rows, columns)
    if found and not drop:
        raise ValueError(_told(rows, found, where))
    bad = np.zeros(len(rows.group), bool)
    for problem in found:
        bad |= problem.rows
    episodes = np.unique(rows.group[bad])
    kept = rows.select(~np.isin(rows.group, episodes))
    steps = np.ones(len(kept.group)) if columns.next_state else ~kept.last
    counts = np.bincount(kept.instance[steps.astype(bool)], minlength=len(rows.instance_names))
    present = np.unique(rows.instance[rows.instance >= 0])
    few = [int(i) for i in present if counts[i] < least]
    if few and not drop:
        name = rows.instance_names[few[0]]
        row = int(rows.place[rows.instance == few[0]].min()) + 1
        raise ValueError(
            f"Instance {name!r} of {where} (row {row}, column {columns.instance or 'none'!r}) has {counts[few[0]]} "
            f"transitions, at least {least} are needed{_more(len(few) - 1, 'instance')}; --drop leaves them out."
        )
    if len(episodes) or few:
        short = ", ".join(rows.instance_names[i] for i in few[:5]) + (", …" if len(few) > 5 else "")
        gone = f" and {len(few)} instances with fewer than {least} transitions ({short})" if few else ""
        kept = kept.select(~np.isin(kept.instance, few))
        lost = len(rows.group) - len(kept.group)
        example = f"; first: {_told(rows, found, where, drop=True)}" if found else ""
        message = f"Left out of {where}: {len(episodes)} episodes with problems{gone}, {lost} rows in all{example}"
        warnings.warn(message, LeftOutWarning, stacklevel=3)
    if len(kept.group) == 0:
        raise ValueError(f"Nothing in {where} can be used: {_told(rows, found, where) if found else 'too few rows'}")
    return kept


def _told(rows: LogRows, found: Iterable[Problem], where: str, drop: bool = False) -> str:
    """The problem that comes first in the file, and how many more there are."""
    firsts = [(int(rows.place[p.rows].min()), p) for p in found]
    place, problem = min(firsts, key=lambda pair: pair[0])
    row = int(np.flatnonzero(problem.rows & (rows.place == place))[0])
    name = rows.instance_names[rows.instance[row]] if rows.instance[row] >= 0 else None
    of = f" (instance {name!r})" if name is not None and len(rows.instance_names) > 1 else ""
    others = sum(int(p.rows.sum()) for p in found) - 1
    rest = "" if drop else f"{_more(others, 'problem')}; --drop leaves such episodes out"
    return f"{where}, row {place + 1}{of}, column {problem.column!r} {problem.tell(row)}{rest}."


def _more(count: int, what: str) -> str:
    return f" (and {count} more {what}{'s' * (count > 1)})" if count > 0 else ""


def _transitions(rows: LogRows, columns: LogColumns, specification: Specification) -> Transitions:
    """Rows as transitions: each row with the next one of its episode, or with its own `next_state`."""
    state, last = unwound(rows.state, columns), rows.last
    if rows.next_state is None:
        start = np.flatnonzero(~last)
        next_state, ends = state[start + 1], last[start + 1]
        terminated = rows.terminated[start + 1]
    else:
        start = np.arange(len(last))
        next_state, ends, terminated = unwound(rows.next_state, columns), last, rows.terminated
    group = rows.group[start]
    begins = np.append(True, group[1:] != group[:-1])
    time = np.arange(len(start)) - np.maximum.accumulate(np.where(begins, np.arange(len(start)), 0))
    # Episodes are numbered within their instance.
    instance = rows.instance[start]
    instances, instance = np.unique(instance, return_inverse=True)
    firsts = np.flatnonzero(begins)
    number = np.zeros(len(firsts), np.int64)
    for i in range(len(instances)):
        mine = instance[firsts] == i
        number[mine] = np.arange(mine.sum())
    durations = durations_of(rows, columns)
    if durations is not None:
        _fits(durations, specification, rows, start)
    data: dict[str, Any] = {
        "state": state[start],
        "action": rows.action[start],
        "reward": np.zeros(len(start)) if rows.reward is None else rows.reward[start],
        "next_state": next_state,
        "terminated": terminated,
        "truncated": ends & ~terminated,
        "instance": instance,
        "episode": number[np.cumsum(begins) - 1],
        "time": time,
    }
    if durations is not None:
        data["duration"] = durations
    names = {i: rows.instance_names[int(code)] for i, code in enumerate(instances)}
    return Transitions(specification, data, names=names)


def _fits(durations: np.ndarray, specification: Specification, rows: LogRows, start: np.ndarray) -> None:
    """A model that learned steps of one length knows nothing of others."""
    step = specification.step
    if step is None or specification.timed or is_regular(durations, step):
        return
    worst = int(np.argmax(np.abs(durations - step)))
    row = int(rows.place[start[worst]]) + 1
    raise ValueError(f"The step after row {row} takes {durations[worst]:g}, but the model learned steps of {step:g}.")
