"""Caution and the choice among allowed actions, with numbers by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp.control.caution import Chances, choose, weighted_cvar


def cvar(values, caution, weights=None):
    """Of one action."""
    column = np.asarray(values, np.float64)[:, None]
    shares = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    return weighted_cvar(column, shares, caution)[0]


@pytest.mark.parametrize(
    ("values", "caution", "expected"),
    [
        ([4.0, 1.0, 3.0, 2.0], 0.0, 2.5),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 1.5),
        ([4.0, 1.0, 3.0, 2.0], 0.75, 1.0),
        # Less than one draw is left of them.
        ([4.0, 1.0, 3.0, 2.0], 0.9, 1.0),
        # 2.4 draws: (1 + 2 + 0.4 · 3) / 2.4.
        ([4.0, 1.0, 3.0, 2.0], 0.4, 1.75),
        ([2.0, 2.0, 2.0], 0.7, 2.0),
        ([1.0, 1.0, 5.0], 0.5, 1.0),
        ([7.0], 0.0, 7.0),
        ([7.0], 0.9, 7.0),
        ([1.0, -np.inf], 0.6, -np.inf),
        ([1.0, -np.inf], 0.0, -np.inf),
        # What is no number is the worst.
        ([1.0, np.nan], 0.5, -np.inf),
    ],
)
def test_the_worst_share_by_hand(values, caution, expected):
    assert cvar(values, caution) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "caution", "expected"),
    [
        # Of 3, 1 and 2: a quarter each of 1 and 2; then a quarter of 3, too.
        ([0.5, 0.25, 0.25], 0.5, 1.5),
        ([0.5, 0.25, 0.25], 0.25, 2.0),
        # Half of the draw at the edge: (0.25 · 1 + 0.125 · 2) / 0.375.
        ([0.5, 0.25, 0.25], 0.625, 4 / 3),
        # They need not add up to one.
        ([8.0, 4.0, 4.0], 0.5, 1.5),
        ([1.0, 0.0, 0.0], 0.9, 3.0),
    ],
)
def test_weights_by_hand(weights, caution, expected):
    assert cvar([3.0, 1.0, 2.0], caution, weights) == pytest.approx(expected)


def test_a_draw_of_weight_zero_does_not_count_whatever_its_value():
    assert cvar([-np.inf, 1.0, 3.0], 0.0, [0.0, 1.0, 1.0]) == pytest.approx(2.0)
    assert cvar([np.nan, 1.0, 3.0], 0.5, [0.0, 1.0, 1.0]) == pytest.approx(1.0)


def test_every_action_has_its_own_worst_draws():
    """What is worst for one action is best for the other."""
    values = np.asarray([[0.0, 10.0], [4.0, 5.0], [8.0, 0.0], [9.0, 9.0]])
    np.testing.assert_allclose(weighted_cvar(values, np.ones(4), 0.5), [2.0, 2.5])
    found = weighted_cvar(jnp.asarray(values, jnp.float32), jnp.ones(4, jnp.float32), 0.5)
    np.testing.assert_allclose(found, [2.0, 2.5])


FINITE = st.floats(-100, 100)


@given(
    rows=st.lists(st.tuples(FINITE, st.floats(0.01, 1)), min_size=1, max_size=12),
    cautions=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)),
)
def test_more_caution_is_never_a_higher_value(rows, cautions):
    values, weights = (np.asarray(part) for part in zip(*rows, strict=True))
    less, more = (cvar(values, caution, weights) for caution in sorted(cautions))
    mean = np.average(values, weights=weights)
    assert values.min() - 1e-9 <= more <= less + 1e-6
    assert less <= mean + 1e-6
    assert cvar(values, 0.0, weights) == pytest.approx(mean, abs=1e-6)


def chosen(scores, chance, beyond=None, risk=0.05):
    arrays = (jnp.asarray(v, jnp.float32) for v in (chance, beyond or [0.0] * len(chance)))
    return int(choose(jnp.asarray(scores, jnp.float32), Chances(*arrays), risk))


@pytest.mark.parametrize(
    ("scores", "chance", "beyond", "expected"),
    [
        ([1.0, 3.0, 2.0], [0.0, 0.0, 0.0], None, 1),
        ([1.0, 3.0, 2.0], [0.0, 0.06, 0.05], None, 2),
        ([-np.inf, 3.0, -np.inf], [0.2, 0.06, 0.05], None, 2),
        ([5.0, np.nan, 2.0], [0.9, 0.0, 0.0], None, 2),
        # None is allowed: the lowest chance.
        ([1.0, 3.0, 2.0], [0.4, 0.5, 0.3], None, 2),
        # Of several such, the one that leaves the limit broken for the fewest steps, …
        ([9.0, 3.0, 2.0], [1.0, 1.0, 1.0], [0.9, 0.2, 0.3], 1),
        # … and of these the best.
        ([1.0, 3.0, 2.0], [1.0, 1.0, 1.0], [0.9, 0.2, 0.2], 1),
    ],
)
def test_choices_by_hand(scores, chance, beyond, expected):
    assert chosen(scores, chance, beyond) == expected
