"""Presets of the dynamics model per family: values, not branches.

`PAPER` follows the paper's appendix, and the released code where the paper is silent (K, N_u, epochs). `DEFAULT` is
what was measured to work better: see benchmarks/results and docs/deviations.md.
"""

from dataclasses import replace

from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.families.checks import known_name
from hipmdp.families.specification import Specification

GRID, ACROBOT, HIV = (
    DynamicsConfig(hidden=(25, 25, 25), rounds=16_000, largest_count=1000, rho_rate_factor=10),
    DynamicsConfig(hidden=(32, 32)),
    DynamicsConfig(hidden=(32, 32), alpha=0.45),
)
DEFAULT: dict[str, DynamicsConfig] = {"grid": GRID, "acrobot": ACROBOT, "hiv": HIV}


def _paper(config: DynamicsConfig, rate: float, latent_epochs: int, updates: int) -> DynamicsConfig:
    """100 epochs of 160/32 steps on W, then as many (grid: 300) on the latents; `updates` such turns when tuning."""
    return replace(
        config,
        weight_draws=50,
        batch_size=32,
        learning_rate=rate,
        latent_learning_rate=5e-4,
        decay=False,
        weight_steps=500,
        latent_steps=5 * latent_epochs,
        rounds=50,
        largest_count=None,
        rho_rate_factor=1,
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


PAPER: dict[str, DynamicsConfig] = {
    "grid": _paper(GRID, 5e-5, 300, 10),
    "acrobot": _paper(ACROBOT, 2.5e-4, 100, 5),
    "hiv": _paper(HIV, 2.5e-4, 100, 10),
}
PRESETS = {"paper": PAPER, "default": DEFAULT}


def preset(name: str, specification: Specification) -> DynamicsConfig:
    """The settings `name` for a family; a system of the user's own takes plain values."""
    return PRESETS[known_name("preset", name, PRESETS)].get(specification.family, DynamicsConfig())
