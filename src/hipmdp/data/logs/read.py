"""`read_logs`: other people's logs as transitions. What is wrong is named by row and column."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hipmdp.data.logs.columns import LogColumns
from hipmdp.data.logs.faults import LeftOutWarning, usable
from hipmdp.data.logs.rows import LogRows, rows_of
from hipmdp.data.logs.specification import durations_of, is_regular, specification_of, unwound
from hipmdp.data.logs.tables import read_table
from hipmdp.data.transitions import Transitions
from hipmdp.families.specification import Specification

__all__ = ["LEAST", "LeftOutWarning", "read_logs"]
LEAST = 10
"""Transitions that an instance must have to be learned from."""
OPTIONAL = ("reward", "terminated")
"""Roles whose column may be missing: without the others, rows of different systems, runs or times would be joined."""
_MINARI = "minari:"


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
    split: bool = False,
) -> Transitions:
    """Read Parquet, CSV or NPZ files, or Minari datasets (`minari:NAME`), as one log.

    Several files with no `columns.instance` are one instance each, called like the file. `like` is the specification of
    an earlier log that this one must fit: its actions, its steps. `actions` names all actions in their order (by
    default those that occur, sorted); `optional` names roles whose column may be missing ("reward", "terminated");
    `horizon` is how long imagined episodes are. An instance needs `least` transitions. The first problem is an error
    that names its row and column. With `drop`, episodes that have one are left out; with `split`, an episode ends
    before a bad row and another begins after it. A warning (`LeftOutWarning`) says how many rows that cost.
    """
    sources = [logs] if isinstance(logs, (str, Path)) else list(logs)
    if drop and split:
        raise ValueError("Choose drop (episodes with a problem go) or split (only rows with one go), not both.")
    strangers = [role for role in optional if role not in OPTIONAL]
    if strangers:
        raise ValueError(
            f"Only {' and '.join(OPTIONAL)} can be optional, not {strangers[0]!r}: name no column instead."
        )
    known = like.action_names if like is not None else _named(actions)
    tables, columns = _tables(sources, columns, optional)
    places, names = tuple(str(s) for s in sources), _names(sources)
    rows = usable(rows_of(tables, columns, known, places, names), columns, least, drop=drop, split=split)
    first = Path(str(sources[0]).removeprefix(_MINARI)).stem
    specification = like or specification_of(rows, columns, first, horizon, discount)
    if like is not None and columns.state != like.state_names:
        raise ValueError(
            f"The state columns must be {', '.join(like.state_names)}, as the model learned them, "
            f"got {', '.join(columns.state)}."
        )
    return _transitions(rows, columns, specification)


def _named(actions: Sequence[str] | None) -> tuple[str, ...] | None:
    """The actions that a user names."""
    if actions is None:
        return None
    if isinstance(actions, str) or not all(isinstance(name, str) and name.strip() for name in actions):
        raise ValueError(f"Actions must be a list of names, got {actions!r}.")
    repeated = [name for name in actions if list(actions).count(name) > 1]
    if repeated:
        raise ValueError(f"Action {repeated[0]!r} is named twice.")
    return tuple(actions)


def _tables(
    sources: list[str | Path], columns: LogColumns, optional: Sequence[str]
) -> tuple[list[pa.Table], LogColumns]:
    """A table per file, with the columns that are read, and these without optional ones that no file has."""
    if not sources:
        raise ValueError("Name at least one log file.")
    files = [str(s) if _is_minari(s) else str(Path(s).resolve()) for s in sources]
    repeated = [str(source) for source, file in zip(sources, files, strict=True) if files.count(file) > 1]
    if repeated:
        raise ValueError(f"The log {repeated[0]!r} is named twice.")
    found: set[str] = set()

    def without(names: Sequence[str]) -> LogColumns:
        gone: dict[str, Any] = {role: None for role in optional if getattr(columns, role) not in names}
        return replace(columns, **gone)

    def read(source: str | Path) -> pa.Table:
        def choose(names: list[str]) -> list[str]:
            found.update(names)
            return without(names).chosen(names, str(source), alone=len(sources) == 1)

        if not _is_minari(source):
            return read_table(source, choose)
        from hipmdp.data.logs.minari import read_minari

        table = read_minari(str(source).removeprefix(_MINARI))
        return table.select(choose(table.column_names))

    tables = [read(source) for source in sources]
    columns = without(sorted(found))
    for table, source in zip(tables, sources, strict=True):
        # An optional column that only some files have would be missing without a word.
        columns.chosen(table.column_names, str(source), alone=len(sources) == 1)
    return tables, columns


def _is_minari(source: str | Path) -> bool:
    return str(source).startswith(_MINARI)


def _names(sources: list[str | Path]) -> tuple[str, ...]:
    """What systems are called that have a file each; the only one is 0."""
    if len(sources) == 1:
        return ("0",)
    whole = [str(s).removeprefix(_MINARI) for s in sources]
    stems = [Path(name).stem for name in whole]
    return tuple(stems if len(set(stems)) == len(stems) else whole)


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
    place = rows.place[start[worst]]
    of = f" of {rows.source(place)}" if len(rows.sources) > 1 else ""
    raise ValueError(
        f"The step after row {rows.row(place)}{of} takes {durations[worst]:g}, but the model learned steps of {step:g}."
    )
