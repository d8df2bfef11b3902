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


def preset(name: str, specification: Specification) -> DDQNConfig:
    """The settings `name` for a family, with the family's γ; a system of the user's own takes plain values."""
    config = PRESETS[known_name("preset", name, PRESETS)].get(specification.family, DDQNConfig())
    return replace(config, discount=specification.discount)
