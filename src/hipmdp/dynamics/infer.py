"""`infer_latent`: which member of the family is this? `tune_model`: and what does the family not yet know about it?"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics import fit
from hipmdp.dynamics.config import LatentRole
from hipmdp.dynamics.energy import alpha_energy, log_likelihoods
from hipmdp.dynamics.model import Dynamics, Rows, padded
from hipmdp.dynamics.network import Gaussian


class Latent(NamedTuple):
    """w_b of a new instance, and how it was found."""

    value: Float[Array, " latent"]
    """The w_b of lowest energy."""
    energy: Float[Array, ""]
    """Its energy per transition (prior included)."""
    energies: Float[Array, " tries"]
    """The energy per transition that each start came to: alike when the answer does not hang on luck."""


def chosen_rows(transitions: Transitions, most: int) -> Transitions:
    """At most `most` rows: all, or evenly spread ones."""
    if len(transitions) <= most:
        return transitions
    return transitions.select(np.linspace(0, len(transitions) - 1, most).round().astype(np.int64))


def infer_latent(dynamics: Dynamics, transitions: Transitions, seed: int = 0, prior: Gaussian | None = None) -> Latent:
    """Fit w_b of the instance that `transitions` came from, with W fixed.

    Every training latent and their mean are looked at; the best few of them are followed by Adam on the energy with the
    same weight draws throughout, and the lowest end wins: no luck of one start. The prior is the Gaussian fitted to the
    training latents, unless another is given.
    """
    if len(transitions) == 0:
        raise ValueError("infer_latent needs at least one transition.")
    dynamics.check(transitions)
    config = dynamics.config
    if config.role is LatentRole.NONE:
        zero = jnp.zeros((), jnp.float32)
        return Latent(jnp.zeros(config.latent_size, jnp.float32), zero, zero[None])
    prior = prior or dynamics.latent_prior
    rows = dynamics.rows(chosen_rows(transitions, config.infer_rows))
    size = min(config.infer_rows, -(-rows.instance.shape[0] // 100) * 100)
    real = jnp.asarray(np.arange(size) < rows.instance.shape[0], jnp.float32)
    return _infer(
        dynamics,
        prior,
        padded(rows, size),
        real,
        jnp.asarray(len(transitions), jnp.float32),
        jax.random.key(seed),
    )


@eqx.filter_jit
def _infer(
    dynamics: Dynamics,
    prior: Gaussian,
    rows: Rows,
    valid: Float[Array, " rows"],
    count: Float[Array, ""],
    key: PRNGKeyArray,
) -> Latent:
    config = dynamics.config
    weight_key, input_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, config.infer_draws)
    shape = (config.infer_draws, valid.shape[0], 1)
    z = jax.random.normal(input_key, shape, jnp.float32) if config.stochastic_input else None
    log_noise = jnp.log(dynamics.noise_variance())
    # Rows of weight zero must not change the mean over rows.
    importance = valid / jnp.mean(valid)

    def energy(latent: Float[Array, " latent"], draws: int) -> Float[Array, ""]:
        """Per transition. W is fixed, so that log q/p of the draws is a constant that is left out."""

        def over_rows(weights: Array, z: Array | None) -> Array:
            features = rows.features if z is None else jnp.concatenate([rows.features, z], axis=-1)
            return jax.vmap(dynamics.change, in_axes=(None, 0, None))(weights, features, latent)

        means = jax.vmap(over_rows, in_axes=(0, None if z is None else 0))(
            weights[:draws], None if z is None else z[:draws]
        )
        fits = log_likelihoods(rows.target, means, log_noise)
        value = alpha_energy(fits, jnp.zeros(draws, jnp.float32), importance, count, config.alpha)
        return (value - prior.log_density(latent)) / count

    candidates = jnp.concatenate([prior.mean[None], dynamics.latents])
    first = jax.lax.map(lambda latent: energy(latent, 1), candidates)
    tries = min(config.latent_tries, candidates.shape[0])
    starts = candidates[jnp.argsort(first)[:tries]]
    optimizer = optax.scale_by_adam()

    def follow(start: Float[Array, " latent"]) -> tuple[Float[Array, " latent"], Float[Array, ""]]:
        def step(carry: tuple[Array, optax.OptState], i: Int[Array, ""]) -> tuple[tuple[Array, optax.OptState], None]:
            latent, state = carry
            gradient = jax.grad(energy)(latent, config.infer_draws)
            with jax.numpy_dtype_promotion("standard"):
                direction, state = optimizer.update(gradient, state)
            fall = 0.5 * (1 + jnp.cos(jnp.pi * i.astype(jnp.float32) / config.infer_steps))
            return (latent - config.infer_learning_rate * fall * scale * direction, state), None

        scale = jnp.sqrt(prior.variance)
        steps = jnp.arange(config.infer_steps)
        (latent, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), steps)
        return latent, energy(latent, config.infer_draws)

    ends, energies = jax.vmap(follow)(starts)
    best = jnp.argmin(energies)
    return Latent(ends[best], energies[best], energies)


class Tuned(NamedTuple):
    """What `tune_model` found."""

    dynamics: Dynamics
    """The model with W tuned to the instance; its training latents are unchanged."""
    latent: Float[Array, " latent"]


def tune_model(
    dynamics: Dynamics,
    transitions: Transitions,
    seed: int = 0,
    latent: Float[Array, " latent"] | None = None,
    fixed: bool = False,
    report: Callable[[int, fit.FitState], None] = lambda done, state: None,
) -> Tuned:
    """Infer w_b, then alternate small steps on W and on w_b, all on the new instance's transitions.

    The posterior of pre-training is the prior now: what many instances have taught is given up only as far as this
    one's data ask for it. A `latent` found before is where w_b starts (and stays, if `fixed`); otherwise it is inferred
    first. `report` is called at chunk edges.
    """
    if len(transitions) == 0:
        raise ValueError("tune_model needs at least one transition.")
    config, trained = dynamics.config, dynamics.latents.shape[0] > 0
    if latent is None:
        latent = infer_latent(dynamics, transitions, seed).value
    start = eqx.tree_at(lambda d: d.latents, dynamics, latent[None])
    if trained and config.tune_widening:
        start = _posterior_as_prior(start, config.tune_widening)
    schedule = fit.Schedule(
        config.tune_learning_rate if trained else config.learning_rate,
        config.latent_learning_rate,
        config.tune_rounds if trained else config.scratch_rounds,
    )
    batched = replace(config, batch_size=config.tune_batch_size, latent_steps=0 if fixed else config.latent_steps)
    state = fit.init(start, dynamics.rows(transitions), jax.random.key(seed))
    state = fit.run_schedule(start, batched, dynamics.latent_prior, schedule, state, report)
    tuned = fit.fitted(start, state)
    return Tuned(eqx.tree_at(lambda d: d.latents, tuned, dynamics.latents), tuned.latents[0])


def _posterior_as_prior(dynamics: Dynamics, widening: float) -> Dynamics:
    """The same q(W), seen from a prior N(m, min(λ, widening·v)) around it."""
    variance = dynamics.posterior.variance(dynamics.prior)
    wider = jnp.minimum(dynamics.prior.variance, widening * variance)
    share = jnp.minimum(variance / wider, 0.999)
    return eqx.tree_at(
        lambda d: (d.prior, d.posterior.rho),
        dynamics,
        (Gaussian(dynamics.posterior.mean, wider), jnp.log(share) - jnp.log1p(-share)),
    )


def latent_covariance(
    dynamics: Dynamics, transitions: Transitions, latent: Float[Array, " latent"], temperature: float = 1.0
) -> Float[Array, "latent latent"]:
    """How unsure w_b still is after `transitions`: the Gauss-Newton (Laplace) covariance at `latent`.

    Λ = Σ_w⁻¹ + 1/temperature Σ_n J_nᵀ diag(σ²)⁻¹ J_n with J_n = ∂T̂(s_n, a_n, w)/∂w at the mean weights, and σ² the
    noise plus what the model misses on these very rows. Directions that the episode says nothing about keep the
    spread of the prior. What a model misses is alike from row to row, so that n rows tell less than n independent ones
    would: the temperature says how much less.
    """
    rows = dynamics.rows(chosen_rows(transitions, dynamics.config.infer_rows))
    size = min(dynamics.config.infer_rows, -(-rows.instance.shape[0] // 100) * 100)
    valid = jnp.asarray(np.arange(size) < rows.instance.shape[0], jnp.float32)
    share = jnp.asarray(len(transitions) / rows.instance.shape[0] / temperature, jnp.float32)
    return _covariance(dynamics, dynamics.latent_prior, padded(rows, size), valid, share, latent)


@eqx.filter_jit
def _covariance(
    dynamics: Dynamics,
    prior: Gaussian,
    rows: Rows,
    valid: Float[Array, " rows"],
    share: Float[Array, ""],
    latent: Float[Array, " latent"],
) -> Float[Array, "latent latent"]:
    features = rows.features
    if dynamics.config.stochastic_input:
        features = jnp.concatenate([features, jnp.zeros((features.shape[0], 1), jnp.float32)], axis=-1)

    def change(features: Array, latent: Array) -> Array:
        return dynamics.change(dynamics.posterior.mean, features, latent)

    errors = jax.vmap(change, in_axes=(0, None))(features, latent) - rows.target
    missed = jnp.sum(errors**2 * valid[:, None], axis=0) / jnp.sum(valid)
    precision = 1 / (dynamics.noise_variance() + missed)
    slopes = jax.vmap(jax.jacfwd(change, argnums=1), in_axes=(0, None))(features, latent)
    told = jnp.einsum("n,ndi,d,ndj->ij", valid * share, slopes, precision, slopes)
    return jnp.linalg.inv(told + jnp.diag(1 / prior.variance))
