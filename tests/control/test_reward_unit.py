"""The size of a typical reward: by hand, and in the cases that break a scale."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hipmdp.control import dqn
from hipmdp.control.q_network import QNetwork
from hipmdp.control.reward_unit import ROWS, known_unit, unknown_unit
from hipmdp.data.experience import LoggedSteps
from hipmdp.families.rollout import Transition
from hipmdp.settings.dqn import DDQNConfig


def streamed(rewards, chunk=10):
    """The unit after rewards that come ten at a time, as in a DQN."""
    unit = unknown_unit()
    for start in range(0, len(rewards), chunk):
        part = jnp.asarray(rewards[start : start + chunk], jnp.float32)
        unit = unit.observe(part, jnp.ones(len(part), bool))
    return float(unit.value)


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        # The geometric mean of 1, 4 and 16, whatever their signs; zeros do not count.
        ([1.0, -4.0, 0.0, 16.0], 4.0),
        ([1e-6] * 50, 1e-6),
        ([1e8] * 50, 1e8),
        ([-3.0] * 50, 3.0),
        ([0.0] * 50, 1.0),
        # One rare reward among zeros; and one reward so small that it counts as zero.
        ([0.0] * 49 + [250.0], 250.0),
        ([2.0] * 49 + [1e-9], 2.0),
    ],
)  # fmt: skip
def test_by_hand(rewards, expected):
    assert streamed(np.asarray(rewards)) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e8])
def test_one_outlier_hardly_matters(scale):
    rewards = scale * np.random.default_rng(0).uniform(0.5, 2, 999)
    assert streamed(np.append(rewards, 1e6 * scale)) == pytest.approx(streamed(rewards), rel=0.02)


def test_rewards_over_many_decades_have_a_unit_in_their_middle():
    rewards = np.random.default_rng(1).lognormal(3, 2, ROWS)
    assert streamed(rewards) == pytest.approx(np.exp(np.log(rewards).mean()), rel=1e-4)


def test_a_unit_that_is_known_stays():
    unit = known_unit(250.0).observe(jnp.full(100, 3.0), jnp.ones(100, bool))
    assert float(unit.value) == pytest.approx(250)
    # Nor does one that was learned from enough rewards.
    assert streamed([2.0] * ROWS + [1e6] * 100) == pytest.approx(2)


def test_rows_that_did_not_happen_do_not_count():
    unit = unknown_unit().observe(jnp.asarray([2.0, 1e6]), jnp.asarray([True, False]))
    assert float(unit.value) == pytest.approx(2)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e8])
def test_a_dqn_learns_the_same_whatever_the_unit_of_its_rewards(size):
    """The same transitions with rewards in other units give the same network."""
    config = DDQNConfig(hidden=(8,), reward_scale=None, squash=0.01, batch_size=8, minibatches=5)
    rng = np.random.default_rng(2)
    state, after = (jnp.asarray(rng.normal(size=(10, 2)), jnp.float32) for _ in range(2))
    reward = jnp.asarray(size * rng.choice([-1.0, 2.0, 300.0], 10), jnp.float32)
    steps = Transition(state, jnp.arange(10, dtype=jnp.int32) % 3, reward, after, jnp.zeros(10, bool))
    flags, numbers = jnp.zeros(10, bool), jnp.arange(10, dtype=jnp.int32)
    rows = LoggedSteps(steps, flags, numbers, numbers, ~flags)
    network = QNetwork(jnp.zeros(2), jnp.ones(2), 3, (8,), key=jax.random.key(0))
    learned = dqn.learn_from(config, rows, dqn.init(network, config, 20, jax.random.key(1)))
    assert float(learned.unit.value) == pytest.approx(np.exp(np.log(np.abs(reward)).mean()), rel=1e-3)
    again = QNetwork(jnp.zeros(2), jnp.ones(2), 3, (8,), key=jax.random.key(0))
    plain = rows._replace(transition=steps._replace(reward=reward / size))
    reference = dqn.learn_from(config, plain, dqn.init(again, config, 20, jax.random.key(1)))
    np.testing.assert_allclose(learned.online.layers[0].weight, reference.online.layers[0].weight, rtol=1e-3, atol=1e-4)
