"""Fitting on toys with known answers."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.dynamics.fit_family import fit_dynamics
from hipmdp.dynamics.infer import infer_latent, latent_covariance, tune_model
from hipmdp.dynamics.model import new_dynamics, predict
from hipmdp.dynamics.oracle import oracle_latents, training_latents
from hipmdp.dynamics.quality import latent_use, quality
from hipmdp.dynamics.standardise import Scaling, scaling_of
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole
from tests.dynamics.toys import toy_log

SMALL = DynamicsConfig(
    hidden=(16, 16), latent_size=2, rounds=1500, weight_draws=4, batch_size=64, learning_rate=5e-3,
    latent_learning_rate=1e-2, tune_rounds=300, scratch_rounds=600, infer_steps=100, held_out_share=0.0,
)  # fmt: skip
KEY = jax.random.key(0)
SLOPES = (-1.0, -0.5, 0.5, 1.0)


def slopes_log(slopes, rows=150, seed=0, noise=0.02, bend=0.0):
    """s' − s = slope·s (+ bend·s²) + noise, one instance per slope."""
    rng = np.random.default_rng(seed)
    state = rng.uniform(-1, 1, (len(slopes) * rows, 1))
    slope = np.repeat(slopes, rows)[:, None]
    change = slope * state + bend * state**2 + noise * rng.normal(size=state.shape)
    return toy_log(state, change, instance=np.repeat(np.arange(len(slopes)), rows))


@pytest.fixture(scope="module")
def fitted():
    return {role: fit_dynamics(slopes_log(SLOPES), replace(SMALL, role=role), key=KEY) for role in LatentRole}


def test_latents_matter_and_the_average_model_cannot_distinguish(fitted):
    batch = slopes_log(SLOPES)
    for role in (LatentRole.EMBEDDED, LatentRole.LINEAR):
        use = latent_use(fitted[role], batch, key=KEY)
        assert use.error_own_latent < 0.15
        assert use.error_mean_latent > 0.6
        assert not use.ignored
    assert latent_use(fitted[LatentRole.NONE], batch, key=KEY) is None
    average = quality(fitted[LatentRole.NONE], batch.of_instance(0), jnp.zeros(2), key=KEY)
    assert average.error > 0.6


@pytest.mark.parametrize("role", [LatentRole.EMBEDDED, LatentRole.LINEAR])
@pytest.mark.parametrize("slope", [-0.75, 0.75])
def test_a_new_instance_is_identified_whatever_the_key(fitted, role, slope):
    """Between the training slopes: the latent of 30 transitions predicts other rows nearly as well as a trained one."""
    seen, other = slopes_log([slope], 30, seed=1), slopes_log([slope], 200, seed=2)
    model, keys = fitted[role], jax.random.split(KEY, 3)
    errors = [quality(model, other, infer_latent(model, seen, key=key).value, key=KEY).error for key in keys]
    mean = quality(model, other, model.latent_prior.mean, key=KEY).error
    assert max(errors) < 0.2 < 0.7 < mean
    assert max(errors) < 1.3 * min(errors) + 0.02


def test_every_start_that_wins_is_the_lowest(fitted):
    latent = infer_latent(fitted[LatentRole.EMBEDDED], slopes_log([0.5], 30, seed=3), key=KEY)
    assert float(latent.energy) == float(jnp.min(latent.energies))
    assert latent.energies.shape == (min(SMALL.latent_tries, len(SLOPES) + 1),)


def test_padding_changes_nothing(fitted):
    """99 and 100 rows fill up to the same size, 101 to another: the answer moves smoothly with the data."""
    log = slopes_log([0.75], 101, seed=4)
    model = fitted[LatentRole.EMBEDDED]
    values = [infer_latent(model, log.select(np.arange(n)), key=KEY).value for n in (99, 100, 101)]
    states, actions = np.linspace(-1, 1, 9)[:, None], np.zeros(9)
    predictions = [predict(model, states, actions, value, key=KEY).mean for value in values]
    np.testing.assert_allclose(predictions[0], predictions[1], atol=0.01)
    np.testing.assert_allclose(predictions[1], predictions[2], atol=0.01)


def test_tuning_learns_what_the_family_did_not_know_and_leaves_the_model_alone(fitted):
    """The new instance bends, which no training instance did."""
    model = fitted[LatentRole.EMBEDDED]
    before = jax.tree.map(np.asarray, model)
    seen, other = slopes_log([0.5], 150, seed=5, bend=0.5), slopes_log([0.5], 200, seed=6, bend=0.5)
    inferred = quality(model, other, infer_latent(model, seen, key=KEY).value, key=KEY).error
    tuned = tune_model(model, seen, key=KEY)
    assert quality(tuned.dynamics, other, tuned.latent, key=KEY).error < 0.7 * inferred
    assert tuned.dynamics.latents.shape == model.latents.shape
    jax.tree.map(np.testing.assert_array_equal, before, jax.tree.map(np.asarray, model))


def test_from_scratch_learns_this_instance_only():
    batch = slopes_log(SLOPES)
    config = replace(SMALL, role=LatentRole.NONE)
    empty = new_dynamics(config, batch.specification, scaling_of(batch), 0, key=KEY)
    seen, other = slopes_log([0.7], 150, seed=7), slopes_log([0.7], 200, seed=8)
    zero = jnp.zeros(2)
    untrained = quality(empty, other, zero, key=KEY).error
    tuned = tune_model(empty, seen, key=KEY)
    assert quality(tuned.dynamics, other, tuned.latent, key=KEY).error < 0.2 < untrained


