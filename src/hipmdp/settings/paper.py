"""The paper's values for its three families, to the letter.

They follow the paper's appendix, and the released code where the paper is silent (K, N_u, epochs); reward scales are
ours, as the paper names none. Other families have the defaults of the settings, which are the paper's where it says
the same for all.
"""

from dataclasses import dataclass, replace

from hipmdp.families.specification import Specification
from hipmdp.settings.adaptation import AdaptationConfig
from hipmdp.settings.dqn import DDQNConfig
from hipmdp.settings.dynamics import DynamicsConfig


@dataclass(frozen=True)
class PaperPreset:
    """All settings of one family."""

    dqn: DDQNConfig
    """In real episodes and in imagination."""
    dynamics: DynamicsConfig
    adaptation: AdaptationConfig


def _paper_dynamics(
    hidden: tuple[int, ...], rate: float, latent_epochs: int, updates: int, alpha: float = 0.5
) -> DynamicsConfig:
    """100 epochs of 160/32 steps on W, then as many (grid: 300) on the latents; `updates` such turns when tuning."""
    return DynamicsConfig(
        hidden=hidden,
        alpha=alpha,
        weight_draws=50,
        batch_size=32,
        learning_rate=rate,
        latent_learning_rate=5e-4,
        decay=False,
        weight_steps=500,
        latent_steps=5 * latent_epochs,
        rounds=50,
        tune_rounds=updates,
        tune_learning_rate=rate,
        tune_widening=0,
        tune_batch_size=32,
        scratch_rounds=updates,
        latent_tries=1,
        infer_steps=5 * latent_epochs,
        infer_learning_rate=5e-4,
        infer_draws=50,
    )


def _paper(dqn: DDQNConfig, dynamics: DynamicsConfig, imagined_episodes: int) -> PaperPreset:
    adaptation = AdaptationConfig(
        imagined_episodes=imagined_episodes,
        weight_draws=50,
        mean_weights=True,
        latent_temperature=0,
        validation_episodes=0,
        clear_replay_on_retune=False,
        revert_to_better_policy=False,
        update_rounds=10,
    )
    return PaperPreset(dqn, dynamics, adaptation)


PAPER: dict[str, PaperPreset] = {
    "grid": _paper(DDQNConfig(reward_scale=1e-2), _paper_dynamics((25, 25, 25), 5e-5, 300, 10), 1000),
    "acrobot": _paper(DDQNConfig(reward_scale=1e-1), _paper_dynamics((32, 32), 2.5e-4, 100, 5), 500),
    "hiv": _paper(DDQNConfig(reward_scale=1e-4), _paper_dynamics((32, 32), 2.5e-4, 100, 10, alpha=0.45), 500),
}


def paper_preset(specification: Specification) -> PaperPreset:
    """The paper's values for a family, with its γ."""
    found = PAPER.get(specification.family) or PaperPreset(DDQNConfig(), DynamicsConfig(), AdaptationConfig())
    dqn = replace(found.dqn, discount=specification.discount)
    return replace(found, dqn=dqn, adaptation=replace(found.adaptation, dqn=dqn))
