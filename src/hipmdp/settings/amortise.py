"""Settings of `amortise`, which learns Q(s, w)."""

from dataclasses import dataclass, field

from hipmdp.settings.pqn import PQNConfig


@dataclass(frozen=True)
class AmortiseConfig:
    """How Q(s, w) is learned."""

    pqn: PQNConfig = field(default_factory=PQNConfig)
    """The learner inside imagination."""
    steps: int = 8_000_000
    """Imagined steps of all lanes together."""
    pools: int = 30
    """How often members are drawn anew; after each pool the policy is evaluated."""
    neighbours: int = 4
    """A drawn w lies between a training latent and one of so many nearest ones."""
    latent_reach: float = 0.35
    """How far on the way between them it is at most, in standard deviations of the training latents (RMS over the
    dimensions): what is between members that are far apart may be like none."""
    latent_spread: float = 0.2
    """How far it is off that way, likewise."""
    latent_noise: float = 0.1
    """How far the w that the policy gets is from the true one, likewise, in half of the members."""
    validation_draws: int = 1
    """Weight draws per training latent by which policies are compared."""

    def __post_init__(self) -> None:
        if self.neighbours < 1 or min(self.latent_reach, self.latent_spread, self.latent_noise) < 0:
            raise ValueError("AmortiseConfig needs at least one of `neighbours`, and no negative distances.")

    @property
    def iterations(self) -> int:
        """Update phases in all: at least one per pool."""
        return max(self.pools, round(self.steps / self.pqn.steps))
