"""What later stages need to know about a family without holding the family itself."""

from dataclasses import asdict, dataclass
from typing import Any

_PER_DIMENSION = ("state_names", "state_low", "state_high", "state_centre", "state_scale", "angles")


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
    step: float | None = None
    """Typical duration of a step, where it is known."""
    timed: bool = False
    """Whether durations differ from step to step, so that the model must be told them."""
    rewarded: bool = True
    """False for logs without rewards: the dynamics can be learned, a policy only with a reward function."""

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
        """The inverse of `to_dict`; what does not fit together is a `ValueError`."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        result = Specification(**fields)
        sizes = {len(fields[name]) for name in _PER_DIMENSION}
        names = (*result.state_names, *result.action_names, result.family)
        good = sizes == {result.state_size} and all(isinstance(name, str) for name in names)
        whole = isinstance(result.horizon, int) and not isinstance(result.horizon, bool)
        if not (good and whole and result.horizon > 0 and result.action_count > 0 and 0 < result.discount <= 1):
            raise ValueError("The specification is damaged.")
        return result
