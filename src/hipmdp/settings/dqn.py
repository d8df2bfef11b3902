"""Settings of the Double DQN, with where each value comes from; presets are values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DDQNConfig:
    """Everything the learner needs besides the step function. "Paper" is its appendix "Deep Q-Network"."""

    hidden: tuple[int, ...] = (256, 512)
    """Units of the ReLU layers (paper)."""
    normalised: bool = False
    """Whether there is a layer normalisation before every ReLU (paper: none)."""
    learning_rate: float = 5e-4
    """Of Adam (paper)."""
    max_gradient_norm: float = 2.5
    """Global L2 norm at which gradients are clipped (paper)."""
    target_rate: float = 0.005
    """τ of θ⁻ ← τ θ + (1−τ) θ⁻, after every mini-batch (paper)."""
    steps_per_phase: int = 10
    """N_π: steps of each lane between two update phases (paper)."""
    minibatches: int = 1
    """Mini-batches per phase and lane (paper: one)."""
    batch_size: int = 50
    """Transitions per mini-batch (not in the paper; released code: up to 250)."""
    epsilon_start: float = 1.0
    """ε of the first episode (paper); less for a learner that goes on from a policy."""
    epsilon_decay: float = 0.995
    """ε = start · decay^episode (paper)."""
    epsilon_floor: float = 0.0
    """Smallest ε (paper: none; released code: 0.15)."""
    longest_run: int = 1
    """Steps for which a random action is held, at most (`hipmdp.control.exploration`; paper: 1)."""
    discount: float = 0.99
    """γ (not in the paper; released code). `preset` puts the family's own here."""
    priority_exponent: float = 0.2
    """Exponent a of prioritized replay (paper)."""
    importance_exponent: float = 0.1
    """Exponent b of the importance weights (paper)."""
    reward_scale: float | None = 1.0
    """Rewards are multiplied by this before learning, to be of order one; returns are reported unscaled. None: by one
    over the size of a typical reward (`hipmdp.control.reward_unit`)."""
    squash: float = 0.0
    """Learn h(Q) instead of Q, h(x) = sign(x) log(1 + squash |x|) / squash; 0 turns it off. It suits returns that span
    many powers of ten; in a deterministic MDP the best policy stays the best."""
    restart_share: float = 0.0
    """Share of episodes that start from a state met before, not at the start (simulators and imagination only)."""
    lanes: int = 1
    """Episodes run side by side."""
