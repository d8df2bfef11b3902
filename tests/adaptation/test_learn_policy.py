"""`learn_policy` with the methods that need no dynamics model."""

import numpy as np
import pytest

import hipmdp

GRID = hipmdp.make("grid")


@pytest.fixture(scope="module")
def batch():
    return hipmdp.collect(GRID, [{"theta": 0}, {"theta": 1}], episodes=3, seed=0, quiet=True)


@pytest.fixture(scope="module")
def run(batch):
    return hipmdp.learn_policy(hipmdp.pretrain(batch, "model_free"), GRID, "test:1", episodes=3, seed=4, quiet=True)


def test_record(run):
    assert run.method == "model_free"
    assert float(run.theta.theta) == 1.0
    for values in (run.returns, run.learning_returns, run.success, run.seconds, run.model_error):
        assert values.shape == (3,)
    assert np.isnan(run.model_error).all()
    assert run.latent is None
    assert run.latents == []
    sums = run.transitions.episode_returns()
    np.testing.assert_allclose(run.learning_returns, [sums[(0, i)] for i in range(3)], rtol=1e-5)


def test_real_episodes_start_where_the_family_starts_them(run):
    """Restarts from states met before are for imagination; a real system cannot be put anywhere."""
    first = run.transitions.state[run.transitions.time == 0]
    assert len(first) == 3
    assert ((first >= -1.75) & (first <= -1.25)).all()
    assert run.network.layers[0].out_features == 128


def test_policy_is_greedy_for_one_and_for_many(run):
    states = np.random.default_rng(0).uniform(-2, 2, (5, 2))
    many = run.policy(states)
    assert many.shape == (5,)
    assert [run.policy(s) for s in states] == many.tolist()
    assert isinstance(run.policy(states[0]), int)
    with pytest.raises(ValueError, match="must have 2 numbers"):
        run.policy([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="finite"):
        run.policy([np.nan, 0.0])


def test_same_seed_same_bits_other_seed_differs(batch, run):
    model = hipmdp.pretrain(batch, "model_free")
    again = hipmdp.learn_policy(model, GRID, {"theta": 1}, episodes=3, seed=4, quiet=True)
    assert np.array_equal(run.returns, again.returns)
    assert np.array_equal(run.transitions.state, again.transitions.state)
    other = hipmdp.learn_policy(model, GRID, {"theta": 1}, episodes=3, seed=5, quiet=True)
    assert not np.array_equal(run.transitions.state[:50], other.transitions.state[:50])


def test_standardisation_comes_from_the_batch(batch):
    model = hipmdp.pretrain(batch, "model_free")
    np.testing.assert_allclose(model.centre, batch.state.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(model.scale, batch.state.std(axis=0), rtol=1e-4)


def test_blind_follows_one_policy_and_learns_nothing():
    model = hipmdp.train_blind(GRID, "train", episodes=20, seed=0, quiet=True)
    run = hipmdp.learn_policy(model, GRID, {"theta": 0}, episodes=4, seed=1)
    assert run.method == "blind"
    assert len(set(run.returns.tolist())) == 1
    assert run.learning_returns.shape == (4,)
    assert run.transitions.episode_count == 4
    again = hipmdp.train_blind(GRID, "train", episodes=20, seed=0, quiet=True)
    np.testing.assert_array_equal(model.policy.layers[0].weight, again.policy.layers[0].weight)


def test_bad_arguments(batch):
    model = hipmdp.pretrain(batch, "model_free")
    for call, message in (
        (lambda: hipmdp.learn_policy(model, hipmdp.make("hiv")), "is for 'grid', not for 'hiv'"),
        (lambda: hipmdp.learn_policy(model, GRID, episodes=0), "at least 1, got 0"),
        (lambda: hipmdp.learn_policy(model, GRID, "test:9"), "test:0 to test:1"),
        (lambda: hipmdp.pretrain(batch, "model_fre"), "Did you mean 'model_free'"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
