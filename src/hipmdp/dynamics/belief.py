"""p(w_b | what was seen so far): a posterior that follows every transition in constant time.

The posterior is a mixture of Gaussians Σ_h p_h N(w; μ_h, P_h), a bank of extended Kalman filters. T̂ bends with w, so a
filter that starts far from the truth can settle in the wrong place; several starts, the training latents among them,
make that rare. For a transition with standardised difference y, J_h = ∂T̂/∂w at μ_h and the mean weights:

    S_h = J_h P_h J_hᵀ + R,  R = diag(c ⊙ (σ_n² + v(s, a)))     noise, and what W does not know
    μ_h ← μ_h + P_h J_hᵀ S_h⁻¹ (y − T̂_h),  P_h ← P_h − P_h J_hᵀ S_h⁻¹ J_h P_h,  p_h ← p_h N(y; T̂_h, S_h)

What a model misses on a new instance is more than its noise on the old ones, and alike from row to row. The misfit c is
that factor per dimension, learned on the way: where the family does not fit, R grows, and w stays uncertain.

A row whose squared error is more than 9 times the expected one (a wall that T̂ blurs) has its S widened to 9, so that it
moves w no further than a bad row of the usual kind.

For the same reason n rows tell less than n independent ones would. The filter finds w as if they were independent; how
sure it says it is counts them 1/T (Λ₀ is the precision before the first row):

    P̄_h = (Λ₀ + (P_h⁻¹ − Λ₀) / T)⁻¹
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.dynamics.model import Dynamics

HYPOTHESES = 8
"""Filters in a bank, at most."""
WEIGHT_DRAWS = 8
"""Weight draws by which v(s, a) is told."""
MISFIT_ROWS = 10.0
"""After how many rows the misfit of this instance counts as much as what was expected of it."""
MISFIT_MEMORY = 200.0
"""Rows over which the misfit is averaged, later on."""
TEMPERATURE = 30.0
"""T: at 1, HIV's 95 % intervals hold 81 % where the next episode is unlike the one before; at 100, 99 % elsewhere."""
GATE = 9.0
"""Squared error per dimension, in units of its expected square, beyond which a row is far out."""
SMALLEST_MISFIT = 0.01
"""A model can be ten times as good as it expects (grid away from walls), but not perfect."""
LARGEST_SURPRISE = 25.0
"""A squared error counts for the misfit as at most this many times the expected one: a wall is not noise."""


class Belief(NamedTuple):
    """What is known about w_b."""

    log_weight: Float[Array, " hypotheses"]
    """log p_h."""
    mean: Float[Array, "hypotheses latent"]
    """μ_h."""
    covariance: Float[Array, "hypotheses latent latent"]
    """P_h."""
    before: Float[Array, "hypotheses latent"]
    """Variances before the first row: 1 / Λ₀."""
    misfit: Float[Array, " state"]
    """c: how much larger squared errors are here than the model expects."""
    rows: Float[Array, ""]
    """Transitions seen."""

    @property
    def best(self) -> Float[Array, " latent"]:
        """μ of the most probable hypothesis: a mean over hypotheses may be like no system at all."""
        return self.mean[jnp.argmax(self.log_weight)]

    @property
    def tempered(self) -> Float[Array, "hypotheses latent latent"]:
        """P̄_h: how sure w is, counting rows 1/T."""
        scale = jnp.sqrt(self.before)
        # In units of the prior: P = S U S, Λ₀ = S⁻², and P̄ = S (I + (U⁻¹ − I)/T)⁻¹ S = S T U (I + (T − 1) U)⁻¹ S.
        unit = self.covariance / scale[:, :, None] / scale[:, None, :]
        eye = jnp.eye(unit.shape[-1], dtype=unit.dtype)[None]
        shrunk = TEMPERATURE * jnp.linalg.solve(eye + (TEMPERATURE - 1) * unit, unit)
        shrunk = (shrunk + jnp.swapaxes(shrunk, 1, 2)) / 2
        return shrunk * scale[:, :, None] * scale[:, None, :]

    @property
    def spread(self) -> Float[Array, " latent"]:
        """Standard deviation of w_b, within and between the hypotheses."""
        weight = jnp.exp(self.log_weight)
        centre = weight @ self.mean
        within = weight @ jnp.diagonal(self.tempered, axis1=1, axis2=2)
        return jnp.sqrt(within + weight @ (self.mean - centre[None]) ** 2)


