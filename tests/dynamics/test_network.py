"""The network by hand: layers, the three ways in which a latent enters, wrapped angles, standardisation, the pool."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hipmdp
from hipmdp.dynamics.network import (
    Gaussian,
    MeanField,
    NetworkSizes,
    forward,
    initial_weights,
    network_sizes,
    predicted_change,
)
from hipmdp.dynamics.noise import from_pool, make_pool
from hipmdp.dynamics.standardise import scaling_of, state_changes
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole
from tests.dynamics.toys import random_batch, toy_log


def test_forward_by_hand():
    """One hidden unit: relu(1·2 + (−1)·3 + 5) = 4, then 4·10 + 0.5."""
    weights = jnp.asarray([1.0, -1.0, 5.0, 10.0, 0.5])
    assert float(forward((2, 1, 1), weights, jnp.asarray([2.0, 3.0]))[0]) == pytest.approx(40.5)
    assert float(forward((2, 1, 1), weights, jnp.asarray([0.0, 9.0]))[0]) == pytest.approx(0.5)


def test_the_three_roles_of_the_latent_by_hand():
    """No hidden layer: the output is a linear map, so that each role can be written down."""
    inputs = {"features": jnp.asarray([2.0]), "latent": jnp.asarray([3.0, -1.0])}
    embedded = predicted_change(
        LatentRole.EMBEDDED, NetworkSizes((3, 1), ()), weights=jnp.asarray([1.0, 10.0, 100.0, 0.5]), **inputs
    )
    assert float(embedded[0]) == pytest.approx(1 * 2 + 10 * 3 - 100 + 0.5)
    # Outputs (T_1, T_2) = (2·1, 2·4): w·T = 3·2 − 1·8.
    linear = predicted_change(
        LatentRole.LINEAR, NetworkSizes((1, 2), ()), weights=jnp.asarray([1.0, 4.0, 0.0, 0.0]), **inputs
    )
    assert float(linear[0]) == pytest.approx(3 * 2 - 8)
    none = predicted_change(LatentRole.NONE, NetworkSizes((1, 1), ()), weights=jnp.asarray([7.0, 0.25]), **inputs)
    assert float(none[0]) == pytest.approx(14.25)


@pytest.mark.parametrize(
    ("role", "inputs", "outputs"),
    [(LatentRole.EMBEDDED, 15, 6), (LatentRole.LINEAR, 10, 30), (LatentRole.NONE, 10, 6)],
)
def test_layer_sizes_of_the_paper(role, inputs, outputs):
    """HIV: D + |A| + |w| = 6 + 4 + 5 inputs; linear puts out |w|·D."""
    sizes = network_sizes(DynamicsConfig(role=role, hidden=(32, 32)), hipmdp.make("hiv").specification)
    assert sizes == ((inputs, 32, 32, outputs), (), False)
    assert sizes.weight_count == inputs * 32 + 32 + 32 * 32 + 32 + 32 * outputs + outputs


def test_a_bilinear_proposal_by_hand():
    """One state, two latents, no hidden layer: f₀ = s + w₁, f₁ = 2s, f₂ = 1; at s = 3, w = (4, 5): 7 + 4·6 + 5·1."""
    sizes = NetworkSizes((3, 3), (), bilinear=True)
    matrix = [[1.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    weights = jnp.asarray([*np.ravel(matrix), 0.0, 0.0, 1.0], jnp.float32)
    inputs = {"features": jnp.asarray([3.0]), "latent": jnp.asarray([4.0, 5.0])}
    assert predicted_change(LatentRole.EMBEDDED, sizes, weights=weights, **inputs).tolist() == [36.0]


def test_only_an_embedded_network_is_bilinear():
    specification = hipmdp.make("hiv").specification
    outputs = {
        role: network_sizes(DynamicsConfig(role=role, bilinear=True, latent_size=3), specification).proposal[-1]
        for role in LatentRole
    }
    assert outputs == {LatentRole.EMBEDDED: 24, LatentRole.LINEAR: 18, LatentRole.NONE: 6}


def test_a_correction_replaces_the_proposal_where_it_is_sure():
    """One state, one action, one latent. The proposal is s + w = 5; the correction sees (s, 5, w)."""
    sizes = NetworkSizes((3, 1), (3, 2))
    inputs = {"features": jnp.asarray([2.0, 1.0]), "latent": jnp.asarray([3.0])}
    proposal = [1.0, 0.0, 1.0, 0.0]
    # Rows: what s, the proposal and w add to (u, v); then the biases. v = s + proposal + w = 10.
    for bias, expected in ((0.0, 7.5), (-50.0, 5.0), (50.0, 10.0)):
        correction = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, bias, 0.0]
        weights = jnp.asarray(proposal + correction)
        changed = predicted_change(LatentRole.EMBEDDED, sizes, weights=weights, **inputs)
        assert float(changed[0]) == pytest.approx(expected)


def test_a_correction_begins_small():
    specification = hipmdp.make("hiv").specification
    for role, inputs in ((LatentRole.EMBEDDED, 17), (LatentRole.NONE, 12)):
        sizes = network_sizes(DynamicsConfig(role=role, correction=(8,)), specification)
        assert sizes.correction == (inputs, 8, 12)
        weights = initial_weights(sizes, key=jax.random.key(0))
        assert weights.shape == (sizes.weight_count,)
        assert weights[-12:].tolist() == [-2.0] * 6 + [0.0] * 6
    # What is linear in w_b stays linear.
    linear = DynamicsConfig(role=LatentRole.LINEAR, correction=(8,))
    assert network_sizes(linear, specification).correction == ()


def test_posterior_variance_never_exceeds_the_prior():
    prior = Gaussian(jnp.zeros(3), jnp.asarray([1.0, 2.0, 3.0]))
    posterior = MeanField(jnp.zeros(3), jnp.asarray([-10.0, 0.0, 30.0]))
    np.testing.assert_allclose(posterior.variance(prior), [4.5398e-05, 1.0, 3.0], rtol=1e-4)


@given(st.floats(-3.1, 3.1), st.floats(-3.0, 3.0))
def test_angle_differences_are_wrapped(start, turn):
    specification = hipmdp.make("acrobot").specification
    end = (start + turn + np.pi) % (2 * np.pi) - np.pi
    change = np.zeros((1, 4))
    change[0, 0], change[0, 2] = end - start, 7.0
    wrapped = specification.wrap_angles(change)
    assert wrapped[0, 0] == pytest.approx(turn, abs=1e-9)
    assert wrapped[0, 2] == 7.0


def test_standardisation_comes_from_the_batch():
    batch = random_batch(hipmdp.make("grid"), [0, 1], 2)
    scaling = scaling_of(batch)
    features = jax.vmap(lambda s, a: scaling.features(s, a, 4))(jnp.asarray(batch.state), jnp.asarray(batch.action))
    np.testing.assert_allclose(features[:, :2].mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(features[:, :2].std(axis=0), 1, atol=1e-4)
    np.testing.assert_array_equal(np.argmax(features[:, 2:], axis=1), batch.action)
    change = jnp.asarray(state_changes(batch), jnp.float32)
    np.testing.assert_allclose(jax.vmap(scaling.standardised)(change).std(axis=0), 1, atol=1e-4)


def test_a_constant_column_is_left_unscaled():
    log = toy_log(np.full((5, 1), 3.0), np.zeros((5, 1)))
    scaling = scaling_of(log)
    assert float(scaling.state_scale[0]) == 1.0
    assert float(scaling.change_scale[0]) == 1.0


def test_windows_of_the_pool_are_normals_and_differ():
    pool = make_pool(jax.random.key(0), 10, 300)
    windows = jax.vmap(lambda key: from_pool(pool, key, 10, 300))(jax.random.split(jax.random.key(1), 40))
    flat = np.asarray(windows).reshape(40, -1)
    assert abs(flat.mean()) < 0.02
    assert abs(flat.std() - 1) < 0.02
    assert len({row[0] for row in flat}) > 35
    # A window is one stretch of the pool, so that no normal is used twice within a step.
    for row in flat[:5]:
        (start,) = np.flatnonzero((np.asarray(pool[:-1]) == row[0]) & (np.asarray(pool[1:]) == row[1]))
        np.testing.assert_array_equal(row, pool[start : start + row.size])
