"""Presets of the Double DQN per family: values, not branches.

`PAPER` follows the paper's appendix; reward scales are ours (the paper names none). `DEFAULT` is what was measured
to work better: see benchmarks/results and docs/deviations.md.
"""

from dataclasses import replace

from hipmdp.control.config import DDQNConfig
from hipmdp.families.checks import known_name
from hipmdp.families.specification import Specification

PAPER: dict[str, DDQNConfig] = {
    "grid": DDQNConfig(reward_scale=1e-2),
    "acrobot": DDQNConfig(reward_scale=1e-1),
    "hiv": DDQNConfig(reward_scale=1e-4),
}
DEFAULT: dict[str, DDQNConfig] = {
    "grid": replace(PAPER["grid"], minibatches=5),
    "acrobot": replace(PAPER["acrobot"], minibatches=2),
    "hiv": replace(PAPER["hiv"], squash=1e-2),
}
PRESETS = {"paper": PAPER, "default": DEFAULT}
PLAIN = {
    "paper": DDQNConfig(),
    # Nobody knows how long episodes of an unknown system are: one update per step learns from short ones too.
    "default": DDQNConfig(hidden=(128, 128), minibatches=10, epsilon_decay=0.97, epsilon_floor=0.05),
}
"""For a system of the user's own (measured on CartPole: docs/your-environment.md)."""


def preset(name: str, specification: Specification) -> DDQNConfig:
    """The settings `name` for a family, with the family's γ; a system of the user's own takes plain values."""
    config = PRESETS[known_name("preset", name, PRESETS)].get(specification.family, PLAIN[name])
    return replace(config, discount=specification.discount)
