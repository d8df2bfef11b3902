"""`pretrain`: what a method learns from the batch 𝒟 before it meets a new instance."""

import warnings
from dataclasses import replace

import jax
import numpy as np

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.config import DynamicsConfig
from hipmdp.dynamics.model import Dynamics, new_dynamics
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.dynamics.pretrain import fit_dynamics, held_out_rows
from hipmdp.dynamics.quality import latent_use, quality
from hipmdp.dynamics.scaling import scaling_of
from hipmdp.families.checks import known_name
from hipmdp.transfer.model import ROLES, Model
from hipmdp.transfer.progress import Progress

METHODS = (*ROLES, "model_free")
"""The methods of `pretrain`."""


class LatentIgnoredWarning(UserWarning):
    """The fitted model predicts the same whatever the latent."""


def pretrain(
    batch: Transitions,
    method: str = "embedded",
    seed: int = 0,
    preset: str = "default",
    config: DynamicsConfig | None = None,
    quiet: bool = False,
) -> Model:
    """Learn how the family behaves, with one latent per instance of `batch`.

    `embedded` and `linear` fit W and the latents, `average` one model for all without latents. `scratch` and
    `model_free` take only the standardisation: they start untrained, as in the paper. `config` replaces the preset's
    settings.
    """
    known_name("method of pretrain", method, METHODS)
    if len(batch) < 2:
        raise ValueError(f"pretrain needs at least two transitions, got {len(batch)}.")
    scaling = scaling_of(batch)
    centre, scale = (tuple(float(x) for x in column) for column in scaling[:2])
    model = Model(method, batch.specification, centre, scale)
    if method == "model_free":
        return model
    config = replace(config or dynamics_preset(preset, batch.specification), role=ROLES[method])
    if method == "scratch":
        key = jax.random.key(seed)
        return model.with_dynamics(new_dynamics(config, batch.specification, scaling, 0, key=key))
    progress = Progress(f"pretrain {method}, round", config.rounds, quiet=quiet)

    def report(rounds: int, dynamics: Dynamics) -> None:
        spread = float(np.sqrt(np.mean(np.asarray(dynamics.noise_variance()))))
        progress.show(rounds, f"(noise {spread:.3f})")

    dynamics = fit_dynamics(batch, config, seed, report=report)
    progress.close()
    return replace(model, dynamics=dynamics, report=_report(dynamics, batch, method))


def _report(dynamics: Dynamics, batch: Transitions, method: str) -> dict[str, float]:
    """Error on the episodes held back (all, where there are too few to hold any back), and the use of the latent."""
    held_out = held_out_rows(batch, dynamics.config.held_out_share)
    seen = batch.select(held_out) if held_out.any() else batch
    errors = [
        quality(dynamics, seen.of_instance(instance), dynamics.latents[row]).l2
        for row, instance in enumerate(batch.instances)
        if instance in seen.instances
    ]
    report = {"held_out_error": float(np.mean(errors))}
    use = latent_use(dynamics, batch)
    if use is not None:
        report |= {
            "sensitivity": use.sensitivity,
            "error_with_own_latent": use.own_error,
            "error_with_mean_latent": use.mean_error,
        }
        if use.ignored:
            warnings.warn(
                f"The {method} model ignores its latent ({use}): are the instances alike, or was it trained too fast?",
                LatentIgnoredWarning,
                stacklevel=3,
            )
    return report
