"""The GP against the textbook formulas in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.dynamics.gp import JITTER, Hyper, fit_gp, log_evidence, predict_gp
from tests.dynamics.toys import random_batch


def _kernel(a, b, amplitude, length):
    difference = (a[:, None] - b[None]) / length
    return amplitude**2 * np.exp(-0.5 * (difference**2).sum(axis=-1))


def test_evidence_against_numpy():
    rng = np.random.default_rng(0)
    features, target = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    instance, latents = rng.integers(0, 2, 12), rng.normal(size=(2, 2))
    amplitude, noise = np.exp([0.1, -0.2]), np.exp([-1.0, -0.5])
    length = np.exp(rng.normal(size=(2, 5)) * 0.3)
    inputs = np.concatenate([features, latents[instance]], axis=1)
    expected = -0.5 * np.sum(latents**2 + np.log(2 * np.pi))
    for d in range(2):
        matrix = _kernel(inputs, inputs, amplitude[d], length[d]) + (noise[d] ** 2 + JITTER) * np.eye(12)
        y = target[:, d]
        expected += -0.5 * (y @ np.linalg.solve(matrix, y) + np.linalg.slogdet(matrix)[1] + 12 * np.log(2 * np.pi))
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        hyper = Hyper(*(jnp.asarray(np.log(v)) for v in (amplitude, length, noise)), jnp.asarray(latents))
        data = (jnp.asarray(features), jnp.asarray(target), jnp.asarray(instance, jnp.int32))
        assert float(log_evidence(hyper, *data)) == pytest.approx(expected, rel=1e-9)


def test_prediction_against_numpy_and_fit_improves():
    batch = random_batch(hipmdp.make("grid"), [0, 1], episodes=1, steps=40)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        untrained, model = (fit_gp(batch, key=jax.random.key(0), steps=steps) for steps in (0, 40))
        data = (model.features, model.target, model.instance)
        with jax.enable_x64(True):
            assert log_evidence(model.hyper, *data) > log_evidence(untrained.hyper, *data) + 10
        one = batch.of_instance(0)
        prediction = predict_gp(model, one, model.hyper.latents[0])
    hyper = jax.tree.map(np.asarray, model.hyper)
    inputs = np.concatenate([model.features, hyper.latents[np.asarray(model.instance)]], axis=1)
    new = inputs[np.asarray(model.instance) == 0]
    scale, centre = np.asarray(model.scaling.change_scale), np.asarray(model.scaling.change_centre)
    for d in range(2):
        amplitude, length = np.exp(hyper.log_amplitude[d]), np.exp(hyper.log_length[d])
        noise = np.exp(hyper.log_noise[d]) ** 2 + JITTER
        matrix = _kernel(inputs, inputs, amplitude, length) + noise * np.eye(len(inputs))
        cross = _kernel(new, inputs, amplitude, length)
        mean = cross @ np.linalg.solve(matrix, np.asarray(model.target)[:, d])
        variance = amplitude**2 - np.einsum("ij,ji->i", cross, np.linalg.solve(matrix, cross.T))
        np.testing.assert_allclose(prediction.mean[:, d], mean * scale[d] + centre[d], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(prediction.epistemic[:, d], variance * scale[d] ** 2, rtol=1e-3, atol=1e-6)
