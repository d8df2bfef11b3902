"""The α-divergence energy against exact answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from hipmdp.dynamics.energy import alpha_energy, log_likelihood, log_likelihoods, log_ratio
from hipmdp.dynamics.network import Gaussian, MeanField, NetworkSizes, predicted_change, weight_count
from hipmdp.settings.dynamics import LatentRole

ALPHAS = (0.01, 0.45, 0.5, 1.0, 3.0)
SIZES = (3, 4, 2)


def from_variance(mean, variance, prior):
    share = variance / prior.variance
    return MeanField(mean, jnp.log(share) - jnp.log1p(-share))


def _drawn(posterior, prior, normals):
    return jax.vmap(posterior.draw, in_axes=(None, 0))(prior, normals)


def _ratios(posterior, prior, normals):
    return jax.vmap(log_ratio, in_axes=(None, None, 0))(posterior, prior, normals)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("prior_mean", [0.0, 0.3])
def test_exact_posterior_gives_minus_log_evidence_without_variance(alpha, prior_mean):
    """One weight, N observations y = w + noise, all the same: p(y) = N(y·1; μ·1, σ² I + λ 11ᵀ)."""
    with jax.enable_x64(True):
        count, y, noise, lam = 5, 0.7, 0.2, 1.5
        variance = 1 / (1 / lam + count / noise)
        mean = variance * (count * y / noise + prior_mean / lam)
        prior = Gaussian(jnp.asarray([prior_mean]), jnp.asarray([lam]))
        posterior = from_variance(jnp.asarray([mean]), jnp.asarray([variance]), prior)
        covariance = noise * np.eye(count) + lam
        residual = np.full(count, y - prior_mean)
        evidence = -0.5 * (
            residual @ np.linalg.solve(covariance, residual)
            + np.linalg.slogdet(covariance)[1]
            + count * np.log(2 * np.pi)
        )
        for seed in range(3):
            normals = jax.random.normal(jax.random.key(seed), (7, 1))
            weights = _drawn(posterior, prior, normals)
            target = jnp.full((count, 1), y)
            means = jnp.broadcast_to(weights[:, None, :], (7, count, 1))
            fits = log_likelihoods(target, means, jnp.log(jnp.asarray([noise])))
            ratios, count_ = _ratios(posterior, prior, normals), jnp.asarray(float(count))
            energy = alpha_energy(fits, ratios, importance=jnp.ones(count), count=count_, alpha=alpha)
            assert float(energy) == pytest.approx(-evidence, rel=1e-9)


def _case(seed, batch=6, draws=5):
    keys = jax.random.split(jax.random.key(seed), 6)
    count = weight_count(SIZES)
    prior = Gaussian(jnp.zeros(count), jnp.full(count, 1.3))
    posterior = MeanField(0.5 * jax.random.normal(keys[0], (count,)), jax.random.normal(keys[1], (count,)) - 2)
    normals = jax.random.normal(keys[2], (draws, count))
    features, target = jax.random.normal(keys[3], (batch, 3)), jax.random.normal(keys[4], (batch, 2))
    return prior, posterior, normals, features, target


def _means(posterior, prior, normals, features):
    weights = _drawn(posterior, prior, normals)

    def row(w, f):
        return predicted_change(LatentRole.NONE, NetworkSizes(SIZES, ()), weights=w, features=f, latent=jnp.zeros(1))

    return jax.vmap(lambda w: jax.vmap(lambda f: row(w, f))(features))(weights)


def _energy(posterior, log_noise, prior, normals, features, target, count, alpha):
    fits = log_likelihoods(target, _means(posterior, prior, normals, features), log_noise)
    ones = jnp.ones(target.shape[0])
    ratios = _ratios(posterior, prior, normals)
    return alpha_energy(fits, ratios, importance=ones, count=jnp.asarray(float(count)), alpha=alpha)


@given(st.integers(0, 1000), st.sampled_from(ALPHAS), st.integers(6, 10_000))
def test_equals_the_formula_with_sites_and_normalisers(seed, alpha, count):
    """The formula as it stands in the paper's reference, site by site."""
    with jax.enable_x64(True):
        prior, posterior, normals, features, target = _case(seed)
        log_noise = jnp.asarray([-0.5, 0.3])
        lam = np.asarray(prior.variance)
        m, v = np.asarray(posterior.mean), np.asarray(posterior.variance(prior))
        weights = m + np.sqrt(v) * np.asarray(normals)
        precision, shift = (1 / v - 1 / lam) / count, m / v / count
        log_f = np.sum(-0.5 * weights**2 * precision + shift * weights, axis=1)
        fits = np.asarray(log_likelihoods(target, _means(posterior, prior, normals, features), log_noise))
        log_zq = np.sum(0.5 * np.log(2 * np.pi * v) + m**2 / (2 * v))
        log_zp = np.sum(0.5 * np.log(2 * np.pi * lam))
        inner = np.log(np.mean(np.exp(alpha * (fits - log_f[:, None])), axis=0))
        literal = -log_zq - count / (alpha * len(target)) * inner.sum() + log_zp
        ours = float(_energy(posterior, log_noise, prior, normals, features, target, count, alpha))
        assert ours == pytest.approx(literal, rel=1e-8, abs=1e-6)


