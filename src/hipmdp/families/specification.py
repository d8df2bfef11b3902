"""What later stages need to know about a family without holding the family itself."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Specification:
    """Names, bounds and counts of (S, A); plain values, so that it can be written into any file."""

    family: str
    """Name of the family (or of the user's own system)."""
    state_names: tuple[str, ...]
    """One name per state dimension."""
    state_low: tuple[float, ...]
    """Smallest value of each state dimension."""
    state_high: tuple[float, ...]
    """Largest value of each state dimension."""
    state_centre: tuple[float, ...]
    """A typical value of each state dimension, for networks that have no data to standardise with."""
    state_scale: tuple[float, ...]
    """A typical spread of each state dimension, likewise."""
    angles: tuple[bool, ...]
    """True where a state dimension is an angle in [-π, π] whose differences must be wrapped."""
    action_names: tuple[str, ...]
    """One name per action."""
    horizon: int
    """Steps after which an episode is cut off (truncated, not terminated)."""
    discount: float
    """γ used for learning; returns are undiscounted sums."""

    @property
    def state_size(self) -> int:
        """Number of state dimensions D."""
        return len(self.state_names)

    @property
    def action_count(self) -> int:
        """Number of actions |A|."""
        return len(self.action_names)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Specification":
        """The inverse of `to_dict`."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return Specification(**fields)