class Told(NamedTuple):
    """A prediction of the standardised difference that integrates over the belief."""

    mean: Float[Array, " state"]
    variance: Float[Array, " state"]


class Filter(eqx.Module):
    """How a belief begins, follows transitions, predicts, and what an action would tell about w_b."""

    dynamics: Dynamics
    weights: Float[Array, "draws weights"]
    """Functions that the batch allows: where they differ, W does not know."""
    start: Belief

    def update(
        self,
        belief: Belief,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        change: Float[Array, " state"],
        duration: Float[Array, ""] | None = None,
    ) -> Belief:
        """The belief after one transition; `change` is s' − s, angles wrapped."""
        features, target = self._features(state, action, duration), self.dynamics.scaling.standardised(change)
        base = self._base(features, belief.best)
        means, slopes = self._linear(features, belief.mean)
        inner = jnp.einsum("hdi,hij,hej->hde", slopes, belief.covariance, slopes)
        total = inner + jnp.diag(belief.misfit * base)[None]
        error = target[None] - means
        # A row that is far out under a hypothesis counts as if S were wider there: walls must not move w.
        far = jnp.einsum("hd,hd->h", error, jnp.linalg.solve(total, error[..., None])[..., 0])
        total = total * jnp.maximum(far / (GATE * error.shape[1]), 1)[:, None, None]
        factor = jnp.linalg.cholesky(total)
        white = jax.vmap(lambda f, e: jax.scipy.linalg.solve_triangular(f, e, lower=True))(factor, error)
        cross = jnp.einsum("hdi,hij->hdj", slopes, belief.covariance)
        half = jax.vmap(lambda f, c: jax.scipy.linalg.solve_triangular(f, c, lower=True))(factor, cross)
        mean = belief.mean + jnp.einsum("hdi,hd->hi", half, white)
        covariance = belief.covariance - jnp.einsum("hdi,hdj->hij", half, half)
        log_weight = belief.log_weight - 0.5 * jnp.sum(white**2, axis=-1)
        log_weight = log_weight - jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=-1)
        log_weight = log_weight - jax.nn.logsumexp(log_weight)
        chosen = jnp.argmax(log_weight)
        surprise = error[chosen] ** 2 / (jnp.diagonal(inner[chosen]) + base)
        share = 1 / jnp.minimum(MISFIT_ROWS + belief.rows + 1, MISFIT_MEMORY)
        surprise = jnp.minimum(surprise, LARGEST_SURPRISE * jnp.maximum(belief.misfit, 1))
        misfit = belief.misfit + share * (surprise - belief.misfit)
        misfit = jnp.maximum(misfit, SMALLEST_MISFIT)
        updated = Belief(log_weight, mean, covariance, belief.before, misfit, belief.rows + 1)
        # A state that is not finite teaches nothing.
        fine = jnp.all(jnp.isfinite(target)) & jnp.all(jnp.isfinite(mean)) & jnp.all(jnp.isfinite(log_weight))
        return jax.tree.map(lambda new, old: jnp.where(fine, new, old), updated, belief)

    def predict(self, belief: Belief, state: Float[Array, " state"], action: Int[Array, ""]) -> Told:
        """Mean and variance of the standardised difference, over w_b, W and the noise."""
        features = self._features(state, action)
        means, slopes = self._linear(features, belief.mean)
        weight = jnp.exp(belief.log_weight)
        within = jnp.einsum("hdi,hij,hdj->hd", slopes, belief.tempered, slopes)
        mean = weight @ means
        spread = weight @ (within + (means - mean[None]) ** 2)
        return Told(mean, spread + belief.misfit * self._base(features, belief.best))

    def information(self, belief: Belief, state: Float[Array, " state"]) -> Float[Array, " actions"]:
        """What each action is expected to tell about w_b, in nats.

        ½ log |I + R⁻¹ V(a)| with V(a) the covariance of the predicted difference over w_b, within and between the
        hypotheses: for one Gaussian that is the expected fall of its entropy.
        """
        weight = jnp.exp(belief.log_weight)

        def gain(action: Int[Array, ""]) -> Float[Array, ""]:
            features = self._features(state, action)
            means, slopes = self._linear(features, belief.mean)
            away = means - (weight @ means)[None]
            within = jnp.einsum("h,hdi,hij,hej->de", weight, slopes, belief.covariance, slopes)
            spread = within + jnp.einsum("h,hd,he->de", weight, away, away)
            scale = jax.lax.rsqrt(belief.misfit * self._base(features, belief.best))
            ratio = spread * scale[:, None] * scale[None]
            return 0.5 * jnp.linalg.slogdet(ratio + jnp.eye(len(scale), dtype=ratio.dtype))[1]

        return jax.vmap(gain)(jnp.arange(self.dynamics.specification.action_count, dtype=jnp.int32))

    def _features(
        self, state: Float[Array, " state"], action: Int[Array, ""], duration: Float[Array, ""] | None = None
    ) -> Float[Array, " inputs"]:
        features = self.dynamics.features(state, action, duration)
        # z at its mean: what it adds is noise.
        return jnp.append(features, 0.0) if self.dynamics.config.stochastic_input else features

    def _linear(
        self, features: Float[Array, " inputs"], latents: Float[Array, "hypotheses latent"]
    ) -> tuple[Float[Array, "hypotheses state"], Float[Array, "hypotheses state latent"]]:
        """T̂ and ∂T̂/∂w at every hypothesis."""

        def change(latent: Array) -> tuple[Array, Array]:
            told = self.dynamics.change(self.dynamics.posterior.mean, features, latent)
            return told, told

        slopes, means = jax.vmap(jax.jacfwd(change, has_aux=True))(latents)
        return means, slopes

    def _base(self, features: Float[Array, " inputs"], latent: Float[Array, " latent"]) -> Float[Array, " state"]:
        """σ_n² + v(s, a)."""
        told = jax.vmap(self.dynamics.change, in_axes=(0, None, None))(self.weights, features, latent)
        return self.dynamics.noise_variance() + jnp.var(told, axis=0)


