"""p(w_b | a whole log): every hypothesis of a filter, fitted to all rows at once.

A filter takes every row at the w that it has then, and cannot take back what it made of early rows. Afterwards that
can be done better. A new member may be like a known one, near one, or a member as any other: around each training
latent of the filter there are priors N(μ_h, Λ_h⁻¹) of different widths, and there is the family's. For each of them
Levenberg-Marquardt steps descend

    E_h(w) = Σ_n ρ(e_nᵀ R⁻¹ e_n) + (w − μ_h)ᵀ Λ_h (w − μ_h),  e_n = y_n − T̂(s_n, a_n, w)

with ρ linear up to the filter's gate and logarithmic beyond, and R = diag(c ⊙ (σ_n² + v(s, a))), where c is the mean
squared error of the rows at the best hypothesis so far. At the end P_h = (Λ_h + H_h)⁻¹, H_h = Σ_n ρ'_n J_nᵀ R⁻¹ J_n,
and p_h is Laplace's evidence exp(−½ E_h) |Λ_h P_h|^½. The most probable hypotheses are kept, as many as the filter has.

Unlike the filter's, the weights p_h count every row in full: no hypothesis has to wait here for rows that are to come.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from hipmdp.data.transitions import Transitions
from hipmdp.dynamics.belief import Belief, Filter
from hipmdp.dynamics.infer import chosen_rows
from hipmdp.dynamics.model import padded

ROWS = 512
"""Rows that are used at most, evenly spread."""
STEPS = 8
"""Levenberg-Marquardt steps, first of all hypotheses, then of those that are kept, with a better estimate of c."""
SCALES = (0.1, 0.3, 1.0)
"""How wide the priors around a known latent are, in spreads of the known latents."""
DAMPING, SOFTER, HARDER = 0.1, 0.25, 6.0
"""The damping at first, and its factor after a step that lowered E and after one that did not."""


class _Prior(NamedTuple):
    """N(μ_h, Λ_h⁻¹), or with a leading axis several of them."""

    mean: Float[Array, "*hypotheses latent"]
    covariance: Float[Array, "*hypotheses latent latent"]
    precision: Float[Array, "*hypotheses latent latent"]
    """Λ_h."""


class _Noise(NamedTuple):
    """R of every row is the product."""

    misfit: Float[Array, " state"]
    """c."""
    base: Float[Array, "rows state"]
    """σ_n² + v(s, a)."""

    @property
    def variance(self) -> Float[Array, "rows state"]:
        return self.misfit[None] * self.base


class _Log(eqx.Module):
    """The rows, and what a latent makes of them."""

    chosen: Filter
    features: Float[Array, "rows features"]
    target: Float[Array, "rows state"]
    weight: Float[Array, " rows"]
    """How many rows each stands for; zero where it only fills up."""

    @property
    def gate(self) -> float:
        """Squared error of a row beyond which it is an outlier."""
        return self.chosen.config.gate * self.target.shape[1]

    def change(self, latent: Float[Array, " latent"], features: Float[Array, " features"]) -> Float[Array, " state"]:
        """T̂ at the mean weights."""
        dynamics = self.chosen.dynamics
        return dynamics.change(dynamics.posterior.mean, features, latent)

    def errors(self, latent: Float[Array, " latent"]) -> Float[Array, "rows state"]:
        """e_n."""
        return self.target - jax.vmap(self.change, in_axes=(None, 0))(latent, self.features)

    def misses(self, latent: Float[Array, " latent"], noise: _Noise) -> Float[Array, ""]:
        """Σ ρ."""
        far = jnp.sum(self.errors(latent) ** 2 / noise.variance, axis=1)
        beyond = self.gate + self.target.shape[1] * jnp.log(jnp.maximum(far, self.gate) / self.gate)
        return jnp.sum(self.weight * jnp.where(far < self.gate, far, beyond))

    def information(self, latent: Float[Array, " latent"], noise: _Noise) -> tuple[Array, Array]:
        """H, and Σ Jᵀ R⁻¹ e; outliers count as far as ρ rises."""
        error, slopes = self.errors(latent), jax.vmap(jax.jacfwd(self.change), in_axes=(None, 0))(latent, self.features)
        far = jnp.sum(error**2 / noise.variance, axis=1)
        rise = jnp.where(far < self.gate, 1.0, self.target.shape[1] / jnp.maximum(far, self.gate))
        precision = (self.weight * rise)[:, None] / noise.variance
        hessian = jnp.einsum("ndi,nd,ndj->ij", slopes, precision, slopes)
        return hessian, jnp.einsum("ndi,nd,nd->i", slopes, precision, error)

    def energy(self, latent: Float[Array, " latent"], prior: _Prior, noise: _Noise) -> Float[Array, ""]:
        """E_h."""
        away = latent - prior.mean
        return self.misses(latent, noise) + away @ prior.precision @ away

    def descend(self, latent: Float[Array, " latent"], prior: _Prior, noise: _Noise) -> Float[Array, " latent"]:
        """The latent after some Levenberg-Marquardt steps."""

        def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            latent, damping = carry
            hessian, gradient = self.information(latent, noise)
            hessian = hessian + prior.precision
            damped = hessian + damping * jnp.diag(jnp.diag(hessian))
            moved = latent + jnp.linalg.solve(damped, gradient + prior.precision @ (prior.mean - latent))
            # Not lower where it is not a number.
            lower = self.energy(moved, prior, noise) < self.energy(latent, prior, noise)
            return (jnp.where(lower, moved, latent), damping * jnp.where(lower, SOFTER, HARDER)), None

        return jax.lax.scan(step, (latent, jnp.asarray(DAMPING, jnp.float32)), None, STEPS)[0][0]

    def evidence(self, latent: Float[Array, " latent"], prior: _Prior, noise: _Noise) -> tuple[Array, Array]:
        """log p_h up to a constant, and P_h; −∞ where E is not a number."""
        hessian, _ = self.information(latent, noise)
        # In units of the prior, whose covariance is diagonal: P = S (I + S H S)⁻¹ S, also where H says little.
        scale = jnp.sqrt(jnp.diag(prior.covariance))
        factor = jnp.linalg.cholesky(jnp.eye(len(scale), dtype=scale.dtype) + scale[:, None] * hessian * scale[None])
        half = jax.scipy.linalg.solve_triangular(factor, jnp.diag(scale), lower=True)
        value = -0.5 * self.energy(latent, prior, noise) - jnp.sum(jnp.log(jnp.diag(factor)))
        return jnp.where(jnp.isfinite(value), value, -jnp.inf), half.T @ half

    def noise_at(self, latent: Float[Array, " latent"], misfit: Float[Array, " state"]) -> _Noise:
        """c as the rows say at one latent; `misfit` is what is known of it before, of which outliers are measured."""
        dynamics, config = self.chosen.dynamics, self.chosen.config
        over_rows = jax.vmap(dynamics.change, in_axes=(None, 0, None))
        means = jax.vmap(over_rows, in_axes=(0, None, None))(self.chosen.weights, self.features, latent)
        base = dynamics.noise_variance()[None] + jnp.var(means, axis=0)
        surprise = jnp.minimum(self.errors(latent) ** 2 / base, config.largest_surprise * jnp.maximum(misfit, 1)[None])
        total = config.misfit_rows + jnp.sum(self.weight[:, None] * surprise, axis=0)
        known = jnp.maximum(total / (config.misfit_rows + jnp.sum(self.weight)), config.smallest_misfit)
        return _Noise(known, base)

    def fitted(self, latents: Float[Array, "hypotheses latent"], priors: _Prior, noise: _Noise) -> tuple[Array, _Noise]:
        """Latents after some steps, with the noise as it is at the best of those before."""
        energies = jax.vmap(self.energy, in_axes=(0, 0, None))(latents, priors, noise)
        energies = jnp.where(jnp.isfinite(energies), energies, jnp.inf)
        noise = self.noise_at(latents[jnp.argmin(energies)], noise.misfit)
        return jax.vmap(self.descend, in_axes=(0, 0, None))(latents, priors, noise), noise


def smoothed(chosen: Filter, log: Transitions) -> Belief:
    """The belief after all transitions of one instance, or `ROWS` of them; without any, the first one."""
    if len(log) == 0:
        return chosen.start
    used = chosen_rows(log, ROWS)
    rows = chosen.dynamics.rows(used)
    # Lengths share a few compilations.
    size = -(-len(used) // 64) * 64
    features, target = padded((np.asarray(rows.features), np.asarray(rows.target)), size)
    weight = jnp.asarray(np.arange(size) < len(used), jnp.float32) * (len(log) / len(used))
    return _smoothed(_Log(chosen, features, target, weight))


@eqx.filter_jit
def _smoothed(log: _Log) -> Belief:
    start = log.chosen.start
    priors = _priors(start)
    latents, noise = log.fitted(priors.mean, priors, log.noise_at(start.best, start.misfit))
    evidence = jax.vmap(log.evidence, in_axes=(0, 0, None))
    _, kept = jax.lax.top_k(evidence(latents, priors, noise)[0], len(start.mean))
    priors = jax.tree.map(lambda leaf: leaf[kept], priors)
    latents, noise = log.fitted(latents[kept], priors, noise)
    value, covariance = evidence(latents, priors, noise)
    found = start._replace(
        log_weight=value - jax.nn.logsumexp(value),
        mean=latents,
        covariance=covariance,
        before=jnp.diagonal(priors.covariance, axis1=1, axis2=2),
        misfit=noise.misfit,
        rows=jnp.sum(log.weight),
    )
    # Rows that no number can describe say nothing.
    fine = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in (found.mean, found.covariance, found.misfit)])
    fine = jnp.all(fine) & jnp.any(jnp.isfinite(value))
    return jax.tree.map(lambda new, old: jnp.where(fine, new, old), found, start)


def _priors(start: Belief) -> _Prior:
    """The family's prior, which is a filter's first hypothesis, and some around each latent where the others begin."""
    around, family = start.mean[1:], start.covariance[:1]
    means = jnp.concatenate([start.mean[:1], *(around for _ in SCALES)])
    scales = jnp.asarray([1.0, *(scale for scale in SCALES for _ in range(len(around)))], jnp.float32)
    covariance = scales[:, None, None] ** 2 * family
    return _Prior(means, covariance, jnp.linalg.inv(covariance))
