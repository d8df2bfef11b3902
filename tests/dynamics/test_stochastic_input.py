"""The stochastic input z against the formula written out: appended to the features where a network has it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.dynamics.model import new_dynamics, predict
from hipmdp.dynamics.standardise import scaling_of
from hipmdp.settings.dynamics import LatentRole
from tests.dynamics.test_fit import SMALL, slopes_log

BATCH = slopes_log((0.0, 1.0), 20)


def new_model(role, stochastic):
    config = replace(SMALL, role=role, stochastic_input=stochastic, hidden=(5,), initial_rho=0.0)
    return new_dynamics(config, BATCH.specification, scaling_of(BATCH), 2, key=jax.random.key(0))


def literal(model, weights, inputs, latent):
    """One ReLU layer in NumPy."""
    weights, inputs = np.asarray(weights, np.float64), np.asarray(inputs, np.float64)
    if model.config.role is LatentRole.EMBEDDED:
        inputs = np.concatenate([inputs, np.asarray(latent)])
    first, rest = weights[: 5 * len(inputs)].reshape(len(inputs), 5), weights[5 * len(inputs) :]
    hidden = np.maximum(inputs @ first + rest[:5], 0)
    outputs = hidden @ rest[5:].reshape(6, -1)[:5] + rest[5:].reshape(6, -1)[5]
    if model.config.role is LatentRole.LINEAR:
        return np.asarray(latent) @ outputs.reshape(2, -1)
    return outputs


@pytest.mark.parametrize("role", list(LatentRole))
@pytest.mark.parametrize("stochastic", [False, True])
def test_change_is_the_network_of_features_z_and_latent(role, stochastic):
    model = new_model(role, stochastic)
    assert model.z_size == int(stochastic)
    features = model.features(jnp.asarray([0.7]), jnp.asarray(0))
    weights, latent = model.draw_weights(jax.random.key(1), 1)[0], jnp.asarray([0.3, -2.0])
    z = model.draw_z(jax.random.key(2), ())
    assert z.shape == (model.z_size,)
    for given, value in ((z, z), (None, np.zeros(model.z_size))):
        inputs = np.concatenate([np.asarray(features), np.asarray(value)])
        expected = literal(model, weights, inputs, latent)
        np.testing.assert_allclose(model.change(weights, features, latent, given), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stochastic", [False, True])
def test_variance_over_z_is_noise_and_over_weights_epistemic(stochastic):
    """The definition with loops: V_k[E_z] and σ_n² + E_k[V_z], for the draws that `predict` makes."""
    model, draws, rows = new_model(LatentRole.EMBEDDED, stochastic), 6, 3
    state, latent, key = BATCH.state[:rows], jnp.asarray([0.3, -2.0]), jax.random.key(5)
    prediction = predict(model, state, BATCH.action[:rows], latent, key=key, draws=draws)
    weight_key, z_key = jax.random.split(key)
    weights = model.draw_weights(weight_key, draws)
    z = np.asarray(model.draw_z(z_key, (draws, draws if stochastic else 1, rows)))
    scale, centre = np.asarray(model.scaling.change_scale), np.asarray(model.scaling.change_centre)
    features = [np.asarray(model.features(jnp.asarray(s), jnp.asarray(0))) for s in state]
    changes = np.asarray(
        [
            [[literal(model, weights[k], np.concatenate([features[n], z[k, j, n]]), latent) for n in range(rows)]
             for j in range(z.shape[1])]
            for k in range(draws)
        ]
    )  # fmt: skip
    noise = np.asarray(model.noise_variance()) + changes.var(axis=1).mean(axis=0)
    np.testing.assert_allclose(prediction.mean, changes.mean(axis=(0, 1)) * scale + centre, rtol=1e-4)
    np.testing.assert_allclose(prediction.epistemic, changes.mean(axis=1).var(axis=0) * scale**2, rtol=1e-3)
    np.testing.assert_allclose(prediction.noise, noise * scale**2, rtol=1e-3)
