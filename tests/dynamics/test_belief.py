"""The belief about w_b: exact where T̂ is linear in w, narrower with data, honest about systems unlike those seen."""

from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipmdp.dynamics.belief import HYPOTHESES, new_filter
from hipmdp.dynamics.model import new_dynamics
from hipmdp.dynamics.network import Gaussian
from hipmdp.dynamics.standardise import Scaling
from hipmdp.settings.dynamics import DynamicsConfig, FilterConfig, LatentRole
from tests.dynamics.toys import toy_specification

NOISE = 0.25
THREE = ((1.0, 0.0), (-1.0, 2.0), (0.5, -1.0))


@cache
def linear_dynamics(latents=THREE, noise=NOISE):
    """wᵀ T̂(s, a): linear in w, so that the filter has a known answer."""
    specification = toy_specification(states=2)
    config = DynamicsConfig(role=LatentRole.LINEAR, hidden=(4,), latent_size=2)
    ones, zeros = jnp.ones(2, jnp.float32), jnp.zeros(2, jnp.float32)
    dynamics = new_dynamics(
        config, specification, Scaling(zeros, ones, zeros, ones), len(latents), key=jax.random.key(0)
    )
    # A posterior as narrow as can be: v(s, a) is nothing.
    return eqx.tree_at(
        lambda d: (d.latents, d.log_noise, d.posterior.rho),
        dynamics,
        (
            jnp.asarray(np.reshape(latents, (-1, 2)), jnp.float32),
            jnp.full(2, np.log(noise), jnp.float32),
            jnp.full_like(dynamics.posterior.rho, -60.0),
        ),
    )


def rows(dynamics, latent, count, seed=0, noise=NOISE):
    """States, actions and differences of an instance whose w is `latent`."""
    rng = np.random.default_rng(seed)
    state = jnp.asarray(rng.normal(size=(count, 2)), jnp.float32)
    action = jnp.zeros(count, jnp.int32)
    mean, slope = means(dynamics, state, action, latent)
    return state, action, mean + jnp.asarray(rng.normal(0, np.sqrt(noise), (count, 2)), jnp.float32), slope


@eqx.filter_jit
def means(dynamics, state, action, latent):
    """T̂ and ∂T̂/∂w of every row."""

    def one(state, action):
        features = dynamics.features(state, action)
        change = partial(dynamics.change, dynamics.posterior.mean, features)
        return change(latent), jax.jacfwd(change)(latent)

    return jax.vmap(one)(state, action)


@eqx.filter_jit
def beliefs_along(filter_, state, action, change):
    """The belief after every row."""

    def body(belief, row):
        belief = filter_.update(belief, *row)
        return belief, belief

    return jax.lax.scan(body, filter_.start, (state, action, change))[1]


def final(beliefs, row=-1):
    """The belief after one of the rows."""
    return type(beliefs)(*(jnp.asarray(np.asarray(leaf)[row]) for leaf in beliefs))


KNOWN_NOISE = FilterConfig(misfit_rows=1e30, misfit_memory=1e30)
"""The misfit stays at one."""


def test_where_the_model_is_linear_the_posterior_is_the_exact_one():
    """Bayesian linear regression: Λ = Σ_w⁻¹ + Σ J ᵀJ/σ², μ = Λ⁻¹ (Σ_w⁻¹ μ_w + Σ Jᵀ y/σ²)."""
    dynamics = linear_dynamics()
    filter_ = new_filter(dynamics, jax.random.key(1), hypotheses=1, config=KNOWN_NOISE)
    state, action, change, slope = rows(dynamics, jnp.asarray([0.8, -0.4], jnp.float32), 12)
    belief = final(beliefs_along(filter_, state, action, change))
    prior: Gaussian = dynamics.latent_prior
    slopes = np.asarray(slope, np.float64)
    precision = np.diag(1 / np.asarray(prior.variance, np.float64)) + np.einsum("ndi,ndj->ij", slopes, slopes) / NOISE
    pull = (
        np.asarray(prior.mean, np.float64) / np.asarray(prior.variance)
        + np.einsum("ndi,nd->i", slopes, np.asarray(change, np.float64)) / NOISE
    )
    covariance = np.linalg.inv(precision)
    np.testing.assert_allclose(np.asarray(belief.covariance[0]), covariance, rtol=2e-3)
    np.testing.assert_allclose(np.asarray(belief.best), covariance @ pull, rtol=2e-3, atol=2e-3)