def test_true_parameters_as_latents_bound_the_error():
    thetas = {i: {"slope": s, "same": 1.0} for i, s in enumerate(SLOPES)}
    oracle = oracle_latents(thetas)
    assert oracle.names == ("slope",)
    latents = training_latents(oracle, thetas)
    np.testing.assert_allclose(latents[:, 0], np.asarray(SLOPES) / np.std(SLOPES), rtol=1e-6)
    model = fit_dynamics(slopes_log(SLOPES), replace(SMALL, latent_size=1), key=KEY, latents=latents)
    np.testing.assert_array_equal(model.latents, latents)
    latent = oracle.latent({"slope": 0.75})
    assert quality(model, slopes_log([0.75], 200, seed=9), latent, key=KEY).error < 0.12


def test_uncertainty_of_the_latent_by_hand():
    """T̂ = 2 w, noise 0.5, unit prior, ten rows predicted exactly: Λ = 1 + 10·2²/0.5 = 81; at temperature 10, 9."""
    log = toy_log(np.zeros((10, 1)), np.full((10, 1), 1.0))
    ones = jnp.ones(1)
    config = replace(SMALL, hidden=(), latent_size=1)
    model = new_dynamics(config, log.specification, Scaling(0 * ones, ones, 0 * ones, ones), 1, key=KEY)
    # Inputs are s, the one action, w; the bias comes last.
    weights = jnp.asarray([0.0, 0.0, 2.0, 0.0])
    model = eqx.tree_at(lambda m: (m.posterior.mean, m.log_noise), model, (weights, jnp.log(0.5) * ones))
    latent = jnp.asarray([0.5])
    np.testing.assert_allclose(latent_covariance(model, log, latent), [[1 / 81]], rtol=1e-5)
    np.testing.assert_allclose(latent_covariance(model, log, latent, temperature=10), [[1 / 9]], rtol=1e-5)


def test_noise_is_found_per_dimension():
    """Noise of 0.3 and 0.05. Only importance weights that undo the priorities in full leave it unbiased."""
    rng = np.random.default_rng(0)
    state = rng.uniform(-1, 1, (600, 2))
    change = np.stack([state[:, 0] + 0.3 * rng.normal(size=600), state[:, 1] + 0.05 * rng.normal(size=600)], axis=1)
    config = replace(SMALL, role=LatentRole.NONE, rounds=4000, importance_exponent=1.0)
    model = fit_dynamics(toy_log(state, change), config, key=KEY)
    noise = np.sqrt(np.asarray(model.noise_variance())) * np.asarray(model.scaling.change_scale)
    np.testing.assert_allclose(noise, [0.3, 0.05], rtol=0.2)


def test_epistemic_variance_grows_away_from_the_data(fitted):
    model = fitted[LatentRole.EMBEDDED]
    prediction = predict(model, np.asarray([[0.0], [6.0]]), np.zeros(2), model.latents[0], key=KEY)
    assert float(prediction.epistemic[1, 0]) > 10 * float(prediction.epistemic[0, 0])
    np.testing.assert_allclose(prediction.noise[0], prediction.noise[1])


def test_coverage_of_known_noise():
    """A model whose weights are all zero and whose noise is one, on standard normal targets."""
    rng = np.random.default_rng(0)
    log = toy_log(np.zeros((4000, 1)), rng.normal(size=(4000, 1)))
    config = replace(SMALL, role=LatentRole.NONE, initial_rho=-30.0)
    model = new_dynamics(config, log.specification, scaling_of(log), 1, key=KEY)
    model = replace(model, posterior=jax.tree.map(jnp.zeros_like, model.posterior))
    model = replace(model, posterior=replace(model.posterior, rho=model.posterior.rho - 30))
    found = quality(model, log, jnp.zeros(2), key=KEY)
    np.testing.assert_allclose(found.coverage, [0.5, 0.8, 0.95], atol=0.03)
    assert found.error == pytest.approx(1, abs=0.01)
    assert found.log_likelihood == pytest.approx(-0.5 * np.log(2 * np.pi) - 0.5, abs=0.01)


def _toy(kind, rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 1))
    if kind == "bimodal":
        y = x + rng.choice([-1.0, 1.0], (rows, 1)) + 0.05 * rng.normal(size=x.shape)
    else:
        y = x + (0.02 + 0.6 * (x > 0)) * rng.normal(size=x.shape)
    return toy_log(x, y)


@pytest.mark.parametrize(("kind", "gain"), [("bimodal", 1.5), ("heteroskedastic", 0.15)])
def test_the_stochastic_input_fits_what_the_plain_network_cannot(kind, gain):
    """Held-out log-likelihood per row. On two modes a single Gaussian loses about log(1/0.05) − log 2 = 2.3 nats."""
    train, test = _toy(kind, 800, 0), _toy(kind, 400, 1)
    config = replace(
        SMALL, role=LatentRole.NONE, alpha=1.0, weight_draws=16, rounds=2000, importance_exponent=1.0,
        initial_log_noise=-4.0,
    )  # fmt: skip
    plain = fit_dynamics(train, config, key=KEY)
    with_input = fit_dynamics(train, replace(config, stochastic_input=True), key=KEY)
    measured = (quality(model, test, jnp.zeros(2), key=KEY, draws=400) for model in (plain, with_input))
    likelihood = [part.log_likelihood for part in measured]
    assert likelihood[1] > likelihood[0] + gain
