"""Acrobot against hand computation; the comparison with Gymnasium's own is in tests/oracles."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.families.acrobot import foot_height
from hipmdp.families.specification import wrap_angle

ACROBOT = hipmdp.make("acrobot")


def test_foot_height_by_hand():
    theta = ACROBOT.theta({"l1": 1.2, "l2": 0.7})
    for angles, height in (
        ((0, 0), -1.9),
        ((math.pi, 0), 1.9),
        ((math.pi / 2, math.pi / 2), 0.7),
        ((math.pi, math.pi), 0.5),
    ):
        assert float(foot_height(jnp.asarray([*angles, 0, 0], jnp.float32), theta)) == pytest.approx(height, abs=1e-5)


def test_reward_and_termination_use_the_instance_lengths():
    """Straight up the foot is at l1 + l2 ≥ l1: terminated, 10. Hanging down: −0.05 (−l1 − l2 − l1)²."""
    theta = ACROBOT.theta({"l1": 1.2, "l2": 0.7})
    up, down = (jnp.asarray([a, 0.0, 0.0, 0.0]) for a in (math.pi, 0.0))
    action = jnp.asarray(1)
    assert float(ACROBOT.reward(down, action, up, theta)) == 10
    assert bool(ACROBOT.terminated(up, theta))
    assert float(ACROBOT.reward(up, action, down, theta)) == pytest.approx(-0.05 * 3.1**2, rel=1e-5)
    assert not bool(ACROBOT.terminated(down, theta))
    with pytest.raises(ValueError, match="pass theta"):
        ACROBOT.reward(up, action, down)


@pytest.mark.parametrize("asarray", [jnp.asarray, np.asarray])
def test_wrap_angle_in_jax_and_numpy(asarray):
    angles = asarray([0.0, 3.0, -3.0, 3.5, -3.5, 7.0, math.pi, -math.pi])
    expected = [0, 3, -3, 3.5 - 2 * math.pi, 2 * math.pi - 3.5, 7 - 2 * math.pi, math.pi, -math.pi]
    np.testing.assert_allclose(wrap_angle(angles), expected, atol=1e-6)
    inside = asarray(np.random.default_rng(0).uniform(-math.pi, math.pi, 1000).astype(np.float32))
    np.testing.assert_array_equal(wrap_angle(inside), inside)
    assert isinstance(wrap_angle(inside), type(inside))


@pytest.mark.parametrize("asarray", [jnp.asarray, np.asarray])
def test_a_specification_wraps_its_angles_alone(asarray):
    states = asarray([[4.0, -4.0, 4.0, -9.0], [1.0, 2.0, 3.0, 4.0]])
    expected = [[4 - 2 * math.pi, 2 * math.pi - 4, 4, -9], [1, 2, 3, 4]]
    np.testing.assert_allclose(ACROBOT.specification.wrap_angles(states), expected, atol=1e-6)
    plain = asarray([[9.0, -9.0]])
    assert hipmdp.make("grid").specification.wrap_angles(plain) is plain


def test_well_behaved_wants_the_centre_of_mass_on_the_link():
    assert bool(ACROBOT.is_well_behaved(ACROBOT.theta()))
    assert not bool(ACROBOT.is_well_behaved(ACROBOT.theta({"l2": 0.4})))
    assert not bool(ACROBOT.is_well_behaved(ACROBOT.theta()._replace(m1=jnp.asarray(-0.1))))