def test_the_width_falls_as_data_come_and_the_truth_is_found():
    dynamics = linear_dynamics()
    filter_ = new_filter(dynamics, jax.random.key(1))
    truth = jnp.asarray([-0.9, 1.8], jnp.float32)
    beliefs_ = beliefs_along(filter_, *rows(dynamics, truth, 200)[:3])
    spread = np.asarray(jax.jit(jax.vmap(lambda b: b.spread))(beliefs_)).mean(axis=1)
    # Hypotheses that the data have not told apart yet stay in the bank: it takes some rows.
    assert min(spread[0], spread[60]) > spread[199]
    last = final(beliefs_)
    assert np.all(np.abs(np.asarray(last.best - truth)) < 4 * np.asarray(last.spread))
    assert float(jnp.exp(jax.nn.logsumexp(last.log_weight))) == pytest.approx(1, abs=1e-5)


def test_rows_count_less_in_the_reported_covariance():
    """P̄ = (Λ₀ + (P⁻¹ − Λ₀)/T)⁻¹; before the first row it is the prior."""
    dynamics = linear_dynamics()
    filter_ = new_filter(dynamics, jax.random.key(1), hypotheses=1, config=KNOWN_NOISE)
    np.testing.assert_allclose(filter_.start.tempered[0], np.diag(dynamics.latent_prior.variance), rtol=1e-5)
    belief = final(beliefs_along(filter_, *rows(dynamics, jnp.ones(2, jnp.float32), 30)[:3]))
    before, now = (
        np.linalg.inv(np.asarray(filter_.start.covariance[0])),
        np.linalg.inv(np.asarray(belief.covariance[0])),
    )
    expected = np.linalg.inv(before + (now - before) / KNOWN_NOISE.temperature)
    np.testing.assert_allclose(np.asarray(belief.tempered[0]), expected, rtol=1e-3, atol=1e-5)
    belief = belief._replace(temperature=jnp.ones((), jnp.float32))
    np.testing.assert_allclose(np.asarray(belief.tempered[0]), np.asarray(belief.covariance[0]), rtol=1e-3, atol=1e-5)


def test_intervals_hold_what_they_promise_even_if_the_noise_is_larger_than_expected():
    """Nine times the noise: after some rows the misfit is nine, and 95 % intervals hold 95 %."""
    dynamics = linear_dynamics()
    filter_ = new_filter(dynamics, jax.random.key(1))
    state, action, change, _ = rows(dynamics, jnp.asarray([0.3, 0.5], jnp.float32), 900, noise=9 * NOISE)
    belief = final(beliefs_along(filter_, state, action, change), 499)
    assert 6 < float(jnp.mean(belief.misfit)) < 12
    predictions = jax.jit(jax.vmap(lambda s, a: filter_.predict(belief, s, a)))(state[500:], action[500:])
    ratio = np.abs(np.asarray(change[500:] - predictions.mean)) / np.sqrt(np.asarray(predictions.variance))
    assert 0.92 < np.mean(ratio < 1.96) < 0.98


def test_a_system_unlike_those_seen_stays_uncertain():
    """The same rows with differences that no w explains: the belief is wider than for a member of the family."""
    dynamics = linear_dynamics(noise=0.001)
    filter_ = new_filter(dynamics, jax.random.key(1))
    state, action, change, _ = rows(dynamics, jnp.asarray([0.3, 0.5], jnp.float32), 200, noise=0.001)
    strange = 5 * jnp.sin(7 * state) * jnp.asarray([[1.0, -1.0]])
    ours, theirs = (final(beliefs_along(filter_, state, action, c)) for c in (change, strange))
    assert np.all(np.asarray(theirs.spread) > 1.5 * np.asarray(ours.spread))
    assert float(jnp.mean(theirs.misfit)) > 5


