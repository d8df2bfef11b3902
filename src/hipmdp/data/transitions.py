"""Logged transitions of many instances: arrays with instance and episode ids, checked, split, grown."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hipmdp._units import LARGEST_VALUE
from hipmdp.families.specification import Specification

COLUMNS = (
    "state", "action", "reward", "next_state", "terminated", "truncated", "instance", "episode", "time", "duration",
)  # fmt: skip
_DTYPES = {
    "state": np.float64, "action": np.int32, "reward": np.float64, "next_state": np.float64,
    "terminated": np.bool_, "truncated": np.bool_, "instance": np.int32, "episode": np.int32, "time": np.int32,
    "duration": np.float64,
}  # fmt: skip


class Transitions:
    """A log: one row per transition. Immutable; `extended` shares what is already there instead of copying it.

    Columns are NumPy arrays by name, numbers in natural units and float64: `state` and `next_state` (n, D), `action`,
    `reward`, `terminated` (the MDP ended),
    `truncated` (time was up), the ids `instance` and `episode` (unique within an instance) with the step `time`, and
    `duration`, how long the step took (one, unless it is given).
    """

    def __init__(
        self,
        specification: Specification,
        columns: dict[str, Any],
        thetas: dict[int, dict[str, float]] | None = None,
        names: dict[int, str] | None = None,
    ) -> None:
        """Check and hold `columns`.

        By instance id, `thetas` may hold θ where it is known (for analysis only), and `names` what people call it.
        """
        self.specification = specification
        self.thetas, self.names = dict(thetas or {}), dict(names or {})
        self._chunks: tuple[dict[str, np.ndarray], ...] = (_checked(specification, columns),)
        self._joined: dict[str, np.ndarray] | None = None
        self._ids: set[tuple[int, int]] | None = None
        self._instances: list[int] | None = None

    def __len__(self) -> int:
        return sum(len(chunk["action"]) for chunk in self._chunks)

    def __getattr__(self, name: str) -> np.ndarray:
        if name in COLUMNS:
            return self._columns()[name]
        raise AttributeError(f"Transitions has no attribute {name!r}; its columns are {', '.join(COLUMNS)}.")

    def __repr__(self) -> str:
        return (
            f"Transitions({self.specification.family}: {len(self)} transitions, {len(self.instances)} instances, "
            f"{self.episode_count} episodes)"
        )

    @property
    def instances(self) -> list[int]:
        """The instance ids, sorted."""
        if self._instances is None:
            self._instances = sorted({int(i) for chunk in self._chunks for i in np.unique(chunk["instance"])})
        return list(self._instances)

    def name(self, instance: int) -> str:
        """What people call an instance; its number, where nobody has said."""
        return self.names.get(instance, str(instance))

    @property
    def episode_count(self) -> int:
        """Number of episodes of all instances together."""
        return len(self._episode_ids())

    def extended(self, more: "Transitions") -> "Transitions":
        """This log and `more` after it. Nothing is copied until a column is read."""
        if more.specification != self.specification:
            raise ValueError(
                f"Cannot join transitions of {self.specification.family!r} and {more.specification.family!r}: "
                "their specifications differ."
            )
        both = self._episode_ids() & more._episode_ids()
        if both:
            instance, episode = min(both)
            raise ValueError(
                f"Both logs hold episode {episode} of instance {instance}: use `renumbered` if the systems differ."
            )
        for instance, theta in more.thetas.items():
            if self.thetas.get(instance, theta) != theta:
                raise ValueError(f"The two logs give instance {instance} different parameters: use `renumbered`.")
        for instance, name in more.names.items():
            if self.names.get(instance, name) != name:
                raise ValueError(f"The two logs give instance {instance} different names: use `renumbered`.")
        thetas, names = {**self.thetas, **more.thetas}, {**self.names, **more.names}
        longer = _from_chunks(self.specification, (*self._chunks, *more._chunks), thetas, names)
        longer._ids = self._episode_ids() | more._episode_ids()
        return longer

    def renumbered(self, first: int) -> "Transitions":
        """The same log with its instances called `first`, `first` + 1, … in order."""
        new = {old: first + k for k, old in enumerate(self.instances)}
        columns = {**self._columns(), "instance": np.vectorize(new.__getitem__, otypes=[np.int32])(self.instance)}
        thetas = {new[i]: theta for i, theta in self.thetas.items()}
        names = {new[i]: name for i, name in self.names.items()}
        return _from_chunks(self.specification, (columns,), thetas, names)

    def _episode_ids(self) -> set[tuple[int, int]]:
        if self._ids is None:
            pairs = [np.unique(np.stack([c["instance"], c["episode"]], axis=1), axis=0) for c in self._chunks]
            self._ids = {(int(i), int(e)) for part in pairs for i, e in part}
        return self._ids

    def select(self, mask: np.ndarray) -> "Transitions":
        """The rows where `mask` holds (or that it indexes)."""
        columns = {name: column[mask] for name, column in self._columns().items()}
        kept = {int(i) for i in np.unique(columns["instance"])}
        thetas = {i: theta for i, theta in self.thetas.items() if i in kept}
        names = {i: name for i, name in self.names.items() if i in kept}
        return _from_chunks(self.specification, (columns,), thetas, names)

    def of_instance(self, instance: int) -> "Transitions":
        """The rows of one instance."""
        if instance not in self.instances:
            raise ValueError(f"There is no instance {instance} in this log; it has {_listed(self.instances)}.")
        return self.select(self.instance == instance)

    def split_by_instance(self, held_out: Iterable[int]) -> tuple["Transitions", "Transitions"]:
        """(the other instances, the instances held out)."""
        ids = {int(i) for i in held_out}
        unknown = sorted(ids - set(self.instances))
        if unknown:
            raise ValueError(f"There is no instance {unknown[0]} in this log; it has {_listed(self.instances)}.")
        mask = np.isin(self.instance, sorted(ids))
        return self.select(~mask), self.select(mask)

    def split_by_time(self, share: float) -> tuple["Transitions", "Transitions"]:
        """(the first `share` of every instance's episodes, the later ones), so that nothing later leaks."""
        if not 0 < share < 1:
            raise ValueError(f"The share of a split must be between 0 and 1, got {share}.")
        first = np.zeros(len(self), bool)
        for instance in self.instances:
            rows = self.instance == instance
            episodes = np.unique(self.episode[rows])
            first[rows] = np.isin(self.episode[rows], episodes[: max(1, round(share * len(episodes)))])
        return self.select(first), self.select(~first)

    def episodes(self) -> Iterator["Transitions"]:
        """Each episode of each instance, in the order of their first rows."""
        pairs = np.stack([self.instance, self.episode], axis=1)
        _, first = np.unique(pairs, axis=0, return_index=True)
        for row in np.sort(first):
            yield self.select((pairs == pairs[row]).all(axis=1))

    def episode_returns(self) -> dict[tuple[int, int], float]:
        """Undiscounted return by (instance, episode)."""
        pairs, inverse = np.unique(np.stack([self.instance, self.episode], axis=1), axis=0, return_inverse=True)
        sums = np.bincount(inverse.ravel(), weights=self.reward.astype(np.float64), minlength=len(pairs))
        return {(int(i), int(e)): float(s) for (i, e), s in zip(pairs, sums, strict=True)}

    def _columns(self) -> dict[str, np.ndarray]:
        if self._joined is None:
            if len(self._chunks) > 1:
                joined = {name: np.concatenate([chunk[name] for chunk in self._chunks]) for name in COLUMNS}
                for column in joined.values():
                    column.flags.writeable = False
                self._chunks = (joined,)
            self._joined = self._chunks[0]
        return self._joined


def empty_transitions(specification: Specification, thetas: dict[int, dict[str, float]] | None = None) -> Transitions:
    """A log without rows."""
    columns: dict[str, Any] = {name: np.zeros(0) for name in COLUMNS}
    columns |= {name: np.zeros((0, specification.state_size)) for name in ("state", "next_state")}
    return Transitions(specification, columns, thetas)


def _from_chunks(
    specification: Specification,
    chunks: tuple[dict[str, np.ndarray], ...],
    thetas: dict[int, dict[str, float]],
    names: dict[int, str],
) -> Transitions:
    """Without checking again what was checked before."""
    result = Transitions.__new__(Transitions)
    result.specification, result.thetas, result.names, result._chunks = specification, thetas, names, chunks
    result._joined, result._ids, result._instances = None, None, None
    return result


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids[:8])) + (", …" if len(ids) > 8 else "")


