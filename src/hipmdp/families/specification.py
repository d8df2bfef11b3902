"""What later stages need to know about a family without holding the family itself."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hipmdp._typed import typed

_Values = TypeVar("_Values", jax.Array, np.ndarray)
_PER_DIMENSION = ("state_names", "state_low", "state_high", "state_centre", "state_scale", "angles")


def wrap_angle(angle: _Values) -> _Values:
    """The same angle in [−π, π]; values already there are returned unchanged, to the bit. JAX or NumPy."""
    xp: Any = np if isinstance(angle, np.ndarray) else jnp
    turns = xp.round(angle / (2 * math.pi))
    return xp.clip(angle - turns * (2 * math.pi), -math.pi, math.pi)


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
    """Whether durations differ from step to step, so that they are an input of the model."""
    rewarded: bool = True
    """False for logs without rewards: the dynamics can be learned, a policy only with a reward function."""
    origin: tuple[float, ...] = ()
    """Where T̂ and policies measure each state dimension from (in natural units); empty: from zero. Logs that lie far
    from zero have one: float32 has seven digits. Families compute in float32 themselves, from zero."""

    reward_unit: float = 1.0
    """The size of a typical reward, for learning rewards; logs have their own."""

    def __post_init__(self) -> None:
        # One way to write it, as specifications are compared.
        if self.origin and not any(self.origin):
            object.__setattr__(self, "origin", ())

    @property
    def state_size(self) -> int:
        """Number of state dimensions D."""
        return len(self.state_names)

    @property
    def action_count(self) -> int:
        """Number of actions |A|."""
        return len(self.action_names)

    def wrap_angles(self, values: _Values) -> _Values:
        """States, or differences of states, (…, D), with those dimensions wrapped that are angles."""
        if not any(self.angles):
            return values
        xp: Any = np if isinstance(values, np.ndarray) else jnp
        return xp.where(np.broadcast_to(np.asarray(self.angles), values.shape), wrap_angle(values), values)

    def from_origin(self, states: Any) -> np.ndarray:
        """States in natural units as the float32 numbers that everything hot computes with; `natural` is the inverse.

        This is the only way from a log to float32; the difference is taken in float64.
        """
        with np.errstate(over="ignore"):
            values = np.asarray(states)
            values = (values - np.asarray(self.origin) if self.origin else values).astype(np.float32)
        far = np.argwhere(~np.isfinite(values))
        if len(far):
            raise ValueError(
                f"State {self.state_names[far[0][-1]]!r} has a value too far from the others for float32: give it in "
                "other units."
            )
        return values

    def natural(self, states: Any) -> np.ndarray:
        """States as `from_origin` gives them, in natural units and float64."""
        values = np.asarray(states, np.float64)
        return values + np.asarray(self.origin) if self.origin else values

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """`state_low` and `state_high` from the origin, in float32; bounds may be infinite."""
        zero = np.asarray(self.origin or 0.0)
        with np.errstate(over="ignore"):
            low, high = (
                np.asarray(bound - zero, np.float32) for bound in map(np.asarray, (self.state_low, self.state_high))
            )
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values, without the units of a log where they are the usual ones."""
        usual = {"origin": (), "reward_unit": 1.0}
        values = {k: v for k, v in asdict(self).items() if k not in usual or v != usual[k]}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Specification":
        """The inverse of `to_dict`; fields of another type, or that do not fit together, are a `ValueError`."""
        result: Specification = typed(Specification, values, "specification")
        if {len(getattr(result, name)) for name in _PER_DIMENSION} != {result.state_size} or not result.state_size:
            raise ValueError("specification must say the same number of state dimensions everywhere")
        if not all(math.isfinite(x) for x in result.state_centre) or not all(
            0 < x < math.inf for x in result.state_scale
        ):
            raise ValueError("specification.state_centre and state_scale must be finite, and scales positive")
        if not (result.horizon > 0 and result.action_count > 0 and 0 < result.discount <= 1):
            raise ValueError("specification must have a horizon, actions, and a discount in (0, 1]")
        if result.step is not None and not 0 < result.step < math.inf:
            raise ValueError("specification.step must be positive")
        if len(result.origin) not in (0, result.state_size) or not all(math.isfinite(x) for x in result.origin):
            raise ValueError("specification.origin must have a finite number per state dimension, or none")
        if not 0 < result.reward_unit < math.inf:
            raise ValueError("specification.reward_unit must be positive")
        return result


@dataclass(frozen=True)
class Parameter:
    """One hidden parameter, for people who read a report."""

    name: str
    baseline: float
    symbol: str = ""
    meaning: str = ""
    unit: str = ""
    varied: bool = True
    """Whether the prior varies it."""


@dataclass(frozen=True)
class FamilyFacts:
    """What a report needs to know of a family: plain values that are stored with results."""

    states: tuple[str, ...]
    """One name per state dimension."""
    actions: tuple[str, ...]
    """One name per action."""
    parameters: tuple[Parameter, ...]
    horizon: int
    """Steps after which an episode is truncated."""
    success: str = "terminated"
    """What a successful episode has done, in a word or two."""
    picture: str = "chart"
    """The kind of picture that shows an episode: grid, compass, acrobot, hiv, or chart."""
    options: dict[str, float] = field(default_factory=dict)
    """Numbers that this kind of picture needs."""

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "FamilyFacts":
        """The inverse of `dataclasses.asdict`, through JSON; what does not fit is a `ValueError`."""
        facts: FamilyFacts = typed(FamilyFacts, values, "the facts of the family")
        numbers = [*facts.options.values(), *(parameter.baseline for parameter in facts.parameters)]
        if not all(math.isfinite(number) for number in numbers) or facts.horizon < 0:
            raise ValueError("the facts of the family must be finite numbers")
        return facts