def test_information_is_the_fall_of_entropy():
    """For one Gaussian and a linear model, I(a) is ½ log |P| / |P'| whatever comes."""
    dynamics = linear_dynamics()
    filter_ = new_filter(dynamics, jax.random.key(1), hypotheses=1, config=KNOWN_NOISE)
    state, action, change, _ = rows(dynamics, jnp.asarray([0.8, -0.4], jnp.float32), 3)
    gain = eqx.filter_jit(lambda filter_, state: filter_.information(filter_.start, state))(filter_, state[0])
    after = final(beliefs_along(filter_, state, action, change), 0)
    before, now = (np.linalg.slogdet(np.asarray(b.covariance[0], np.float64))[1] for b in (filter_.start, after))
    np.testing.assert_allclose(np.asarray(gain), [0.5 * (before - now)], rtol=1e-3)


def test_a_state_that_is_not_finite_changes_nothing():
    dynamics = linear_dynamics(THREE[:2])
    filter_ = new_filter(dynamics, jax.random.key(1))
    state, change = np.zeros((1, 2), np.float32), np.asarray([[np.nan, 0.0]], np.float32)
    after = beliefs_along(filter_, jnp.asarray(state), jnp.zeros(1, jnp.int32), jnp.asarray(change))
    for new, old in zip(jax.tree.leaves(final(after)), jax.tree.leaves(filter_.start), strict=True):
        np.testing.assert_array_equal(np.asarray(new), np.asarray(old))


@settings(max_examples=30)
@given(scale=st.floats(1e-3, 1e4), seed=st.integers(0, 1000))
def test_beliefs_stay_proper(scale, seed):
    """However wild the differences: weights sum to one, covariances are symmetric with positive diagonals."""
    dynamics = linear_dynamics()
    filter_ = new_filter(dynamics, jax.random.key(1))
    rng = np.random.default_rng(seed)
    state, change = (jnp.asarray(rng.normal(0, s, (20, 2)), jnp.float32) for s in (1.0, scale))
    belief = final(beliefs_along(filter_, state, jnp.zeros(20, jnp.int32), change))
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(belief))
    assert float(jnp.sum(jnp.exp(belief.log_weight))) == pytest.approx(1, abs=1e-3)
    covariance = np.asarray(belief.covariance)
    np.testing.assert_allclose(covariance, covariance.transpose(0, 2, 1), atol=1e-5)
    assert (np.diagonal(covariance, axis1=1, axis2=2) > 0).all()


def test_few_training_instances_give_few_hypotheses():
    """With two: the prior and the two. With none (a model that was never trained): the prior."""
    assert new_filter(linear_dynamics(THREE[:2]), jax.random.key(0)).start.mean.shape == (3, 2)
    assert new_filter(linear_dynamics(()), jax.random.key(0)).start.mean.shape == (1, 2)
    many = linear_dynamics(tuple(map(tuple, np.random.default_rng(0).normal(size=(40, 2)))))
    assert new_filter(many, jax.random.key(0)).start.mean.shape == (HYPOTHESES, 2)


def test_members_are_drawn_from_the_mixture():
    """Two hypotheses at ±1 with weights ¼ and ¾: a quarter at −1; each as wide as its covariance."""
    start = new_filter(linear_dynamics(), jax.random.key(1), hypotheses=2).start
    belief = start._replace(
        log_weight=jnp.log(jnp.asarray([0.25, 0.75], jnp.float32)),
        mean=jnp.asarray([[-1.0, 0.0], [1.0, 0.0]], jnp.float32),
        covariance=start.covariance * 1e-8,
    )
    drawn = np.asarray(belief.draw(jax.random.key(2), 8000))
    assert np.mean(drawn[:, 0] < 0) == pytest.approx(0.25, abs=0.02)
    np.testing.assert_allclose(np.abs(drawn), np.broadcast_to([1.0, 0.0], drawn.shape), atol=0.05)
    wide = belief._replace(covariance=start.covariance, temperature=jnp.ones((), jnp.float32))
    drawn = np.asarray(wide.draw(jax.random.key(2), 8000))
    spread = np.sqrt(np.asarray(start.covariance)[:, 1, 1])
    assert np.std(drawn[:, 1]) == pytest.approx(np.sqrt(0.25 * spread[0] ** 2 + 0.75 * spread[1] ** 2), rel=0.05)