def _checked(specification: Specification, columns: dict[str, Any]) -> dict[str, np.ndarray]:
    columns = {"duration": np.ones(len(columns.get("action", ()))), **columns}
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise ValueError(f"Transitions need the column {missing[0]!r}; given are {', '.join(columns) or 'none'}.")
    result: dict[str, np.ndarray] = {}
    for name in COLUMNS:
        raw = np.asarray(columns[name])
        if raw.dtype == object or raw.dtype.kind in "USV":
            raise ValueError(f"Column {name!r} must hold numbers, got {raw.dtype}.")
        if raw.dtype.kind == "f" and not np.isfinite(raw).all():
            row = int(np.argwhere(~np.isfinite(raw))[0][0])
            raise ValueError(f"Column {name!r} must be finite, but row {row} is not.")
        if _DTYPES[name] is np.int32 and raw.dtype.kind == "f" and (raw != np.round(raw)).any():
            row = int(np.flatnonzero(raw != np.round(raw))[0])
            raise ValueError(f"Column {name!r} must hold whole numbers, but row {row} is {raw[row]:g}.")
        limit = LARGEST_VALUE if _DTYPES[name] is np.float64 else 2**31 - 1
        if raw.size and raw.dtype.kind in "iuf" and np.abs(raw.astype(np.float64)).max() > limit:
            row = int(np.argmax(np.abs(raw.astype(np.float64)).reshape(len(raw), -1).max(axis=1)))
            raise ValueError(f"Column {name!r} must not exceed {limit:g}, but row {row} does.")
        result[name] = raw.astype(_DTYPES[name])
    size, count = specification.state_size, len(result["action"])
    for name, column in result.items():
        shape = (count, size) if name in ("state", "next_state") else (count,)
        if column.shape != shape:
            raise ValueError(f"Column {name!r} must have shape {shape}, got {column.shape}.")
    actions = result["action"]
    if count and not ((actions >= 0) & (actions < specification.action_count)).all():
        row = int(np.flatnonzero((actions < 0) | (actions >= specification.action_count))[0])
        raise ValueError(
            f"Column 'action' must be from 0 to {specification.action_count - 1}, but row {row} is {actions[row]}."
        )
    for name in ("instance", "episode", "time"):
        if count and int(result[name].min()) < 0:
            row = int(np.argmin(result[name]))
            raise ValueError(f"Column {name!r} must not be negative, but row {row} is {result[name][row]}.")
    if count:
        keys = np.stack([result["instance"], result["episode"], result["time"]], axis=1)
        order = np.lexsort(keys.T[::-1])
        same = (keys[order][1:] == keys[order][:-1]).all(axis=1)
        if same.any():
            row = int(order[1:][same][0])
            i, e, t = keys[row]
            raise ValueError(f"Row {row} repeats time {t} of episode {e} of instance {i}; each must be unique.")
    if count and float(result["duration"].min()) <= 0:
        row = int(np.argmin(result["duration"]))
        raise ValueError(f"Column 'duration' must be positive, but row {row} is {result['duration'][row]:g}.")
    both = result["terminated"] & result["truncated"]
    if both.any():
        row = int(np.flatnonzero(both)[0])
        raise ValueError(f"Row {row} is both terminated and truncated; an episode that ended was not cut off.")
    for column in result.values():
        column.flags.writeable = False
    return result
