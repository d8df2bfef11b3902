"""Hand-computed transitions. With r = 0.23 √((x+1.5)² + (y+1.5)²); W, N, E, S are actions 0, 1, 2, 3."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hipmdp

GRID = hipmdp.make("grid")
W, N, E, S = range(4)
STAY = None
jitted = eqx.filter_jit(GRID.step)


def step(theta, state, action):
    return jitted(jax.random.key(0), jnp.asarray(state, jnp.float32), jnp.asarray(action), GRID.theta({"theta": theta}))


@pytest.mark.parametrize(
    ("theta", "state", "action", "expected", "reward"),
    [
        # At (−1.5, −1.5) the wind is zero: pure effects of the actions, mirrored in class 1.
        (0, (-1.5, -1.5), W, (-1.8, -1.5), -0.1),
        (0, (-1.5, -1.5), N, (-1.5, -1.2), -0.1),
        (0, (-1.5, -1.5), E, (-1.2, -1.5), -0.1),
        (0, (-1.5, -1.5), S, (-1.5, -1.8), -0.1),
        (1, (-1.5, -1.5), W, (-1.2, -1.5), -0.1),
        (1, (-1.5, -1.5), N, (-1.5, -1.8), -0.1),
        (1, (-1.5, -1.5), E, (-1.8, -1.5), -0.1),
        (1, (-1.5, -1.5), S, (-1.5, -1.2), -0.1),
        # At (0, 0.5): distance √(1.5² + 2²) = 2.5, r = 0.575, wind 0.1725 to the West (0) or South (1).
        (0, (0.0, 0.5), E, (0.3 - 0.1725, 0.5), 1000),
        (0, (0.0, 0.5), N, (-0.1725, 0.8), -0.1),
        (1, (0.0, 0.5), E, (-0.3, 0.5 - 0.1725), -0.1),
        # Into the goal at its open edge: class 0 from x ≤ 0, class 1 from y ≤ 0 (distance 2.5 again at (0.5, 0)).
        (1, (0.5, 0.0), S, (0.5, 0.3 - 0.1725), 1000),
        # Into the goal through the wall: class 0 from y ≤ 0 (from (0.5, 0) N leads to (0.3275, 0.3)) ...
        (0, (0.5, 0.0), N, STAY, -5),
        # ... and class 1 from x ≤ 0 (from (0, 0.5) W leads to (0.3, 0.3275)).
        (1, (0.0, 0.5), W, STAY, -5),
        # Along the wall without crossing it.
        (0, (0.5, -0.5), W, (0.5 - 0.3 - 0.069 * 5**0.5, -0.5), -0.1),
        # Out of the goal through the wall from inside, at distance √(2² + 1.6²) = 2.56125.
        (0, (0.5, 0.1), S, STAY, -5),
        (1, (0.1, 0.5), E, STAY, -5),
        # Out of the goal over the open edge is a legal move.
        (0, (0.1, 0.5), W, (0.1 - 0.3 - 0.069 * 2.5612497, 0.5), -0.1),
        (1, (0.5, 0.1), N, (0.5, 0.1 - 0.3 - 0.069 * 2.5612497), -0.1),
        # Each outer bound, for both classes (the wind at (−1.9, −1.9) is 0.069 √0.32 = 0.0390).
        (0, (-1.9, -1.5), W, STAY, -5),
        (0, (-1.9, 1.9), N, STAY, -5),
        (0, (-1.5, -1.9), S, STAY, -5),
        (1, (-1.9, -1.5), E, STAY, -5),
        (1, (-1.5, -1.9), N, STAY, -5),
        (1, (1.9, -1.5), W, STAY, -5),
        (1, (-1.5, 1.99), S, (-1.5, 1.99 + 0.3 - 0.069 * 3.49), STAY),
        # East bound for class 0: at (1.99, −1.5) r = 0.8027, E moves by 0.0592 and would leave the box.
        (0, (1.99, -1.5), E, STAY, -5),
        # The smallest legal step: at (2, 0), r = 0.23 √(3.5² + 1.5²) = 0.8758, 0.3 − 0.2627 = 0.0373.
        (0, (1.9, -0.01), E, (1.9 + 0.3 - 0.069 * (3.4**2 + 1.49**2) ** 0.5, -0.01), -0.1),
    ],
)
def test_hand_computed(theta, state, action, expected, reward):
    if reward is STAY:  # the last bound: North edge of class 1, where the wind nearly cancels the move
        expected, reward = STAY, -5
    outcome = step(theta, state, action)
    np.testing.assert_allclose(outcome.state, state if expected is STAY else expected, atol=1e-6)
    assert float(outcome.reward) == pytest.approx(reward)
    x, y = outcome.state
    assert bool(outcome.terminated) == (x > 0 and y > 0)


def test_wind_is_stronger_far_from_the_start():
    near, far = (float(step(0, s, N).state[0]) - s[0] for s in ((-1.4, -1.4), (-0.5, 1.0)))
    assert far < near < 0


def test_beta_scales_the_wind():
    weak = hipmdp.make("grid", beta=0.1)
    theta, state = GRID.theta(), jnp.asarray([0.0, 0.5])
    np.testing.assert_allclose(weak.displacement(state, jnp.asarray(E), theta), [0.3 * (1 - 0.1 * 2.5), 0.0], atol=1e-6)


def test_reward_in_imagination_needs_no_theta():
    state = jnp.asarray([0.5, -0.1])
    for next_state, reward in (((0.5, 0.1), 1000), ((0.5, -0.09), -5), ((0.5, -0.4), -0.1)):
        assert float(GRID.reward(state, jnp.asarray(N), jnp.asarray(next_state))) == pytest.approx(reward)


# XLA flushes subnormal numbers to zero, so they are not states.
finite = st.floats(-2, 2, width=32, allow_subnormal=False)


@settings(max_examples=200, deadline=None)
@given(x=finite, y=finite, action=st.integers(0, 3), theta=st.integers(0, 1))
def test_walls_hold_everywhere(x, y, action, theta):
    """No step leaves the box, and the goal's wall is crossed in neither direction."""
    after = np.asarray(step(theta, (x, y), action).state)
    assert (np.abs(after) <= 2).all()
    inside_before, inside_after = x > 0 and y > 0, bool((after > 0).all())
    across = (y, after[1]) if theta == 0 else (x, after[0])
    if inside_after != inside_before:
        outside_value = across[1] if inside_before else across[0]
        assert outside_value > 0
