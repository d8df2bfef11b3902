"""Value iteration against known best policies."""

import jax
import pytest

import hipmdp
from hipmdp.control.policies import repeat_theta
from hipmdp.families.rollout import mean_return, success_rate
from hipmdp.study.instance_search.search import search
from hipmdp.study.instance_search.value_iteration import best_policy, is_possible

GRID = hipmdp.make("grid")


@pytest.mark.parametrize("number", [0, 1])
def test_it_reaches_the_best_return_known_on_grid(number):
    member, keys = GRID.instances("test")[number], jax.random.split(jax.random.key(1), 64)
    episodes = GRID.rollouts(best_policy(GRID, member.theta), keys, repeat_theta(member.theta, 64))
    assert success_rate(GRID, episodes) == 1
    assert mean_return(episodes) == pytest.approx(member.best_known, abs=0.05)


def test_it_is_for_few_bounded_dimensions():
    assert is_possible(GRID)
    assert is_possible(hipmdp.make("compass"))
    assert not is_possible(hipmdp.make("acrobot"))
    assert not is_possible(hipmdp.make("hiv"))


def test_a_search_takes_it_where_it_is_possible():
    family = hipmdp.make("compass")
    member = family.instances("test")[0]
    found = search(family, member.theta, seed=0)
    assert found["best"]["method"] == "value iteration"
    assert found["succeeding"] == found["best"]
    assert found["best"]["return"] == pytest.approx(member.best_known, abs=1e-3)
