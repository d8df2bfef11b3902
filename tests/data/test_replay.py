"""Prioritized replay: frequencies against theory, importance weights, sums that do not drift."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipmdp.data import replay

CAPACITY = 10


def filled(count=6, capacity=CAPACITY):
    state = replay.init(jnp.zeros((), jnp.float32), capacity)
    rows = jnp.arange(count, dtype=jnp.float32)
    return replay.add(state, rows, jnp.ones(count, bool))


SIX = filled()


@pytest.mark.parametrize("exponent", [0.2, 1.0])
def test_sampling_frequencies_and_importance_weights_follow_theory(exponent):
    errors = np.array([0.1, 1.0, 2.0, 0.5, 4.0, 0.01])
    state = replay.set_priorities(filled(), jnp.arange(6), jnp.asarray(errors, jnp.float32), exponent)
    draw = jax.jit(lambda key: replay.sample(state, key, 5, 0.1))
    batches = jax.vmap(draw)(jax.random.split(jax.random.key(0), 8000))
    counts = np.bincount(np.asarray(batches.indices).ravel(), minlength=6)
    expected = (errors + replay.SMALLEST_PRIORITY) ** exponent
    expected /= expected.sum()
    np.testing.assert_allclose(counts / counts.sum(), expected, atol=0.006)
    assert np.array_equal(batches.items, batches.indices.astype(jnp.float32))
    raw = (6 * expected) ** -0.1
    one = raw[np.asarray(batches.indices[0])]
    np.testing.assert_allclose(batches.weights[0], one / one.max(), rtol=1e-4)


def test_new_items_take_the_largest_priority():
    state = replay.set_priorities(filled(2), jnp.arange(2), jnp.asarray([9.0, 0.5]), 0.5)
    state = replay.add(state, jnp.asarray([7.0]), jnp.ones(1, bool))
    leaves = np.asarray(state.tree.nodes)[2**state.tree.tree_depth - 1 :]
    np.testing.assert_allclose(leaves[:4], [3.0, 0.5**0.5, 3.0, 0.0], rtol=1e-5)


def test_rows_that_are_not_kept_leave_no_trace():
    state = replay.init(jnp.zeros((), jnp.float32), CAPACITY)
    keep = jnp.asarray([True, False, True, False])
    state = replay.add(state, jnp.asarray([1.0, 2.0, 3.0, 4.0]), keep)
    state = replay.add(state, jnp.asarray([5.0, 6.0, 7.0, 8.0]), ~keep)
    assert int(state.size) == 4
    np.testing.assert_array_equal(state.items[:4], [1, 3, 6, 8])
    batch = replay.sample(state, jax.random.key(1), 64, 0.1)
    assert set(np.asarray(batch.items).tolist()) == {1.0, 3.0, 6.0, 8.0}


def test_full_replay_drops_what_does_not_fit():
    state = replay.add(filled(8), jnp.asarray([8.0, 9.0, 10.0, 11.0]), jnp.ones(4, bool))
    assert int(state.size) == CAPACITY
    np.testing.assert_array_equal(state.items, np.arange(10))


def test_sums_do_not_drift_over_many_updates():
    """After 3,000 updates with priorities over nine powers of ten, every node is still the sum of its leaves."""
    state = filled(1000, 1000)

    def body(carry, key):
        index_key, value_key = jax.random.split(key)
        indices = jax.random.randint(index_key, (32,), 0, 1000)
        errors = 10 ** jax.random.uniform(value_key, (32,), jnp.float32, -6, 3)
        return replay.set_priorities(carry, indices, errors, 1.0), None

    state = jax.jit(lambda s: jax.lax.scan(body, s, jax.random.split(jax.random.key(0), 3000))[0])(state)
    nodes = np.asarray(state.tree.nodes, np.float64)
    leaves = nodes[2**state.tree.tree_depth - 1 :]
    assert nodes[0] == pytest.approx(leaves.sum(), rel=1e-6)


@jax.jit
def prioritized_batch(state, errors, key):
    state = replay.set_priorities(state, jnp.arange(6), errors, 0.2)
    return replay.sample(state, key, 16, 0.1)


@settings(max_examples=50, deadline=None)
@given(errors=st.lists(st.floats(0, 1e6, width=32), min_size=6, max_size=6), seed=st.integers(0, 2**31))
def test_samples_are_always_items_that_exist(errors, seed):
    batch = prioritized_batch(SIX, jnp.asarray(errors, jnp.float32), jax.random.key(seed))
    assert (np.asarray(batch.indices) < 6).all()
    assert np.isfinite(np.asarray(batch.weights)).all()
    assert float(jnp.max(batch.weights)) == pytest.approx(1)
