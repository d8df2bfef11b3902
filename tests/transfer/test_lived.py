"""Which policy to live by, on returns that can be checked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp.transfer.lived import best_lived

# Two policies: 10 and 12 (mean 11), then 1 and 3 (mean 2). s² = (1 + 1 + 1 + 1) / 2 = 2; 2 s √(1/2 + 1/2) = 2.83.
BOTH = [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ([99, 10, 12, 1, 3], 1),  # 9 > 2.83; what chance lived does not count
        ([0, 10, 12, 7.1, 9.1], 1),  # 2.9 > 2.83
        ([0, 10, 12, 7.3, 9.3], 2),  # 2.7 < 2.83
        ([0, 10, 12, 20, 22], 2),
    ],
)
def test_the_newest_unless_an_earlier_one_has_clearly_lived_better(returns, expected):
    assert best_lived(BOTH, returns, 2) == expected


def test_a_policy_nobody_has_lived_by_is_tried():
    assert best_lived(BOTH, [0, 10, 12, 1, 3], 3) == 3


def test_one_episode_each_says_nothing():
    assert best_lived([0, 1, 2], [0, 10, -10], 2) == 2


def test_where_nothing_is_left_to_chance_any_difference_is_clear():
    assert best_lived([0, 1, 1, 2], [0, 5, 5, 4.9], 2) == 1
    assert best_lived([0, 1, 1, 2], [0, 5, 5, 5], 2) == 2


def test_the_best_of_several():
    assert best_lived([0, 1, 1, 2, 2, 3], [0, 5, 5, 8, 8, 1], 3) == 2


def test_a_lucky_episode_does_not_shield_the_newest_from_the_others():
    """s² = 4/3. Policy 2 (mean 8) is above policy 3 (5.2) by 2.8 > 2.58; policy 1 (8.1, once) only by 2.9 < 3.27."""
    assert best_lived([0, 1, 2, 2, 2, 2, 3], [0, 8.1, 7, 9, 7, 9, 5.2], 3) == 2


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(10**9), 10**9)), max_size=30), st.integers(1, 4))
def test_it_is_one_of_them_and_units_do_not_matter(lived, newest):
    who, returns = [min(number, newest) for number, _ in lived], [value for _, value in lived]
    number = best_lived(who, returns, newest)
    assert number == newest or number in who
    assert best_lived(who, (np.asarray(returns) * 4.0).tolist(), newest) == number
