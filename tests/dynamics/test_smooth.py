"""The belief after a whole log: exact where T̂ is linear in w, blind to the order of rows, honest about what fits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.dynamics.belief import new_filter
from hipmdp.dynamics.model import new_dynamics
from hipmdp.dynamics.smooth import ROWS, SCALES, smoothed
from hipmdp.dynamics.standardise import Scaling
from hipmdp.settings.dynamics import DynamicsConfig
from tests.dynamics.test_belief import KNOWN_NOISE, NOISE, linear_dynamics, rows
from tests.dynamics.toys import toy_log, toy_specification


def log_of(dynamics, latent, count, **options):
    """A log of an instance whose w is `latent`, and ∂T̂/∂w of its rows."""
    state, action, change, slope = rows(dynamics, jnp.asarray(latent, jnp.float32), count, **options)
    log = toy_log(state, change, action=np.asarray(action), specification=dynamics.specification)
    return log, np.asarray(slope, np.float64), np.asarray(change, np.float64)


def test_where_the_model_is_linear_every_hypothesis_is_a_bayesian_regression():
    """Λ = Λ_h + Σ JᵀJ/σ², μ = Λ⁻¹(Λ_h μ_h + Σ Jᵀy/σ²); p_h ∝ ∫ N(w; μ_h, Λ_h⁻¹) Π N(y; Jw, σ²) dw."""
    dynamics = linear_dynamics()
    chosen = new_filter(dynamics, jax.random.key(1), config=KNOWN_NOISE)
    log, slopes, change = log_of(dynamics, (0.8, -0.4), 12)
    belief = smoothed(chosen, log)

    prior = np.asarray(chosen.start.covariance, np.float64)
    means = np.asarray(chosen.start.mean, np.float64)
    around = [scale**2 * np.broadcast_to(prior[:1], prior[1:].shape) for scale in SCALES]
    wide, means = np.concatenate([prior[:1], *around]), np.concatenate([means[:1], *(means[1:] for _ in SCALES)])
    hessian = np.einsum("ndi,ndj->ij", slopes, slopes) / NOISE
    covariance = np.linalg.inv(np.linalg.inv(wide) + hessian)
    pull = np.einsum("hij,hj->hi", np.linalg.inv(wide), means) + np.einsum("ndi,nd->i", slopes, change) / NOISE
    expected = np.einsum("hij,hj->hi", covariance, pull)
    flat, design = change.reshape(-1), slopes.reshape(-1, 2)
    density = []
    for mean, own in zip(means, wide, strict=True):
        total = design @ own @ design.T + NOISE * np.eye(len(flat))
        error = flat - design @ mean
        density.append(-0.5 * (error @ np.linalg.solve(total, error) + np.linalg.slogdet(total)[1]))
    order = np.argsort(-np.asarray(density))[: len(belief.mean)]
    weight = np.exp(np.asarray(density)[order] - np.max(density))

    np.testing.assert_allclose(belief.mean, expected[order], rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(belief.covariance, covariance[order], rtol=2e-3, atol=1e-4)
    np.testing.assert_allclose(np.exp(belief.log_weight), weight / weight.sum(), rtol=2e-2, atol=1e-3)
    assert float(belief.rows) == 12


def test_the_order_of_rows_does_not_matter():
    dynamics = linear_dynamics()
    chosen = new_filter(dynamics, jax.random.key(1))
    log, *_ = log_of(dynamics, (-0.5, 0.2), 30)
    back = log.select(np.arange(30)[::-1])
    for one, other in zip(smoothed(chosen, log), smoothed(chosen, back), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_a_member_far_from_all_known_ones_is_found():
    """Four prior spreads away: the wide hypotheses get there, and the misfit does not grow."""
    dynamics = linear_dynamics()
    truth = np.asarray(dynamics.latent_prior.mean) + 4 * np.sqrt(np.asarray(dynamics.latent_prior.variance))
    log, *_ = log_of(dynamics, truth, 300)
    belief = smoothed(new_filter(dynamics, jax.random.key(1)), log)
    assert np.all(np.abs(np.asarray(belief.best) - truth) < 4 * np.asarray(belief.spread))
    assert np.all(np.asarray(belief.misfit) < 1.5)


def test_a_wall_does_not_move_w():
    """One row in thirty is as if blocked, a thousand spreads away from what T̂ says: w stays where it is."""
    dynamics = linear_dynamics()
    chosen = new_filter(dynamics, jax.random.key(1))
    state, _, change, _ = rows(dynamics, jnp.asarray([0.8, -0.4], jnp.float32), 60)
    spoilt = np.asarray(change).copy()
    spoilt[[7, 41]] += 500.0
    one, other = (smoothed(chosen, toy_log(state, v, specification=dynamics.specification)) for v in (change, spoilt))
    np.testing.assert_allclose(one.best, other.best, atol=0.15)


def test_without_rows_nothing_is_known():
    dynamics = linear_dynamics()
    chosen = new_filter(dynamics, jax.random.key(1))
    log, *_ = log_of(dynamics, (0.8, -0.4), 3)
    found = smoothed(chosen, log.select(np.zeros(3, bool)))
    assert eqx.tree_equal(found, chosen.start)


def test_long_logs_count_in_full():
    """Of four times as many rows as are used at most, the width is that of all."""
    dynamics = linear_dynamics()
    chosen = new_filter(dynamics, jax.random.key(1), config=KNOWN_NOISE)
    log, slopes, _ = log_of(dynamics, (0.8, -0.4), 4 * ROWS)
    belief = smoothed(chosen, log)
    assert float(belief.rows) == pytest.approx(4 * ROWS)
    hessian = np.einsum("ndi,ndj->ij", slopes, slopes) / NOISE
    widest = np.argmax(np.trace(np.asarray(belief.covariance), axis1=1, axis2=2))
    np.testing.assert_allclose(belief.covariance[widest], np.linalg.inv(hessian), rtol=0.2, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 2, 40])
@pytest.mark.parametrize("scale", [1.0, 1e20])
def test_beliefs_stay_proper(count, scale):
    """Of any number of training latents, and however wild the differences."""
    latents = tuple(map(tuple, np.random.default_rng(0).normal(size=(count, 2))))
    dynamics = linear_dynamics(latents)
    chosen = new_filter(dynamics, jax.random.key(1))
    state, _, change, _ = rows(dynamics, jnp.asarray([0.8, -0.4], jnp.float32), 20)
    wild = np.asarray(change).copy()
    wild[3] *= scale
    belief = smoothed(chosen, toy_log(state, wild, specification=dynamics.specification))
    assert [leaf.shape for leaf in belief] == [leaf.shape for leaf in chosen.start]
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in (belief.mean, belief.covariance, belief.misfit))
    assert float(jnp.sum(jnp.exp(belief.log_weight))) == pytest.approx(1, abs=1e-3)
    assert np.isfinite(np.asarray(belief.draw(jax.random.key(0), 50))).all()


def test_what_is_known_of_a_bent_model_is_found_from_the_nearest_known_latent():
    """T̂ is not linear in w here: a w near the third training latent, in forty rows with little noise."""
    specification = toy_specification(states=2)
    ones, zeros = jnp.ones(2, jnp.float32), jnp.zeros(2, jnp.float32)
    config = DynamicsConfig(hidden=(16,), latent_size=2)
    dynamics = new_dynamics(config, specification, Scaling(zeros, ones, zeros, ones), 3, key=jax.random.key(4))
    dynamics = eqx.tree_at(
        lambda d: (d.latents, d.log_noise, d.posterior.rho, d.posterior.mean),
        dynamics,
        (
            jnp.asarray([[2.0, 0.0], [-2.0, 1.0], [0.0, -2.0]], jnp.float32),
            jnp.full(2, np.log(1e-4), jnp.float32),
            jnp.full_like(dynamics.posterior.rho, -60.0),
            3 * dynamics.posterior.mean,
        ),
    )
    truth = jnp.asarray([0.3, -1.7], jnp.float32)
    state, action, change, _ = rows(dynamics, truth, 40, noise=1e-4)
    log = toy_log(state, change, action=np.asarray(action), specification=specification)
    belief = smoothed(new_filter(dynamics, jax.random.key(1)), log)
    np.testing.assert_allclose(belief.best, truth, atol=0.05)
