"""Settings of `amortise`, which learns Q(s, w)."""

from dataclasses import dataclass, field

from hipmdp.settings.dqn import DDQNConfig


@dataclass(frozen=True)
class AmortiseConfig:
    """How Q(s, w) is learned, and how it acts at a new instance."""

    dqn: DDQNConfig = field(default_factory=DDQNConfig)
    """The Double DQN inside imagination."""
    episodes: int = 4000
    """Imagined episodes."""
    pools: int = 20
    """How often members are drawn anew; after each pool the policy is evaluated."""
    latent_samples: int = 64
    """Members in a pool, one per imagined episode in turn."""
    latent_spread: float = 0.5
    """How far a drawn w is from a training latent, in standard deviations of the training latents."""
    latent_noise: float = 0.2
    """How far the w that the policy gets is from the true one, likewise, in half of the members."""
    validation_draws: int = 1
    """Weight draws per training latent by which policies are compared."""
    capacity: int = 1_000_000
    """Transitions that the replay holds at most."""
