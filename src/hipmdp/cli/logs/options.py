"""The flags of `pretrain` and `adapt` that say what the columns of a log mean."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

import tyro

from hipmdp.data.logs.columns import LogColumns, MissingColumnError, listed

_Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]
REMEDIES = {
    "instance": "name it with --instance-column, or say --no-instance-column if each file is one system",
    "episode": "name it with --episode, or say --no-episode if each system has one run",
    "time": "name it with --time",
    "action": "name it with --action",
    "next state": "name those columns with --next-state",
    "state": "rename it in the log",
}
"""What to do about a column that a model remembers and a new log lacks."""


@dataclass(frozen=True)
class LogOptions:
    """Your own logs."""

    logs: tuple[str, ...] = ()
    """Parquet, CSV or NPZ files, or Minari datasets (minari:NAME). Without --instance-column each is one system."""
    instance_column: str | None = None
    """Column that says which system a row is of."""
    episode: str | None = None
    """Column that distinguishes the runs of a system; without it each system has one."""
    time: str | None = None
    """Column with the time, a number or a timestamp; without it rows come in order and steps are alike."""
    state: str | None = None
    """Columns that are measured, separated by commas: x,v,angle."""
    action: str | None = None
    """Column with what was chosen in that row: names or whole numbers."""
    terminated: str | None = None
    """Column that is true in the last row of an episode that ended by itself."""
    next_state: str | None = None
    """Columns of the next state, where a row is a whole transition."""
    angles: str | None = None
    """Which of the state columns are angles in radians."""
    no_instance_column: _Flag = False
    """Each file is one system, though the model remembers a column that says which."""
    no_episode: _Flag = False
    """Each system has one run, though the model remembers a column that distinguishes runs."""
    drop: bool = False
    """Leave out episodes with problems, and say how many, instead of stopping at the first."""
    split: bool = False
    """Leave out rows with problems instead: an episode ends before such a row and another begins after it."""

    def columns(self, reward: str | None, known: dict[str, Any] | None = None) -> LogColumns:
        """What the flags say, over what a model remembers."""
        given: dict[str, Any] = {
            "state": _names(self.state), "action": self.action, "instance": self.instance_column,
            "episode": self.episode, "time": self.time, "reward": reward, "terminated": self.terminated,
            "next_state": _names(self.next_state), "angles": _names(self.angles),
        }  # fmt: skip
        absent = {"instance": self.no_instance_column, "episode": self.no_episode}
        for role, said in absent.items():
            if said and given[role]:
                flag = "instance-column" if role == "instance" else role
                raise ValueError(f"--{flag} names a column, and --no-{flag} says that there is none: choose one.")
        merged = {**(known or {}), **{name: value for name, value in given.items() if value}}
        merged |= {role: None for role, said in absent.items() if said}
        for name, example in (("state", "x,v,angle"), ("action", "push")):
            if not merged.get(name):
                raise ValueError(f"With --logs, say which columns are the {name}: --{name} {example}.")
        return LogColumns.from_dict({name: list(v) if isinstance(v, tuple) else v for name, v in merged.items()})

    def complaint(self, error: MissingColumnError, known: dict[str, Any]) -> ValueError:
        """What to say about a column that a file lacks: whether the model remembers it, and what to do."""
        roles = {"instance": self.instance_column, "next state": self.next_state}
        given = roles[error.role] if error.role in roles else getattr(self, error.role)
        remembered = known.get(error.role.replace(" ", "_"))
        if given or not remembered or error.role not in REMEDIES:
            return error
        return ValueError(
            f"The model remembers the {error.role} column {error.column!r}, which {error.source} lacks "
            f"(it has {listed(error.known)}): {REMEDIES[error.role]}."
        )


NO_LOGS = LogOptions()


def refuse_given(reason: str, **flags: bool) -> None:
    """Raise a `ValueError` with the first flag that was given though it means nothing here, and the reason."""
    for name, given in flags.items():
        if given:
            raise ValueError(f"--{name.replace('_', '-')} {reason}.")


def refuse_columns(columns: LogOptions) -> None:
    """Flags about the columns of logs mean nothing without logs."""
    given = {field.name: getattr(columns, field.name) != field.default for field in fields(columns)}
    refuse_given("is for --logs", **given)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []
