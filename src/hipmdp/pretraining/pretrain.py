"""`pretrain`: what a method learns from the batch 𝒟 before there is a new instance."""

import dataclasses
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from hipmdp._errors import check_seed, known_name
from hipmdp._progress import Progress, tell
from hipmdp._random import root_key, stream
from hipmdp.data.support import Support
from hipmdp.data.transitions import Transitions
from hipmdp.data.work import Work, batch_digest
from hipmdp.dynamics.fit_family import fit_dynamics, held_out_error, held_out_rows
from hipmdp.dynamics.model import Dynamics, instance_rows, new_dynamics
from hipmdp.dynamics.oracle import OracleLatents, oracle_latents, training_latents
from hipmdp.dynamics.quality import latent_use
from hipmdp.dynamics.reward_head import fit_reward_head
from hipmdp.dynamics.standardise import check_units, scaling_of
from hipmdp.families.protocol import BaseFamily
from hipmdp.imagination.reward import is_shared
from hipmdp.pretraining.amortise import known_family, learn_latent_policy
from hipmdp.pretraining.model import Model
from hipmdp.pretraining.remarks import batch_remarks, is_reward_constant, model_remarks
from hipmdp.pretraining.resume import resumable_model
from hipmdp.settings import recipe
from hipmdp.settings.amortise import AmortiseConfig
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole
from hipmdp.settings.presets import dynamics_preset

ROLES: dict[str, LatentRole] = {
    "embedded": LatentRole.EMBEDDED,
    "amortised": LatentRole.EMBEDDED,
    "linear": LatentRole.LINEAR,
    "average": LatentRole.NONE,
    "scratch": LatentRole.NONE,
}
"""How the latent enters T̂, by method. `scratch` starts untrained; `model_free` and `blind` have no T̂."""
METHODS = (*ROLES, "model_free", "refined", "blind")


class LatentIgnoredWarning(UserWarning):
    """The fitted model predicts the same whatever the latent."""


class NothingToLearnWarning(UserWarning):
    """Nothing in the batch tells a good policy from a bad one."""


def pretrain(
    batch: Transitions,
    method: str = "embedded",
    seed: int = 0,
    preset: str = "default",
    config: DynamicsConfig | None = None,
    quiet: bool = False,
    latents: str = "learned",
    family: BaseFamily | None = None,
    out: str | Path | None = None,
    *,
    policy: bool | AmortiseConfig = True,
) -> Model:
    """Learn how the family behaves, with one latent per instance of `batch`.

    `embedded` and `linear` fit W and the latents, `average` one model for all without latents. `scratch` and
    `model_free` take only the standardisation: they start untrained, as in the paper. `config` replaces the preset's
    settings.

    Inside the fitted model a policy Q(s, w) for all members is learned (see `amortise`, which may need the `family` for
    its reward), by which the first episode of a new one is controlled. `policy` has its settings, or False to leave it
    out; the preset `paper` leaves it out, and so do batches without rewards.

    `latents="true"` takes the true parameters as the latents, here and for every new instance: for diagnosis. With
    `out` (a directory) checkpoints and, at the end, model.hipmdp are kept there, and the same call goes on where it was
    stopped, to the same bits.

    `Model.metrics` holds, as root mean squared errors of the standardised state difference per dimension (1: no better
    than predicting the mean change): `error_on_held_out_episodes`, on episodes that the fit did not see (where there
    are enough to hold some out); `error_on_training_episodes`, on a sample of the others with each instance's own
    latent; `error_with_mean_latent`, on the same rows with the mean of all latents; and `sensitivity`, how much
    predictions move with the latent.
    """
    known_name("method of pretrain", method, METHODS)
    if method == "refined":
        raise ValueError(
            "'refined' uses an amortised model: pretrain with 'amortised', and learn_policy with 'refined'."
        )
    if method == "blind":
        raise ValueError("A blind policy needs the family itself, not a batch: use train_blind.")
    description = {
        "batch": batch_digest(batch),
        "method": method,
        "seed": check_seed(seed),
        "preset": preset,
        "config": None if config is None else dataclasses.asdict(config),
        "latents": latents,
        "family": None if family is None else repr(family),
        "policy": policy if isinstance(policy, bool) else dataclasses.asdict(policy),
    }

    def learn(work: Work) -> Model:
        model = prepare_model(
            batch, method, key=root_key(seed), preset=preset, config=config, quiet=quiet, latents=latents,
            family=family, work=work, policy=policy,
        )  # fmt: skip
        return replace(model, metadata={**model.metadata, "seed": seed})

    return resumable_model(out, "pretrain", description, learn)


def prepare_model(
    batch: Transitions,
    method: str,
    *,
    key: PRNGKeyArray,
    preset: str = "default",
    config: DynamicsConfig | None = None,
    quiet: bool = True,
    latents: str = "learned",
    family: BaseFamily | None = None,
    work: Work | None = None,
    policy: bool | AmortiseConfig = True,
) -> Model:
    """`pretrain` with a key of the caller's; with `work`, what was done before is not done again."""
    work = work or Work()
    known_name("latents of pretrain", latents, ("learned", "true"))
    if len(batch) < 2:
        raise ValueError(f"pretrain needs at least two transitions, got {len(batch)}.")
    check_units(batch)
    remarks = batch_remarks(batch)
    if is_reward_constant(batch):
        warnings.warn(remarks[0], NothingToLearnWarning, stacklevel=5)
    elif not quiet:
        tell(remarks)
    model = standardised_model(batch, method, key=key, metadata={"preset": preset, "remarks": remarks})
    if method not in ROLES:
        return model
    config = replace(config or dynamics_preset(preset, batch.specification, len(batch.instances)), role=ROLES[method])
    if method == "scratch":
        untrained = new_dynamics(
            config, batch.specification, scaling_of(batch), 0, key=stream(key, "pretrain/dynamics")
        )
        return model.with_dynamics(untrained)
    oracle, known = None, None
    if latents == "true":
        oracle = _oracle(batch, method)
        known = training_latents(oracle, batch.thetas)
        config = replace(config, latent_size=len(oracle.names))
    progress = Progress(f"pretrain {method}, round", config.rounds, quiet=quiet)

    def on_chunk(rounds: int, dynamics: Dynamics) -> None:
        spread = float(np.sqrt(np.mean(np.asarray(dynamics.noise_variance()))))
        progress.show(rounds, f"(noise σ_n {spread:.3f} of a standardised change)")

    fit_key = stream(key, "pretrain/dynamics")
    dynamics = fit_dynamics(batch, config, key=fit_key, latents=known, on_chunk=on_chunk, work=work.file("fit"))
    head = None
    if batch.specification.rewarded:
        own = dynamics.latents[instance_rows(batch, batch.instances)]
        head = fit_reward_head(batch, dynamics.scaling, own, key=stream(key, "pretrain/reward_head"))
    progress.close()
    metrics = _metrics(dynamics, batch, method, stream(key, "pretrain/metrics"))
    found = model_remarks(metrics)
    if not quiet:
        tell(found)
    metadata = {**model.metadata, "remarks": [*remarks, *found]}
    model = replace(model, dynamics=dynamics, reward_head=head, oracle=oracle, metrics=metrics, metadata=metadata)
    settings = _policy_settings(policy, model, preset, required=method == "amortised")
    if settings is None or oracle is not None or (head is None and not is_shared(known_family(model, family))):
        return model
    return learn_latent_policy(model, batch, settings, family=family, key=key, quiet=quiet, work=work)


def _policy_settings(
    policy: bool | AmortiseConfig, model: Model, preset: str, *, required: bool
) -> AmortiseConfig | None:
    """How Q(s, w) is learned; None: not at all. The paper has no such policy."""
    if isinstance(policy, AmortiseConfig):
        return policy
    if not required and (not policy or preset == "paper"):
        return None
    return recipe.amortise(model.specification)


def standardised_model(batch: Transitions, method: str, *, key: PRNGKeyArray, metadata: dict[str, object]) -> Model:
    """What every method takes from the batch: centre, scale and range of the states, and a sample of them."""
    scaling, spec = scaling_of(batch), batch.specification
    both = np.concatenate([batch.state, batch.next_state])
    counts = {"transitions": len(batch), "episodes": batch.episode_count, "instances": len(batch.instances)}
    return Model(
        method,
        spec,
        centre=tuple(float(x) for x in spec.natural(scaling.state_centre)),
        scale=tuple(float(x) for x in scaling.state_scale),
        low=tuple(float(x) for x in both.min(axis=0)),
        high=tuple(float(x) for x in both.max(axis=0)),
        names=tuple(batch.name(instance) for instance in batch.instances),
        support=Support.sample(batch, key=stream(key, "pretrain/support")),
        metadata={**counts, **metadata, "version": version("hipmdp")},
    )


def _oracle(batch: Transitions, method: str) -> OracleLatents:
    """How θ becomes a latent, or one clear sentence where that makes no sense."""
    if ROLES[method] is LatentRole.NONE:
        raise ValueError(f'latents="true" needs a method with latents (embedded or linear), not {method!r}.')
    unknown = sorted(set(batch.instances) - set(batch.thetas))
    if unknown:
        raise ValueError(f'latents="true" needs the true parameters, which are unknown for instance {unknown[0]}.')
    return oracle_latents(batch.thetas)


def _metrics(dynamics: Dynamics, batch: Transitions, method: str, key: PRNGKeyArray) -> dict[str, float]:
    """Errors on the episodes that the fit saw and did not see, and the use of the latent."""
    held_out = held_out_rows(batch, dynamics.config.held_out_share)
    error_key, use_key = jax.random.split(key)
    name = "error_on_held_out_episodes" if held_out.any() else "error_on_training_episodes"
    metrics = {name: held_out_error(dynamics, batch, key=error_key)}
    use = latent_use(dynamics, batch.select(~held_out), key=use_key)
    if use is None:
        return metrics
    if use.ignored:
        warnings.warn(
            f"The {method} model ignores its latent ({use}): are the instances alike, or was it trained too fast?",
            LatentIgnoredWarning,
            stacklevel=3,
        )
    return metrics | {
        "error_on_training_episodes": use.error_own_latent,
        "error_with_mean_latent": use.error_mean_latent,
        "sensitivity": use.sensitivity,
    }
