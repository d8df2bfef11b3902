"""Imagination against hand-made models: where it goes, what it pays, when it ends."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.dynamics.model import new_dynamics
from hipmdp.dynamics.standardise import Scaling
from hipmdp.imagination.build import STARTS, Surroundings, conditioned_environment, starts_of_batch
from hipmdp.imagination.contexts import Context, instance_contexts
from hipmdp.imagination.environment import Imagination, Range
from hipmdp.imagination.reward import GivenReward, TrueReward
from hipmdp.settings.dynamics import DynamicsConfig, LatentRole
from tests.dynamics.toys import random_batch

GRID, ACROBOT = hipmdp.make("grid"), hipmdp.make("acrobot")


def constant_model(family, changes):
    """T̂ that predicts a constant change: no hidden layer, zero weights, the change as the bias; one per draw."""
    size = family.specification.state_size
    ones = jnp.ones(size)
    config = DynamicsConfig(role=LatentRole.NONE, hidden=(), latent_size=1)
    model = new_dynamics(
        config, family.specification, Scaling(0 * ones, ones, 0 * ones, ones), 0, key=jax.random.key(0)
    )
    inputs = size + family.specification.action_count
    weights = jnp.stack([jnp.concatenate([jnp.zeros(inputs * size), jnp.asarray(c, jnp.float32)]) for c in changes])
    return model, weights


def imagined(family, theta, changes, state, low=-1e3, high=1e3, action=0):
    model, weights = constant_model(family, changes)
    size = family.specification.state_size
    limits = Range(jnp.full(size, low, jnp.float32), jnp.full(size, high, jnp.float32))
    world = Imagination(model, GivenReward(family, theta), jnp.zeros((1, size)), limits)
    context = Context(weights, jnp.zeros(1))
    return world.step(jax.random.key(0), jnp.asarray(state, jnp.float32), jnp.asarray(action, jnp.int32), context)


def test_a_step_adds_the_mean_over_the_draws():
    outcome = imagined(GRID, GRID.theta(), [[0.1, 0.0], [0.3, 0.2]], [-1.0, -1.0])
    np.testing.assert_allclose(outcome.state, [-0.8, -0.9], atol=1e-6)
    assert not outcome.cut
    assert float(outcome.reward) == pytest.approx(-0.1)


def test_episodes_end_in_the_goal_and_standing_still_costs_five():
    outcome = imagined(GRID, GRID.theta(), [[0.2, 0.0]], [-0.1, 0.5])
    assert bool(outcome.terminated)
    assert float(outcome.reward) == 1000
    outcome = imagined(GRID, GRID.theta(), [[0.0, 0.0]], [-0.1, 0.5])
    assert not bool(outcome.terminated)
    assert float(outcome.reward) == -5


def test_states_stay_in_the_state_space_and_angles_wrap():
    np.testing.assert_allclose(imagined(GRID, GRID.theta(), [[0.5, 0.0]], [1.8, -1.0]).state, [2.0, -1.0], atol=1e-6)
    outcome = imagined(ACROBOT, ACROBOT.theta(), [[0.5, 0.0, 100.0, 0.0]], [3.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(outcome.state, [3.5 - 2 * np.pi, 0.0, 4 * np.pi, 0.0], rtol=1e-5)


def test_leaving_the_data_cuts_the_episode_at_its_edge():
    outcome = imagined(GRID, GRID.theta(), [[0.5, 0.1]], [0.5, -1.0], low=-0.95, high=0.7)
    assert bool(outcome.cut)
    assert not bool(outcome.terminated)
    np.testing.assert_allclose(outcome.state, [0.7, -0.9], atol=1e-6)


def test_a_model_that_overflows_cuts_and_stays_finite():
    outcome = imagined(GRID, GRID.theta(), [[np.nan, np.inf]], [0.5, -1.0])
    assert bool(outcome.cut)
    assert np.isfinite(np.asarray(outcome.state)).all()
    assert np.isfinite(float(outcome.reward))


def test_limits_are_the_data_and_a_tenth_more():
    model, _ = constant_model(GRID, [[0.0, 0.0]])
    low, high = np.asarray([0.0, -1.0]), np.asarray([10.0, 1.0])
    around = Surroundings(GivenReward(GRID, None), jnp.zeros((1, 2)), low, high)
    limits = conditioned_environment(model, around).imagination.range
    np.testing.assert_allclose(limits.low, [-1.0, -1.2])
    np.testing.assert_allclose(limits.high, [11.0, 1.2])


def test_contexts_are_one_draw_each_or_one_mean():
    model, _ = constant_model(GRID, [[0.0, 0.0]])
    latent = jnp.ones(1)
    pool = instance_contexts(model, latent, key=jax.random.key(0), draws=5, mean=False)
    mean = instance_contexts(model, latent, key=jax.random.key(0), draws=5, mean=True)
    assert pool.weights.shape[:2] == (5, 1)
    assert mean.weights.shape[:2] == (1, 5)
    np.testing.assert_array_equal(pool.weights[:, 0], mean.weights[0])
    assert pool.latent.shape == (5, 1)


def test_contexts_that_are_unsure_of_the_latent():
    model, _ = constant_model(GRID, [[0.0, 0.0]])

    def deviations(key, count):
        return 2 * jax.random.normal(key, (count, 1))

    pool = instance_contexts(model, jnp.ones(1), key=jax.random.key(0), draws=4000, mean=False, deviations=deviations)
    assert float(jnp.mean(pool.latent)) == pytest.approx(1.0, abs=0.1)
    assert float(jnp.std(pool.latent)) == pytest.approx(2.0, abs=0.1)


def test_the_given_reward_knows_nothing_that_it_does_not_need():
    """On grid and HIV θ does not reach imagination at all; on acrobot the reward is written in terms of it."""
    assert GivenReward(GRID, GRID.theta({"theta": 1})).theta is None
    hiv = hipmdp.make("hiv")
    assert GivenReward(hiv, hiv.theta()).theta is None
    assert GivenReward(ACROBOT, ACROBOT.theta({"l1": 1.5})).theta.l1 == 1.5
    # Below the wall of class 0, moving north: the true reward knows the wall, the given one only sees the move.
    state, moved = jnp.asarray([0.5, -0.1]), jnp.asarray([0.5, 0.2])
    action, latent = jnp.asarray(1, jnp.int32), jnp.zeros(1)
    key = jax.random.key(0)
    true, _ = TrueReward(GRID, GRID.theta({"theta": 0}))(key, state, action, moved, latent)
    given, ends = GivenReward(GRID, GRID.theta({"theta": 0}))(key, state, action, moved, latent)
    assert (float(true), float(given), bool(ends)) == (-5.0, 1000.0, True)


def test_imagination_is_jittable_and_batches_over_contexts():
    model, weights = constant_model(GRID, [[0.1, 0.0], [0.0, 0.1]])
    limits = Range(jnp.full(2, -2.2), jnp.full(2, 2.2))
    world = Imagination(model, GivenReward(GRID, GRID.theta()), jnp.asarray([[-1.5, -1.5]]), limits)
    contexts = Context(weights[:, None], jnp.zeros((2, 1)))
    keys = jax.random.split(jax.random.key(0), 2)

    @eqx.filter_jit
    def both(world, contexts):
        first = jax.vmap(world.reset)(keys, contexts)
        return jax.vmap(world.step)(keys, first, jnp.zeros(2, jnp.int32), contexts).state

    np.testing.assert_allclose(both(world, contexts), [[-1.4, -1.5], [-1.5, -1.4]], atol=1e-6)


def test_more_data_widen_the_range_and_never_narrow_it():
    batch = random_batch(GRID, [0], episodes=2, steps=5)
    around = Surroundings(GivenReward(GRID, None), jnp.zeros((1, 2)), np.full(2, -0.1), np.full(2, 9.0))
    states = np.concatenate([batch.state, batch.next_state])
    np.testing.assert_allclose(around.extended(batch).low, np.minimum(-0.1, states.min(axis=0)))
    np.testing.assert_allclose(around.extended(batch).high, [9.0, 9.0])


def test_starts_of_a_batch_are_first_states_always_as_many():
    batch = random_batch(GRID, [0, 1], episodes=3, steps=5)
    starts = np.asarray(starts_of_batch(batch, key=jax.random.key(0)))
    first = {tuple(row) for row in batch.state[batch.time == 0].tolist()}
    assert starts.shape == (STARTS, 2)
    assert {tuple(row) for row in starts.tolist()} == first
