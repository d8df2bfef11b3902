"""Settings of the search for the best returns known, by which instance sets are frozen."""

from dataclasses import dataclass

from hipmdp.settings.dqn import DDQNConfig


@dataclass(frozen=True)
class SearchConfig:
    """How long and with what settings to search."""

    dqn: DDQNConfig
    episodes: int
    """Episodes of one search."""
    ticks: int
    """Ticks between evaluations."""
