"""Settings of the parallelised Q-network, with where each value comes from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PQNConfig:
    """Everything the learner needs besides the step function. "PQN" is Gallici et al., ICLR 2025."""

    hidden: tuple[int, ...] = (256, 256)
    """Units of the ReLU layers, each behind a layer normalisation (PQN), which stands in for a target network."""
    learning_rate: float = 5e-4
    """Of rectified Adam, at the start; it falls linearly to a hundredth (PQN)."""
    max_gradient_norm: float = 10.0
    """Global L2 norm at which gradients are clipped (PQN)."""
    groups: int = 16
    """Weight draws of T̂ in use at a time."""
    members: int = 16
    """Lanes per weight draw, each with a member of its own: groups × members episodes run side by side."""
    steps_per_phase: int = 32
    """Steps of each lane between two update phases (PQN)."""
    epochs: int = 2
    """How often an update phase goes through the steps before it (PQN)."""
    minibatches: int = 8
    """Mini-batches per epoch."""
    trace_decay: float = 0.65
    """λ of Q(λ) (PQN)."""
    epsilon_start: float = 1.0
    """ε at the beginning."""
    epsilon_again: float = 0.2
    """ε at the beginning of every further round, at most: there is a policy already."""
    epsilon_floor: float = 0.02
    """ε at the end of a round."""
    exploring_share: float = 0.5
    """Share of a round over which ε falls to its floor, linearly."""
    longest_run: int = 1
    """Steps for which a random action is held, at most (`DDQNConfig.longest_run`)."""
    discount: float = 0.99
    """γ; the recipe puts the family's own here."""
    reward_unit: float | None = None
    """What rewards are divided by, to be of order one; None: the size of a typical one
    (`hipmdp.control.reward_unit`)."""
    squash: float = 0.01
    """Learn h(Q) instead of Q (`DDQNConfig.squash`)."""

    def __post_init__(self) -> None:
        if self.reward_unit is not None and not self.reward_unit > 0:
            raise ValueError(f"reward_unit of PQNConfig must be positive, got {self.reward_unit}.")

    @property
    def lanes(self) -> int:
        """Episodes side by side."""
        return self.groups * self.members

    @property
    def steps(self) -> int:
        """Steps of all lanes between two update phases."""
        return self.lanes * self.steps_per_phase
