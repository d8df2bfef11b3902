"""The double-Q target against hand-computed numbers."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp.control.target import double_q_target, squash, td_error, unsquash


@pytest.mark.parametrize(
    ("reward", "discount", "online", "target", "expected"),
    [
        # The online net picks action 1 (3 > 2), the target net values it: 1 + 0.9·10.
        (1.0, 0.9, (2.0, 3.0), (99.0, 10.0), 10.0),
        # It picks action 0, whatever the target net would prefer: 1 + 0.9·(−1).
        (1.0, 0.9, (3.0, 2.0), (-1.0, 50.0), 0.1),
        # Terminated: the discount is 0.
        (-5.0, 0.0, (3.0, 2.0), (7.0, 50.0), -5.0),
    ],
)
def test_double_q_target(reward, discount, online, target, expected):
    value = double_q_target(jnp.asarray(reward), jnp.asarray(discount), jnp.asarray(online), jnp.asarray(target))
    assert float(value) == pytest.approx(expected, rel=1e-6)


def test_td_error_takes_the_action_that_was_taken():
    assert float(td_error(jnp.asarray([1.0, 4.0]), jnp.asarray(1), jnp.asarray(10.0))) == 6.0


def test_squashed_target_is_the_squashed_plain_target():
    """With h(x) = log(1 + 0.01 x)/0.01: h(100 + 0.5·h⁻¹(h(400))) = h(300)."""
    c = 0.01
    held = squash(jnp.asarray([0.0, 400.0]), c)
    value = double_q_target(jnp.asarray(100.0), jnp.asarray(0.5), held, held, c)
    assert float(value) == pytest.approx(np.log(1 + 3.0) / c, rel=1e-5)


@given(st.floats(-1e6, 1e6, width=32), st.sampled_from([0.0, 0.01, 1.0]))
def test_unsquash_inverts_squash(x, strength):
    there = squash(jnp.asarray(x, jnp.float32), strength)
    assert float(unsquash(there, strength)) == pytest.approx(x, rel=2e-5, abs=1e-5)


def test_a_squashed_target_stays_finite_however_far_off_the_network_is():
    """h⁻¹(10⁴) at c = 0.01 would be e^100; the target is at most h(e^80 / c), about 8,000."""
    far = jnp.asarray([1e4, -1e4], jnp.float32)
    for chosen, sign in ((0, 1), (1, -1)):
        online = jnp.zeros(2).at[chosen].set(1.0)
        target = double_q_target(jnp.asarray(1.0), jnp.asarray(0.99), online, far, 0.01)
        assert float(target) == pytest.approx(sign * 8000, rel=0.01)
