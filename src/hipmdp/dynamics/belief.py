"""p(w_b | transitions so far): a posterior that is updated with every transition in constant time.

The posterior is a mixture of Gaussians Σ_h p_h N(w; μ_h, P_h), a bank of extended Kalman filters. T̂ bends with w, so a
filter that starts far from the truth can settle in the wrong place; several starts, the training latents among them,
make that rare. For a transition with standardised difference y, J_h = ∂T̂/∂w at μ_h and the mean weights:

    S_h = J_h P_h J_hᵀ + R,  R = diag(c ⊙ (σ_n² + v(s, a)))     noise, and what W does not know
    μ_h ← μ_h + P_h J_hᵀ S_h⁻¹ (y − T̂_h),  P_h ← P_h − P_h J_hᵀ S_h⁻¹ J_h P_h,  p_h ← p_h N(y; T̂_h, S_h)^{1/T'}

What a model misses on a new instance is more than its noise on the old ones, and alike from row to row. The misfit c is
that factor per dimension, estimated on the way: where the family does not fit, R grows, and w stays uncertain.

A row whose squared error is more than `gate` times the expected one (a wall that T̂ blurs) has its S widened to that, so
that it moves w no further than a bad row of the usual kind.

For the same reason n rows hold less information than n independent ones would. The filter finds w as if they were
independent; the covariance that it reports counts them 1/T (Λ₀ is the precision before the first row):

    P̄_h = (Λ₀ + (P_h⁻¹ − Λ₀) / T)⁻¹

and the weights p_h count them 1/T', so that a hypothesis whose time is yet to come stays in the bank.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hipmdp.dynamics.model import Dynamics
from hipmdp.settings.dynamics import FilterConfig

HYPOTHESES = 33
"""Filters in a bank, at most."""
NARROWEST = 0.3
"""Spread around a training latent, at least, in spreads of all: new members are between the known ones."""


class Belief(NamedTuple):
    """The posterior Σ_h p_h N(w; μ_h, P_h) of w_b."""

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
    temperature: Float[Array, ""]
    """T (`FilterConfig.temperature`)."""

    @property
    def best(self) -> Float[Array, " latent"]:
        """μ of the most probable hypothesis: a mean over hypotheses may be like no system at all."""
        return self.mean[jnp.argmax(self.log_weight)]

    @property
    def tempered(self) -> Float[Array, "hypotheses latent latent"]:
        """P̄_h: the covariance when rows count 1/T."""
        scale = jnp.sqrt(self.before)
        # In units of the prior: P = S U S, Λ₀ = S⁻², and P̄ = S (I + (U⁻¹ − I)/T)⁻¹ S = S T U (I + (T − 1) U)⁻¹ S.
        unit = self.covariance / scale[:, :, None] / scale[:, None, :]
        eye = jnp.eye(unit.shape[-1], dtype=unit.dtype)[None]
        shrunk = self.temperature * jnp.linalg.solve(eye + (self.temperature - 1) * unit, unit)
        shrunk = (shrunk + jnp.swapaxes(shrunk, 1, 2)) / 2
        return shrunk * scale[:, :, None] * scale[:, None, :]

    @property
    def spread(self) -> Float[Array, " latent"]:
        """Standard deviation of w_b, within and between the hypotheses."""
        weight = jnp.exp(self.log_weight)
        centre = weight @ self.mean
        within = weight @ jnp.diagonal(self.tempered, axis1=1, axis2=2)
        return jnp.sqrt(within + weight @ (self.mean - centre[None]) ** 2)

    def draw(self, key: PRNGKeyArray, count: int) -> Float[Array, "count latent"]:
        """w ~ Σ_h p_h N(μ_h, P̄_h)."""
        choice_key, normal_key = jax.random.split(key)
        chosen = jax.random.categorical(choice_key, self.log_weight, shape=(count,))
        factor = jnp.linalg.cholesky(self.tempered)[chosen]
        normals = jax.random.normal(normal_key, (count, self.mean.shape[1]), jnp.float32)
        return self.mean[chosen] + jnp.einsum("cij,cj->ci", factor, normals)


class BeliefPrediction(NamedTuple):
    """Mean and variance of the standardised difference, integrated over the belief, W and the noise."""

    mean: Float[Array, " state"]
    variance: Float[Array, " state"]


class Filter(eqx.Module):
    """How a belief starts, how a transition updates it, what it predicts, and what an action would reveal about w_b."""

    dynamics: Dynamics
    weights: Float[Array, "draws weights"]
    """Functions that the batch allows: where they differ, W is uncertain."""
    start: Belief
    """The belief before the first transition."""
    config: FilterConfig = eqx.field(static=True)

    def update(
        self,
        belief: Belief,
        state: Float[Array, " state"],
        action: Int[Array, ""],
        change: Float[Array, " state"],
        share: Float[Array, ""] | None = None,
    ) -> Belief:
        """The belief after one transition; `change` is s' − s, angles wrapped; `share` as in `Dynamics.features`."""
        config = self.config
        features = self.dynamics.features(state, action, share)
        target = self.dynamics.scaling.standardised(change)
        base = self._base(features, belief.best)
        means, slopes = self._linear(features, belief.mean)
        inner = jnp.einsum("hdi,hij,hej->hde", slopes, belief.covariance, slopes)
        total = inner + jnp.diag(belief.misfit * base)[None]
        error = target[None] - means
        # A row that is far out under a hypothesis counts as if S were wider there: walls must not move w.
        far = jnp.einsum("hd,hd->h", error, jnp.linalg.solve(total, error[..., None])[..., 0])
        total = total * jnp.maximum(far / (config.gate * error.shape[1]), 1)[:, None, None]
        factor = jnp.linalg.cholesky(total)
        white = jax.vmap(lambda f, e: jax.scipy.linalg.solve_triangular(f, e, lower=True))(factor, error)
        cross = jnp.einsum("hdi,hij->hdj", slopes, belief.covariance)
        half = jax.vmap(lambda f, c: jax.scipy.linalg.solve_triangular(f, c, lower=True))(factor, cross)
        mean = belief.mean + jnp.einsum("hdi,hd->hi", half, white)
        covariance = belief.covariance - jnp.einsum("hdi,hdj->hij", half, half)
        fit = -0.5 * jnp.sum(white**2, axis=-1) - jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=-1)
        log_weight = belief.log_weight + fit / config.weight_temperature
        log_weight = log_weight - jax.nn.logsumexp(log_weight)
        chosen = jnp.argmax(log_weight)
        surprise = error[chosen] ** 2 / (jnp.diagonal(inner[chosen]) + base)
        share = 1 / jnp.minimum(config.misfit_rows + belief.rows + 1, config.misfit_memory)
        surprise = jnp.minimum(surprise, config.largest_surprise * jnp.maximum(belief.misfit, 1))
        misfit = belief.misfit + share * (surprise - belief.misfit)
        misfit = jnp.maximum(misfit, config.smallest_misfit)
        updated = belief._replace(
            log_weight=log_weight, mean=mean, covariance=covariance, misfit=misfit, rows=belief.rows + 1
        )
        # A state that is not finite changes nothing.
        fine = jnp.all(jnp.isfinite(target)) & jnp.all(jnp.isfinite(mean)) & jnp.all(jnp.isfinite(log_weight))
        return jax.tree.map(lambda new, old: jnp.where(fine, new, old), updated, belief)

    def predict(self, belief: Belief, state: Float[Array, " state"], action: Int[Array, ""]) -> BeliefPrediction:
        """Mean and variance of the standardised difference, over w_b, W and the noise."""
        features = self.dynamics.features(state, action)
        means, slopes = self._linear(features, belief.mean)
        weight = jnp.exp(belief.log_weight)
        within = jnp.einsum("hdi,hij,hdj->hd", slopes, belief.tempered, slopes)
        mean = weight @ means
        spread = weight @ (within + (means - mean[None]) ** 2)
        return BeliefPrediction(mean, spread + belief.misfit * self._base(features, belief.best))

    def information(self, belief: Belief, state: Float[Array, " state"]) -> Float[Array, " actions"]:
        """The expected information gain about w_b of each action, in nats.

        ½ log |I + R⁻¹ V(a)| with V(a) the covariance of the predicted difference over w_b, within and between the
        hypotheses: for one Gaussian that is the expected fall of its entropy.
        """
        weight = jnp.exp(belief.log_weight)

        def gain(action: Int[Array, ""]) -> Float[Array, ""]:
            features = self.dynamics.features(state, action)
            means, slopes = self._linear(features, belief.mean)
            away = means - (weight @ means)[None]
            within = jnp.einsum("h,hdi,hij,hej->de", weight, slopes, belief.covariance, slopes)
            spread = within + jnp.einsum("h,hd,he->de", weight, away, away)
            scale = jax.lax.rsqrt(belief.misfit * self._base(features, belief.best))
            ratio = spread * scale[:, None] * scale[None]
            return 0.5 * jnp.linalg.slogdet(ratio + jnp.eye(len(scale), dtype=ratio.dtype))[1]

        return jax.vmap(gain)(jnp.arange(self.dynamics.specification.action_count, dtype=jnp.int32))

    def _linear(
        self, features: Float[Array, " features"], latents: Float[Array, "hypotheses latent"]
    ) -> tuple[Float[Array, "hypotheses state"], Float[Array, "hypotheses state latent"]]:
        """T̂ and ∂T̂/∂w at every hypothesis; z is at its mean, as what it adds is noise."""

        def change(latent: Array) -> tuple[Array, Array]:
            mean = self.dynamics.change(self.dynamics.posterior.mean, features, latent)
            return mean, mean

        slopes, means = jax.vmap(jax.jacfwd(change, has_aux=True))(latents)
        return means, slopes

    def _base(self, features: Float[Array, " features"], latent: Float[Array, " latent"]) -> Float[Array, " state"]:
        """σ_n² + v(s, a)."""
        means = jax.vmap(self.dynamics.change, in_axes=(0, None, None))(self.weights, features, latent)
        return self.dynamics.noise_variance() + jnp.var(means, axis=0)


def new_filter(
    dynamics: Dynamics, key: PRNGKeyArray, hypotheses: int = HYPOTHESES, config: FilterConfig | None = None
) -> Filter:
    """A filter whose first belief is the family's: nothing is known of the instance.

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
    count, config = len(means), config or FilterConfig()
    start = Belief(
        log_weight=jnp.full(count, -np.log(count), jnp.float32),
        mean=jnp.asarray(means, jnp.float32),
        covariance=covariance,
        before=jnp.asarray(spreads**2, jnp.float32),
        misfit=jnp.ones(dynamics.specification.state_size, jnp.float32),
        rows=jnp.zeros((), jnp.float32),
        temperature=jnp.asarray(config.temperature, jnp.float32),
    )
    weights = dynamics.draw_weights(key, config.weight_draws)
    return Filter(dynamics=dynamics, weights=weights, start=start, config=config)


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
    """How far a training latent is from the nearest chosen one, per dimension; at least `NARROWEST` of the prior."""
    if len(chosen) == 0:
        return 1.0
    gaps = np.min(np.mean((points[:, None] - points[None, chosen]) ** 2, axis=-1), axis=1)
    return float(np.clip(np.sqrt(gaps.mean()), NARROWEST, 1.0))