def new_filter(dynamics: Dynamics, key: PRNGKeyArray, hypotheses: int = HYPOTHESES) -> Filter:
    """A filter that knows the family and nothing of the instance.

    One hypothesis is the prior itself, N(μ_w, Σ_w). The others stand at training latents, chosen to be far apart, with
    the spread that is left between neighbours.
    """
    prior, latents = dynamics.latent_prior, np.asarray(dynamics.latents, np.float64)
    scale = np.sqrt(np.asarray(prior.variance, np.float64))
    chosen = _far_apart(latents / scale, hypotheses - 1)
    own = scale * _gap(latents / scale, chosen)
    means = np.concatenate([np.asarray(prior.mean)[None], latents[chosen]])
    spreads = np.concatenate([scale[None], np.broadcast_to(own, (len(chosen), len(scale)))])
    covariance = jnp.asarray(spreads[:, :, None] ** 2 * np.eye(len(scale))[None], jnp.float32)
    count = len(means)
    start = Belief(
        jnp.full(count, -np.log(count), jnp.float32),
        jnp.asarray(means, jnp.float32),
        covariance,
        jnp.asarray(spreads**2, jnp.float32),
        jnp.ones(dynamics.specification.state_size, jnp.float32),
        jnp.zeros((), jnp.float32),
    )
    return Filter(dynamics, dynamics.draw_weights(key, WEIGHT_DRAWS), start)


def _far_apart(points: np.ndarray, count: int) -> list[int]:
    """Rows of `points`, each the farthest from those before it; the first is the one nearest to the middle."""
    if len(points) == 0 or count < 1:
        return []
    chosen = [int(np.argmin(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))]
    while len(chosen) < min(count, len(points)):
        gaps = np.min(np.sum((points[:, None] - points[None, chosen]) ** 2, axis=-1), axis=1)
        chosen.append(int(np.argmax(gaps)))
    return chosen


def _gap(points: np.ndarray, chosen: list[int]) -> float:
    """How far a training latent is from the nearest chosen one, per dimension; at least a tenth of the prior."""
    if len(chosen) == 0:
        return 1.0
    gaps = np.min(np.mean((points[:, None] - points[None, chosen]) ** 2, axis=-1), axis=1)
    return float(np.clip(np.sqrt(gaps.mean()), 0.1, 1.0))
