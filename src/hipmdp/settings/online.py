"""Settings of `online`: which models are tried, and how instances follow one another."""

from dataclasses import dataclass, field

from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dynamics import DynamicsConfig


@dataclass(frozen=True)
class GrowthConfig:
    """Which models are tried, and how they are fitted."""

    sizes: tuple[tuple[int, ...], ...] = ((8, 8), (32, 32), (64, 64))
    """Hidden layers of the candidates, from the smallest."""
    choice_rounds: int = 1500
    """Rounds of the fits by which sizes are compared."""
    dynamics: DynamicsConfig = field(default_factory=lambda: DynamicsConfig(rounds=4000))
    """Everything else of a fit; `rounds` are those of the fit that is used."""

    def __post_init__(self) -> None:
        if not self.sizes or any(not size or min(size) < 1 for size in self.sizes):
            raise ValueError(f"sizes must name at least one network, each with layers of a unit or more: {self.sizes}.")


@dataclass(frozen=True)
class OnlineConfig:
    """How instances are learned one after the other."""

    growth: GrowthConfig
    """Which models are tried."""
    amortise: AmortiseConfig
    """How Q(s, w) is learned; the model is young, so less of it than after a large batch."""
    information_weight: float = 0.1
    """Weight of the expected information about w_b (`BeliefActor`)."""
    epsilon: float = 0.2
    """Share of random actions in the episode after a misjudged one; where the model is lost, all are random."""
    exploring_instances: int = 3
    """While fewer instances than this are known, all episodes after an instance's first explore with that share."""
    misjudged_factor: float = 2.0
    """A model whose error on an episode is more than this times its held-out error misjudges the system."""
    worse_share: float = 0.1
    """So does one with which an episode goes worse than three quarters of the imagined ones, by this share of their
    median."""
    refits: int = 2
    """How often everything is learned anew while one instance lasts, before its last episode."""
    range_margin: float = 0.5
    """How far beyond the range of the data, as a share of it, imagination goes. The episodes so far need not hold the
    goal: that T̂ extrapolates is worth a try, and the real system corrects it."""
    growth_factor: float = 1.5
    """When 𝒟 is this many times what it was, the size is chosen anew, and after an instance everything is learned anew.
    An instance that was not misjudged is no reason to."""
