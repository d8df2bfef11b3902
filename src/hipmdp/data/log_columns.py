"""Which columns of a log mean what."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class LogColumns:
    """Names of columns. A row is a moment: the state, and the action that was taken in it.

    What the action led to is the state of the episode's next row; its last row only ends it (its action and reward may
    be missing). With `next_state` every row is a whole transition instead.
    """

    state: tuple[str, ...]
    """What is measured: numbers."""
    action: str
    """What is chosen: names or whole numbers."""
    instance: str | None = None
    """Which system; None: all rows are of one."""
    episode: str | None = None
    """Which run of that system; None: each system has one."""
    time: str | None = None
    """When: a number or a timestamp; None: rows come in order and steps are alike."""
    reward: str | None = None
    """What the action in this row earned; None: there is none."""
    terminated: str | None = None
    """True in the last row of an episode that ended by itself (not because recording stopped)."""
    next_state: tuple[str, ...] = ()
    """The state that followed, one column for each of `state`, in logs that hold it."""
    angles: tuple[str, ...] = ()
    """Which of `state` are angles in radians: π and −π are the same."""

    def __post_init__(self) -> None:
        if not self.state:
            raise ValueError("Name at least one state column.")
        for group in (self.state, self.next_state):
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

    @property
    def used(self) -> list[str]:
        """All columns that are read."""
        single = (self.action, self.instance, self.episode, self.time, self.reward, self.terminated)
        return list(dict.fromkeys([*self.state, *self.next_state, *(name for name in single if name is not None)]))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "LogColumns":
        """The inverse of `to_dict`."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return LogColumns(**fields)
