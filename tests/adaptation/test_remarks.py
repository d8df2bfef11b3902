"""What a run says when imagination and reality disagree, or an episode says little."""

import pytest

from hipmdp.adaptation.remarks import Expected, surprise, uninformative


@pytest.mark.parametrize(
    ("value", "spread", "told"),
    [
        (100.0, 1.0, False),
        # More than expected is no reason to complain.
        (500.0, 1.0, False),
        # 21 below: more than three standard deviations of 5 and than a fifth of 100.
        (79.0, 5.0, True),
        (79.0, 8.0, False),
        (81.0, 0.0, False),
    ],
)
def test_a_return_far_below_what_was_imagined_is_told(value, spread, told):
    assert bool(surprise(value, Expected(100.0, spread))) is told


def test_costs_are_compared_alike():
    assert surprise(-250.0, Expected(-200.0, 5.0))[0].startswith(
        "The policy earned -250 where imagination expected -200"
    )
    assert surprise(-220.0, Expected(-200.0, 5.0)) == []


def test_nothing_is_expected_before_anything_was_imagined():
    assert surprise(0.0, None) == []


def test_an_episode_that_says_little_is_told():
    assert uninformative(0.9)[0].startswith(
        "The first episode said little about the instance (90% of the prior variance"
    )
    assert uninformative(0.5) == uninformative(None) == []
