"""Hand-computed transitions of compass; W, N, E, S are actions 0, 1, 2, 3."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hipmdp
from hipmdp.families.drawing import draw_compass
from hipmdp.families.navigation import STEP_SIZE, STILL_TOLERANCE

COMPASS = hipmdp.make("compass")
W, N, E, S = range(4)
jitted = eqx.filter_jit(COMPASS.step)


def step(state, action, **theta):
    values = {"angle": 0.0, "wind_angle": 0.0, "wind": 0.0, "wall": 0.0} | theta
    return jitted(jax.random.key(0), jnp.asarray(state, jnp.float32), jnp.asarray(action), COMPASS.theta(values))


@pytest.mark.parametrize(
    ("theta", "state", "action", "expected", "reward"),
    [
        # Actions as named, and turned by a quarter: East becomes North.
        ({}, (-1.5, -1.5), E, (-1.2, -1.5), -0.1),
        ({}, (-1.5, -1.5), N, (-1.5, -1.2), -0.1),
        ({"angle": math.pi / 2}, (-1.5, -1.5), E, (-1.5, -1.2), -0.1),
        ({"angle": math.pi / 2}, (-1.5, -1.5), N, (-1.8, -1.5), -0.1),
        # By 30 degrees: East leads to (cos 30°, sin 30°).
        ({"angle": math.pi / 6}, (-1.5, -1.5), E, (-1.5 + 0.3 * 3**0.5 / 2, -1.35), -0.1),
        # At (0, −1.5 + 2) the distance is 2.5: 0.3 · 0.1 · 2.5 = 0.075 to the North.
        ({"wind": 0.1, "wind_angle": math.pi / 2}, (0.0, 0.5), W, (-0.3, 0.575), -0.1),
        # Into the goal over its open edge, and through the wall, which is the bottom edge at 0 and the left one at 1.
        ({}, (-0.1, 0.5), E, (0.2, 0.5), 1000),
        ({"wall": 1.0}, (-0.1, 0.5), E, (-0.1, 0.5), -5),
        ({"wall": 1.0}, (0.5, -0.1), N, (0.5, 0.2), 1000),
        ({}, (0.5, -0.1), N, (0.5, -0.1), -5),
        # Out of the box.
        ({}, (-1.9, -1.5), W, (-1.9, -1.5), -5),
    ],
)
def test_hand_computed(theta, state, action, expected, reward):
    outcome = step(state, action, **theta)
    np.testing.assert_allclose(outcome.state, expected, atol=1e-6)
    assert float(outcome.reward) == pytest.approx(reward)
    assert bool(outcome.terminated) == (reward == 1000)


def test_every_legal_step_is_longer_than_the_tolerance():
    """In the far corner the strongest wind is 0.12 √(2 · 3.5²) = 0.594 of a step: 0.3 · 0.406 = 0.1218 are left."""
    theta = COMPASS.theta({"angle": 0.0, "wind_angle": 5 * math.pi / 4, "wind": 0.12, "wall": 0.0})
    corner = jnp.asarray([2.0, 2.0], jnp.float32)
    moves = [np.asarray(COMPASS.displacement(corner, jnp.asarray(a), theta)) for a in range(4)]
    shortest = min(float(np.linalg.norm(move)) for move in moves)
    assert shortest >= STEP_SIZE * (1 - 0.12 * 3.5 * 2**0.5) - 1e-6
    assert shortest > 8 * STILL_TOLERANCE


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wall": 0.5}, "compass parameter 'wall' must be 0 or 1, got 0.5"),
        ({"wind": 0.2}, r"compass parameter 'wind' must be in \[0, 0.12\], got 0.2"),
        ({"angle": math.nan}, "angle"),
    ],
)
def test_a_wrong_theta_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        COMPASS.theta(values)


def test_members_differ_and_sets_share_none():
    thetas = [tuple(float(v) for v in m.theta) for name in ("train32", "validation", "test", "final")
              for m in COMPASS.instances(name)]  # fmt: skip
    assert len(set(thetas)) == len(thetas) == 92
    angles = np.asarray(thetas)[:, 0]
    assert angles.min() < 0.5
    assert angles.max() > 5.8


def test_picture_shows_where_north_leads():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    draw_compass(axes, COMPASS.theta({"angle": 0.0}), np.zeros((3, 2)))
    (arrow_label,) = (t for t in axes.texts if t.get_text() == "N")
    assert arrow_label.get_position() == pytest.approx((1.0, -0.75))
