"""`infer_latent` fits w_b of a new instance with W fixed; `tune_model` starts there and fits both W and w_b."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from hipmdp._optimise import apply_optimizer, cosine_adam
from hipmdp.data.transitions import Transitions
from hipmdp.dynamics import fit
from hipmdp.dynamics.energy import alpha_energy, log_likelihoods
from hipmdp.dynamics.model import Dynamics, Rows, padded
from hipmdp.dynamics.network import Gaussian
from hipmdp.settings.dynamics import LatentRole


class Latent(NamedTuple):
    """w_b of a new instance, and how it was found."""

    value: Float[Array, " latent"]
    """The w_b of lowest energy."""
    energy: Float[Array, ""]
    """Its energy per transition (prior included)."""
    energies: Float[Array, " tries"]
    """The energy per transition at which each start ended: alike when the answer does not depend on the start."""


def chosen_rows(transitions: Transitions, most: int) -> Transitions:
    """At most `most` rows: all, or evenly spread ones."""
    if len(transitions) <= most:
        return transitions
    return transitions.select(np.linspace(0, len(transitions) - 1, most).round().astype(np.int64))


def infer_latent(
    dynamics: Dynamics, transitions: Transitions, *, key: PRNGKeyArray, prior: Gaussian | None = None
) -> Latent:
    """Fit w_b of the instance that `transitions` came from, with W fixed.

    The energies of every training latent and of their mean are compared; from the best few of them Adam descends the
    energy, with the same weight draws throughout, and the lowest end wins, so that the answer does not depend on one
    start. The prior is the Gaussian fitted to the training latents, unless another is given.
    """
    if len(transitions) == 0:
        raise ValueError("infer_latent needs at least one transition.")
    dynamics.check(transitions)
    config = dynamics.config
    if config.role is LatentRole.NONE:
        zero = jnp.zeros((), jnp.float32)
        return Latent(jnp.zeros(config.latent_size, jnp.float32), zero, zero[None])
    rows, valid = _padded_rows(dynamics, transitions)
    count = jnp.asarray(len(transitions), jnp.float32)
    return _infer(dynamics, prior or dynamics.latent_prior, rows, valid=valid, count=count, key=key)


def _padded_rows(dynamics: Dynamics, transitions: Transitions) -> tuple[Rows, Float[Array, " rows"]]:
    """At most `infer_rows` rows, filled up to hundreds (so that lengths share a compilation), and which are real."""
    rows = dynamics.rows(chosen_rows(transitions, dynamics.config.infer_rows))
    count = rows.instance.shape[0]
    size = min(dynamics.config.infer_rows, -(-count // 100) * 100)
    return padded(rows, size), jnp.asarray(np.arange(size) < count, jnp.float32)


@eqx.filter_jit
def _infer(
    dynamics: Dynamics,
    prior: Gaussian,
    rows: Rows,
    *,
    valid: Float[Array, " rows"],
    count: Float[Array, ""],
    key: PRNGKeyArray,
) -> Latent:
    config = dynamics.config
    weight_key, z_key = jax.random.split(key)
    weights = dynamics.draw_weights(weight_key, config.infer_draws)
    z = dynamics.draw_z(z_key, (config.infer_draws, valid.shape[0]))
    log_noise = jnp.log(dynamics.noise_variance())
    # Rows of weight zero must not change the mean over rows.
    importance = valid / jnp.mean(valid)
    over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, None, 0))
    over_draws = jax.vmap(over_rows, in_axes=(0, None, None, 0))

    def energy(latent: Float[Array, " latent"], draws: int) -> Float[Array, ""]:
        """Per transition. W is fixed, so that log q/p of the draws is a constant that is left out."""
        means = over_draws(weights[:draws], rows.features, latent, z[:draws])
        fits = log_likelihoods(rows.target, means, log_noise)
        ratios = jnp.zeros(draws, jnp.float32)
        value = alpha_energy(fits, ratios, importance=importance, count=count, alpha=config.alpha)
        return (value - prior.log_density(latent)) / count

    candidates = jnp.concatenate([prior.mean[None], dynamics.latents])
    first = jax.lax.map(lambda latent: energy(latent, 1), candidates)
    tries = min(config.latent_tries, candidates.shape[0])
    starts = candidates[jnp.argsort(first)[:tries]]
    # The rate is in standard deviations of the prior.
    optimizer = cosine_adam(config.infer_learning_rate * jnp.sqrt(prior.variance), config.infer_steps)

    def descend(start: Float[Array, " latent"]) -> tuple[Float[Array, " latent"], Float[Array, ""]]:
        def step(carry: tuple[Array, optax.OptState], _: None) -> tuple[tuple[Array, optax.OptState], None]:
            latent, state = carry
            gradient = jax.grad(energy)(latent, config.infer_draws)
            return apply_optimizer(optimizer, gradient, state, latent), None

        (latent, _), _ = jax.lax.scan(step, (start, optimizer.init(start)), None, config.infer_steps)
        return latent, energy(latent, config.infer_draws)

    ends, energies = jax.vmap(descend)(starts)
    best = jnp.argmin(energies)
    return Latent(ends[best], energies[best], energies)


class Tuned(NamedTuple):
    """The result of `tune_model`."""

    dynamics: Dynamics
    """The model with W tuned to the instance; its training latents are unchanged."""
    latent: Float[Array, " latent"]
    """w_b of the instance."""


def tune_model(
    dynamics: Dynamics,
    transitions: Transitions,
    *,
    key: PRNGKeyArray,
    latent: Float[Array, " latent"] | None = None,
    fixed: bool = False,
    on_chunk: Callable[[int, fit.FitState], None] = lambda done, state: None,
) -> Tuned:
    """Infer w_b, then alternate small steps on W and on w_b, all on the new instance's transitions.

    The posterior of pre-training is the prior now: what many instances have taught is given up only as far as this
    one's data ask for it. A `latent` found before is where w_b starts (and stays, if `fixed`); otherwise it is inferred
    first. `on_chunk` gets the rounds done and the state of the fit.
    """
    if len(transitions) == 0:
        raise ValueError("tune_model needs at least one transition.")
    latent_key, fit_key = jax.random.split(key)
    config, trained = dynamics.config, dynamics.latents.shape[0] > 0
    if latent is None:
        latent = infer_latent(dynamics, transitions, key=latent_key).value
    settings = replace(config, batch_size=config.tune_batch_size, latent_steps=0 if fixed else config.latent_steps)
    start = eqx.tree_at(lambda d: d.latents, replace(dynamics, config=settings), latent[None])
    if trained and config.tune_widening:
        start = _posterior_as_prior(start, config.tune_widening)
    schedule = fit.Schedule(
        weight_rate=config.tune_learning_rate if trained else config.learning_rate,
        latent_rate=config.latent_learning_rate,
        rounds=config.tune_rounds if trained else config.scratch_rounds,
    )
    state = fit.run_schedule(
        start,
        fit.init(start, dynamics.rows(transitions), fit_key),
        latent_prior=dynamics.latent_prior,
        schedule=schedule,
        on_chunk=on_chunk,
    )
    tuned = replace(fit.fitted(start, state), config=config)
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
    spread of the prior. What a model misses is alike from row to row, so that n rows hold less information than n
    independent ones would: the temperature is the factor between them.
    """
    rows, valid = _padded_rows(dynamics, transitions)
    used = min(len(transitions), dynamics.config.infer_rows)
    share = jnp.asarray(len(transitions) / used / temperature, jnp.float32)
    return _covariance(dynamics, dynamics.latent_prior, rows, valid=valid, share=share, latent=latent)


@eqx.filter_jit
def _covariance(
    dynamics: Dynamics,
    prior: Gaussian,
    rows: Rows,
    *,
    valid: Float[Array, " rows"],
    share: Float[Array, ""],
    latent: Float[Array, " latent"],
) -> Float[Array, "latent latent"]:
    def change(features: Array, latent: Array) -> Array:
        return dynamics.change(dynamics.posterior.mean, features, latent)

    errors = jax.vmap(change, in_axes=(0, None))(rows.features, latent) - rows.target
    missed = jnp.sum(errors**2 * valid[:, None], axis=0) / jnp.sum(valid)
    precision = 1 / (dynamics.noise_variance() + missed)
    slopes = jax.vmap(jax.jacfwd(change, argnums=1), in_axes=(0, None))(rows.features, latent)
    information = jnp.einsum("n,ndi,d,ndj->ij", valid * share, slopes, precision, slopes)
    return jnp.linalg.inv(information + jnp.diag(1 / prior.variance))
