"""Which policy is kept, on returns that can be checked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipmdp.control.selection import by_evidence, by_rank, by_real_return, by_scaled_mean, is_better

# Two policies: 10 and 12 (mean 11), then 1 and 3 (mean 2). s² = (1 + 1 + 1 + 1) / 2 = 2; 2 s √(1/2 + 1/2) = 2.83.
BOTH = [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ([99, 10, 12, 1, 3], 1),  # 9 > 2.83; the random episode does not count
        ([0, 10, 12, 7.1, 9.1], 1),  # 2.9 > 2.83
        ([0, 10, 12, 7.3, 9.3], 2),  # 2.7 < 2.83
        ([0, 10, 12, 20, 22], 2),
    ],
)
def test_the_newest_unless_an_earlier_one_was_clearly_better(returns, expected):
    assert by_real_return(BOTH, returns, 2) == expected


def test_a_policy_without_a_real_episode_is_tried():
    assert by_real_return(BOTH, [0, 10, 12, 1, 3], 3) == 3


def test_one_episode_each_says_nothing():
    assert by_real_return([0, 1, 2], [0, 10, -10], 2) == 2


def test_where_nothing_is_left_to_chance_any_difference_is_clear():
    assert by_real_return([0, 1, 1, 2], [0, 5, 5, 4.9], 2) == 1
    assert by_real_return([0, 1, 1, 2], [0, 5, 5, 5], 2) == 2


def test_the_best_of_several():
    assert by_real_return([0, 1, 1, 2, 2, 3], [0, 5, 5, 8, 8, 1], 3) == 2


def test_a_lucky_episode_does_not_shield_the_newest_from_the_others():
    """s² = 4/3. Policy 2 (mean 8) is above policy 3 (5.2) by 2.8 > 2.58; policy 1 (8.1, once) only by 2.9 < 3.27."""
    assert by_real_return([0, 1, 2, 2, 2, 2, 3], [0, 8.1, 7, 9, 7, 9, 5.2], 3) == 2


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(10**9), 10**9)), max_size=30), st.integers(1, 4))
def test_it_is_one_of_them_and_units_do_not_matter(episodes, newest):
    who, returns = [min(number, newest) for number, _ in episodes], [value for _, value in episodes]
    number = by_real_return(who, returns, newest)
    assert number == newest or number in who
    assert by_real_return(who, (np.asarray(returns) * 4.0).tolist(), newest) == number


def test_the_policy_that_is_kept_is_bad_for_no_instance():
    """The first is fastest on two of three instances and stuck on the third; their scales differ by powers of ten."""
    returns = np.array([[100.0, 1e9, -5.0], [99.0, 0.98e9, 1.0], [0.0, 0.0, 0.0]])
    assert by_scaled_mean(returns) == 1


def test_of_equally_good_policies_the_last_is_kept():
    returns = np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [0.0, 0.0]])
    assert by_scaled_mean(returns) == by_rank(returns) == 2


def test_a_tie_keeps_the_policy_there_is():
    assert is_better(1.0, float("-inf"))
    assert not is_better(1.0, 1.0)


@pytest.mark.parametrize(
    ("policies", "returns", "newest", "imagined", "chosen"),
    [
        ((), (), 0, 1.0, 0),
        # The first policy earned 5: the new one must promise about as much.
        ((0,), (5.0,), 1, 6.0, 1),
        ((0,), (5.0,), 1, 4.6, 1),
        ((0,), (5.0,), 1, 4.4, 0),
        ((0,), (-5.0,), 1, -5.4, 1),
        ((0,), (-5.0,), 1, -5.6, 0),
        # What it earned counts, not what it promised.
        ((0, 1), (5.0, 4.0), 1, 9.0, 0),
        ((0, 1), (5.0, 6.0), 1, 0.0, 1),
        # The mean of its episodes; the best of the earlier ones.
        ((0, 1, 1), (5.0, 9.0, -1.0), 1, 9.0, 0),
        ((0, 1, 1), (5.0, 9.0, 5.0), 2, 6.2, 1),
        ((0, 1, 1), (5.0, 9.0, 5.0), 2, 7.5, 2),
    ],
)
def test_a_policy_that_has_earned_is_given_up_only_for_more(policies, returns, newest, imagined, chosen):
    assert by_evidence(policies, returns, newest, imagined) == chosen