def test_small_alpha_gives_the_negative_elbo():
    with jax.enable_x64(True):
        prior, posterior, normals, features, target = _case(0, draws=40)
        log_noise, count = jnp.asarray([-0.5, 0.3]), 100
        fits = log_likelihoods(target, _means(posterior, prior, normals, features), log_noise)
        ratio = _ratios(posterior, prior, normals)
        elbo = count * jnp.mean(fits) - jnp.mean(ratio)
        energy = _energy(posterior, log_noise, prior, normals, features, target, count, 1e-6)
        assert float(energy) == pytest.approx(-float(elbo), rel=1e-4)


def test_the_sampled_log_ratio_averages_to_the_exact_divergence():
    """KL of two normals in closed form."""
    with jax.enable_x64(True):
        prior = Gaussian(jnp.asarray([0.2]), jnp.asarray([2.0]))
        posterior = from_variance(jnp.asarray([0.5]), jnp.asarray([0.3]), prior)
        exact = 0.5 * (0.3 / 2.0 + 0.3**2 / 2.0 - 1 + np.log(2.0 / 0.3))
        ratios = _ratios(posterior, prior, jax.random.normal(jax.random.key(0), (200_000, 1)))
        assert float(jnp.mean(ratios)) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("alpha", [0.45, 1.0])
def test_gradients_against_finite_differences(alpha):
    with jax.enable_x64(True):
        prior, posterior, normals, features, target = _case(3)
        flat, unravel = ravel_pytree((posterior, jnp.asarray([-0.5, 0.3])))

        def energy(flat):
            posterior, log_noise = unravel(flat)
            return _energy(posterior, log_noise, prior, normals, features, target, 50, alpha)

        gradient = np.asarray(jax.grad(energy)(flat))
        rng = np.random.default_rng(0)
        for _ in range(10):
            direction = rng.normal(size=flat.shape)
            step = 1e-6
            numeric = (energy(flat + step * direction) - energy(flat - step * direction)) / (2 * step)
            assert float(numeric) == pytest.approx(float(gradient @ direction), rel=1e-5)


def test_mini_batches_average_to_the_full_batch():
    with jax.enable_x64(True):
        prior, posterior, normals, features, target = _case(1, batch=12)
        log_noise, count = jnp.asarray([-0.5, 0.3]), 12
        whole = _energy(posterior, log_noise, prior, normals, features, target, count, 0.5)
        parts = [
            _energy(posterior, log_noise, prior, normals, features[i : i + 3], target[i : i + 3], count, 0.5)
            for i in range(0, 12, 3)
        ]
        assert float(np.mean([float(part) for part in parts])) == pytest.approx(float(whole), rel=1e-12)


def test_importance_weights_count_rows():
    """A row of weight two counts as that row twice."""
    with jax.enable_x64(True):
        fits, ratios = jnp.asarray([[1.0, -2.0], [0.5, -1.0]]), jnp.asarray([0.3, -0.2])
        rest = {"count": jnp.asarray(9.0), "alpha": 0.5}
        twice = alpha_energy(fits[:, jnp.asarray([0, 0, 1])], ratios, importance=jnp.ones(3), **rest)
        weighed = alpha_energy(fits, ratios, importance=jnp.asarray([4 / 3, 2 / 3]), **rest)
        assert float(weighed) == pytest.approx(float(twice), rel=1e-12)


def test_log_likelihood_by_hand():
    """Two dimensions, σ² = 1 and 4, residuals 1 and 2: −½ (1 + 1 + log 4) − log 2π."""
    value = log_likelihood(jnp.asarray([1.0, 2.0]), jnp.zeros(2), jnp.log(jnp.asarray([1.0, 4.0])))
    assert float(value) == pytest.approx(-0.5 * (2 + np.log(4)) - np.log(2 * np.pi), rel=1e-6)
