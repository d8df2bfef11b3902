"""Which columns of a log mean what."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from hipmdp._errors import nearest

SHARED = (
    {"time", "state"},
    {"reward", "state"},
    {"reward", "next state"},
    {"reward", "terminated"},
)
"""Roles that one column may have at once: a time or a reward may be measured as well, and an end may pay."""

_SINGLE = ("action", "instance", "episode", "time", "reward", "terminated")


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names from a file for a sentence: on one line, and not too many."""
    shown = [name if name.isprintable() else repr(name) for name in names[:most]]
    return ", ".join(shown) + (", …" if len(names) > most else "")


class MissingColumnError(ValueError):
    """A file lacks a column that was named for it."""

    def __init__(self, role: str, column: str, source: str, known: Sequence[str], *, alone: bool) -> None:
        """`source` lacks `column`, which has `role`, and has `known`; `alone` says that it is the only file."""
        self.role, self.column, self.source, self.known = role, column, source, list(known)
        where = "" if alone else f" in {source}"
        guess = nearest(column, self.known)
        super().__init__(f"Unknown column of the logs {column!r}{where}.{guess} Known: {listed(self.known)}.")


@dataclass(frozen=True)
class LogColumns:
    """Names of columns. A row is a moment: the state, and the action that was taken in it.

    What the action led to is the state of the episode's next row; its last row only ends it (its action and reward may
    be missing). With `next_state` every row is a whole transition instead. A column has one role; only a time or a
    reward may also be a state, and a reward the next state or the end.
    """

    state: tuple[str, ...]
    """What is measured: numbers."""
    action: str
    """What is chosen: names or whole numbers."""
    instance: str | None = None
    """Which system; None: all rows of a file are of one."""
    episode: str | None = None
    """Which run of that system; None: each system has one. An episode ends with its file."""
    time: str | None = None
    """When: a number or a timestamp; None: rows come in order and steps are alike."""
    reward: str | None = None
    """What the action in this row earned; None: there is none."""
    terminated: str | None = None
    """True in the last row of an episode that ended by itself (not because recording stopped)."""
    next_state: tuple[str, ...] = ()
    """The next state, one column for each of `state`, in logs that hold it."""
    angles: tuple[str, ...] = ()
    """Which of `state` are angles in radians: π and −π are the same."""

    def __post_init__(self) -> None:
        _check_kinds(vars(self))
        if not self.state:
            raise ValueError("Name at least one state column.")
        for group in (self.state, self.next_state, self.angles):
            repeated = [name for name in group if group.count(name) > 1]
            if repeated:
                raise ValueError(f"Column {repeated[0]!r} is named twice.")
        if self.next_state and len(self.next_state) != len(self.state):
            raise ValueError(
                f"There must be as many next-state as state columns, got {len(self.next_state)} and {len(self.state)}."
            )
        strangers = [name for name in self.angles if name not in self.state]
        if strangers:
            raise ValueError(f"Angle {strangers[0]!r} is not one of the state columns {', '.join(self.state)}.")
        roles: dict[str, str] = {}
        for role, name in self.roles():
            if name in roles and {role, roles[name]} not in SHARED:
                raise ValueError(f"Column {name!r} is named as {roles[name]} and as {role}: it can be one of them.")
            roles.setdefault(name, role)

    def roles(self) -> Iterator[tuple[str, str]]:
        """(role, column) of all columns that are read."""
        yield from (("state", name) for name in self.state)
        yield from (("next state", name) for name in self.next_state)
        for role in _SINGLE:
            if getattr(self, role) is not None:
                yield role, getattr(self, role)

    def chosen(self, names: Sequence[str], source: str, *, alone: bool) -> list[str]:
        """The columns to read from a file that has `names`; one that it lacks, or has twice, is an error."""
        for role, name in self.roles():
            if name not in names:
                raise MissingColumnError(role, name, source, names, alone=alone)
            if names.count(name) > 1:
                raise ValueError(f"{source!r} has two columns {name!r}: each needs a name of its own.")
        return list(dict.fromkeys(name for _, name in self.roles()))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_dict(values: Any) -> "LogColumns":
        """The inverse of `to_dict`; anything else is a `ValueError`."""
        known = {field.name for field in fields(LogColumns)}
        if not isinstance(values, dict) or not {"state", "action"} <= set(values) <= known:
            raise ValueError(f"Columns of a log must be named by their roles, got {values!r}.")
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        _check_kinds(given)
        return LogColumns(**given)


def _check_kinds(given: dict[str, Any]) -> None:
    """A tuple of names or one name, as the role has it."""
    for role, value in given.items():
        if role not in _SINGLE:
            if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
                raise ValueError(f"{role} must be a tuple of column names, got {value!r}.")
        elif not isinstance(value, str) and (value is not None or role == "action"):
            raise ValueError(f"{role} must be the name of a column, got {value!r}.")
