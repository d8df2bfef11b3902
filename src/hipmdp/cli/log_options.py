"""The flags by which `pretrain` and `adapt` are told what the columns of a log mean."""

from dataclasses import dataclass
from typing import Any

from hipmdp.data.log_columns import LogColumns


@dataclass(frozen=True)
class LogOptions:
    """Your own logs."""

    logs: tuple[str, ...] = ()
    """Parquet, CSV or NPZ files, or Minari datasets (minari:NAME). Without --instance each is one system."""
    episode: str | None = None
    """Column that tells the runs of a system apart; without it each system has one."""
    time: str | None = None
    """Column with the time, a number or a timestamp; without it rows come in order and steps are alike."""
    state: str | None = None
    """Columns that are measured, separated by commas: x,v,angle."""
    action: str | None = None
    """Column with what was chosen in that row: names or whole numbers."""
    terminated: str | None = None
    """Column that is true in the last row of an episode that ended by itself."""
    next_state: str | None = None
    """Columns of the state that followed, where a row is a whole transition."""
    angles: str | None = None
    """Which of the state columns are angles in radians."""
    drop: bool = False
    """Leave out episodes with problems, and say how many, instead of stopping at the first."""

    def columns(self, instance: str | None, reward: str | None, known: dict[str, Any] | None = None) -> LogColumns:
        """What was said, over what a model already knows."""
        said: dict[str, Any] = {
            "state": _names(self.state), "action": self.action, "instance": instance, "episode": self.episode,
            "time": self.time, "reward": reward, "terminated": self.terminated,
            "next_state": _names(self.next_state), "angles": _names(self.angles),
        }  # fmt: skip
        merged = {**(known or {}), **{name: value for name, value in said.items() if value}}
        for name, example in (("state", "x,v,angle"), ("action", "push")):
            if not merged.get(name):
                raise ValueError(f"With --logs, say which columns are the {name}: --{name} {example}.")
        return LogColumns.from_dict({name: list(v) if isinstance(v, tuple) else v for name, v in merged.items()})


NO_LOGS = LogOptions()


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []
