"""In which units numbers can be learned, by hand and at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp import _units
from hipmdp.families.specification import Specification

STEPS = np.asarray([[-1.0], [1.0], [-1.0], [1.0]])
"""Spread 1, changes of 2."""


@pytest.mark.parametrize(
    ("level", "change", "origin"),
    [
        (5.0, 2.0, 0.0),  # Near zero.
        (900.0, 2.0, 0.0),  # float32 tells changes of 2 around 900 well enough …
        (900.0, 0.01, 900.0),  # … but not slow ones.
        (1e9, 2.0, 1e9),
        (-1e9 - 0.37, 2.0, -1e9),
        (37.2, 0.001, 37.0),
        (37.2, 0.0, 0.0),  # Constant within each episode: nothing is added to it.
    ],
)
def test_a_column_far_from_zero_gets_a_round_origin(level, change, origin):
    assert _units.origin_of(STEPS + level, np.full((3, 1), change)).tolist() == [origin]


@pytest.mark.parametrize(
    ("factor", "level", "words"),
    [
        (1.0, 0.0, None),
        (1e-30, 0.0, None),
        (1e30, 0.0, None),
        (1e30, 1e9, None),
        (1e-30, 1e9, None),
        (1e-40, 0.0, "has a spread of 1e-40: give it in other units"),
        (1e38, 0.0, "has a spread of 1e+38: give it in other units"),
        (1.0, 1e12, "varies by 1 around 1e+12: subtract its level, or give it in other units"),
    ],
)
def test_columns_of_logs_that_cannot_be_learned(factor, level, words):
    fault = _units.column_fault((STEPS[:, 0] + level) * factor, np.full(3, 2 * factor))
    assert fault is None if words is None else fault.startswith(words)


def test_changes_that_vanish_beside_the_range_are_told():
    assert _units.column_fault(STEPS[:, 0], np.full(3, 1e-5)) is None
    assert _units.column_fault(STEPS[:, 0], np.zeros(3)) is None
    assert "changes by 1e-07 in a step, too little" in _units.column_fault(STEPS[:, 0], np.full(3, 1e-7))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (STEPS[:, 0] + 1e4, None),
        (np.full(4, 1e9), None),
        (np.full(4, 1e38), "is 1e+38: give it in other units"),
        (STEPS[:, 0] * 1e3 + 1e9, "varies by 1e+03 around 1e+09, which float32 cannot tell apart"),
        (STEPS[:, 0] * 1e-40, "has a spread of 1e-40"),
        (np.asarray([0.1, 0.1 + 1e-8], np.float32).astype(float), None),  # Rounding of float32.
        (np.asarray([0.1, 0.1 + 1e-8]), "varies by 5e-09 around 0.1"),  # float64 says more than that.
    ],
)
def test_numbers_that_float32_cannot_take_as_they_are(values, words):
    fault = _units.single_fault(values)
    assert fault is None if words is None else fault.startswith(words)


def specification(origin):
    return Specification(
        "toy", ("x",), (-1e33,), (1e33,), (0.0,), (1.0,), (False,), ("a", "b"), horizon=5, discount=0.9, origin=origin
    )


@given(st.floats(-30, 30), st.floats(-1e9, 1e9), st.lists(st.floats(-3, 3), min_size=5, max_size=20))
def test_float32_keeps_a_millionth_of_a_spread_of_every_column(power, level, values):
    unit = 10.0**power
    natural = ((np.asarray([*values, -1.0, 1.0]) + level) * unit)[:, None]
    spec = specification(tuple(_units.origin_of(natural, np.diff(natural, axis=0))))
    single = spec.from_origin(natural)
    assert single.dtype == np.float32
    assert np.abs(spec.natural(single) - natural).max() <= 1e-5 * natural.std()


def test_the_origin_is_one_thing_in_one_form():
    plain = specification(())
    assert specification((0.0,)) == plain
    assert "origin" not in plain.to_dict()
    shifted = specification((1e9,))
    assert Specification.from_dict(shifted.to_dict()) == shifted != plain
    with pytest.raises(ValueError, match=r"specification\.origin must have"):
        Specification.from_dict(shifted.to_dict() | {"origin": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"'x' has a value too far .* in other units"):
        shifted.from_origin([[1e39]])
    np.testing.assert_array_equal(plain.from_origin([[0.1]]), np.float32([[0.1]]))
