"""`pretrain`: what a method learns from the batch 𝒟 before it meets a new instance."""

import warnings
from dataclasses import replace
from importlib.metadata import version

import jax
import numpy as np

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.config import DynamicsConfig, LatentRole
from hipmdp.dynamics.model import Dynamics, new_dynamics
from hipmdp.dynamics.oracle import OracleLatents, oracle_latents, training_latents
from hipmdp.dynamics.presets import preset as dynamics_preset
from hipmdp.dynamics.pretrain import fit_dynamics, held_out_rows, instance_rows
from hipmdp.dynamics.quality import latent_use, quality
from hipmdp.dynamics.reward_head import fit_reward_head
from hipmdp.dynamics.scaling import scaling_of
from hipmdp.families.checks import known_name
from hipmdp.families.family import AbstractFamily
from hipmdp.transfer.amortise import amortise
from hipmdp.transfer.methods import BLIND, EMBEDDED, Method, find_method
from hipmdp.transfer.model import Model
from hipmdp.transfer.progress import Progress
from hipmdp.transfer.support import Support


class LatentIgnoredWarning(UserWarning):
    """The fitted model predicts the same whatever the latent."""


def pretrain(
    batch: Transitions,
    method: str = "embedded",
    seed: int = 0,
    preset: str = "default",
    config: DynamicsConfig | None = None,
    quiet: bool = False,
    latents: str = "learned",
    family: AbstractFamily | None = None,
) -> Model:
    """Learn how the family behaves, with one latent per instance of `batch`.

    `embedded` and `linear` fit W and the latents, `average` one model for all without latents. `scratch` and
    `model_free` take only the standardisation: they start untrained, as in the paper. `config` replaces the preset's
    settings. `amortised` (and `refined`) also learn Q(s, w) inside the model: see `amortise`, which may need the
    `family` for its reward. `latents="true"` takes the true parameters as the latents, here and for every new instance:
    for diagnosis.
    """
    chosen = find_method(method, "pretrain")
    if chosen is BLIND:
        raise ValueError("A blind policy needs the family itself, not a batch: use train_blind.")
    known_name("latents of pretrain", latents, ("learned", "true"))
    if len(batch) < 2:
        raise ValueError(f"pretrain needs at least two transitions, got {len(batch)}.")
    if chosen.amortised:
        embedded = pretrain(batch, EMBEDDED.name, seed, preset, config, quiet, latents)
        return amortise(embedded, batch, seed, preset, family=family, quiet=quiet).used_as(method)
    scaling = scaling_of(batch)
    centre, scale = (tuple(float(x) for x in column) for column in scaling[:2])
    both = np.concatenate([batch.state, batch.next_state])
    low, high = (tuple(float(x) for x in extreme(both, axis=0)) for extreme in (np.min, np.max))
    about = {
        "transitions": len(batch), "episodes": batch.episode_count, "instances": len(batch.instances),
        "preset": preset, "seed": seed, "version": version("hipmdp"),
    }  # fmt: skip
    names = tuple(batch.name(instance) for instance in batch.instances)
    support = Support.sample(batch, seed)
    model = Model(method, batch.specification, centre, scale, low, high, names=names, support=support, about=about)
    if chosen.role is None:
        return model
    config = replace(config or dynamics_preset(preset, batch.specification), role=chosen.role)
    if not chosen.pretrained:
        key = jax.random.key(seed)
        return model.with_dynamics(new_dynamics(config, batch.specification, scaling, 0, key=key))
    progress = Progress(f"pretrain {method}, round", config.rounds, quiet=quiet)

    def report(rounds: int, dynamics: Dynamics) -> None:
        spread = float(np.sqrt(np.mean(np.asarray(dynamics.noise_variance()))))
        progress.show(rounds, f"(noise {spread:.3f})")

    oracle, known = None, None
    if latents == "true":
        oracle = _oracle(batch, chosen)
        known = training_latents(oracle, batch.thetas)
        config = replace(config, latent_size=len(oracle.names))
    dynamics = fit_dynamics(batch, config, seed, known, report)
    head = None
    if batch.specification.rewarded:
        head = fit_reward_head(batch, scaling, dynamics.latents[instance_rows(batch, batch.instances)], seed)
    progress.close()
    told = _report(dynamics, batch, method)
    return replace(model, dynamics=dynamics, reward_head=head, oracle=oracle, report=told)


def _oracle(batch: Transitions, method: Method) -> OracleLatents:
    """How θ becomes a latent, or one clear sentence where that makes no sense."""
    if method.role is LatentRole.NONE:
        raise ValueError(f'latents="true" needs a method with latents (embedded or linear), not {method.name!r}.')
    unknown = sorted(set(batch.instances) - set(batch.thetas))
    if unknown:
        raise ValueError(f'latents="true" needs the true parameters, which are unknown for instance {unknown[0]}.')
    return oracle_latents(batch.thetas)


def _report(dynamics: Dynamics, batch: Transitions, method: str) -> dict[str, float]:
    """Error on the episodes held back (all, where there are too few to hold any back), and the use of the latent."""
    held_out = held_out_rows(batch, dynamics.config.held_out_share)
    seen = batch.select(held_out) if held_out.any() else batch
    held_back = set(seen.instances)
    errors = [
        quality(dynamics, seen.of_instance(instance), dynamics.latents[row]).l2
        for row, instance in enumerate(batch.instances)
        if instance in held_back
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
